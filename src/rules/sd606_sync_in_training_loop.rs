//! SD606 sync-in-training-loop: a number that is read back in every round of a training.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(606);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::SyncInTraining = &event.kind else { return None };
        let message = "this reads a number back from the GPU in every round of a training";
        let mut f = finding(CODE, event, message.to_owned(), event.place, "waits for the GPU");
        f.world = World::Cuda;
        Some(with_stack(f, event).help("keep a detached tensor, and read it every so many rounds"))
    }
}
