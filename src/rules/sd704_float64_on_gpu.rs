//! SD704 float64-on-gpu: double precision on a GPU.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::test_code::in_tests;
use crate::world::World;

pub(super) const CODE: Code = Code(704);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::DoubleOnGpu = &event.kind else { return None };
        if in_tests(event.place, cx) {
            return None;
        }
        let message = "this is `float64` on a GPU, where most do a small fraction of the work that they do in `float32`";
        let mut f = finding(CODE, event, message.to_owned(), event.place, "double precision");
        f.world = World::Cuda;
        Some(with_stack(f, event).help("take `float32`, or do what needs the precision on the CPU"))
    }
}
