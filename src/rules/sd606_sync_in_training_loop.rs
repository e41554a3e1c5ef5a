//! SD606 sync-in-training-loop: a number that every training step reads from the GPU.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::{operand, quoted};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(606);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::SyncInTraining = &event.kind else { return None };
        let read = quoted(cx, event.place, "this call");
        let message = format!("{read} copies a number from the GPU in every training step");
        let mut f = finding(CODE, event, message, event.place, "waits for the GPU");
        let tensor = CallAt::new(cx, event.place).and_then(|call| call.receiver());
        let help = match tensor.and_then(|tensor| operand(cx, tensor)) {
            Some(tensor) => format!("keep `{tensor}.detach()`, and read the number every few steps"),
            None => "keep a detached tensor, and read the number every few steps".to_owned(),
        };
        f.world = World::Cuda;
        Some(with_stack(f, event).help(help))
    }
}
