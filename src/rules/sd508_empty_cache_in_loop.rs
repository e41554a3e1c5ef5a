//! SD508 empty-cache-in-loop: the allocator's cache, emptied in every round.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(508);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::CacheEmptied = &event.kind else { return None };
        let message =
            "this gives the allocator's memory back in every round, only for it to be asked for again";
        let mut f =
            finding(CODE, event, message.to_owned(), event.place, "waits for the GPU, and empties the cache");
        f.world = World::Cuda;
        Some(with_stack(f, event).help("leave it out, or call it once, after the loop"))
    }
}
