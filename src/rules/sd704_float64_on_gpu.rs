//! SD704 float64-on-gpu: double precision on a GPU.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::{quoted, text};
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::float64::in_float32;
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
        let tensor = quoted(cx, event.place, "this tensor");
        let message =
            format!("{tensor} is `float64` on a GPU, where `float64` is many times slower than `float32`");
        let mut f = finding(CODE, event, message, event.place, "`float64` on the GPU");
        f.world = World::Cuda;
        Some(with_stack(f, event).help(match text(cx, event.place).and_then(in_float32) {
            Some(single) => format!("use `float32`: `{single}`, or run what needs `float64` on the CPU"),
            None => "use `float32`, or run what needs `float64` on the CPU".to_owned(),
        }))
    }
}
