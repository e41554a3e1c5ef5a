//! SD508 empty-cache-in-loop: `torch.cuda.empty_cache()` in every iteration of a loop.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::quoted;
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(508);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::CacheEmptied = &event.kind else { return None };
        let call = quoted(cx, event.place, "this call");
        let message = format!(
            "{call} returns cached memory in every iteration, and the next iteration allocates it again"
        );
        let mut f = finding(CODE, event, message, event.place, "waits for the GPU and empties the cache");
        f.world = World::Cuda;
        Some(with_stack(f, event).help("remove the call, or move it after the loop"))
    }
}
