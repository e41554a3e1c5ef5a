//! SD509 device-results-accumulated: results of all rounds that stay on the GPU.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(509);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::ResultsKept = &event.kind else { return None };
        let message = "the results of all rounds stay in device memory";
        let mut f = finding(CODE, event, message.to_owned(), event.place, "kept on the GPU");
        f.world = World::Cuda;
        Some(with_stack(f, event).help("move each to the host first: `.cpu()`"))
    }
}
