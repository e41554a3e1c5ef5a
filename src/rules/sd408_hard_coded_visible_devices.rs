//! SD408 hard-coded-visible-devices: a literal value of `CUDA_VISIBLE_DEVICES`.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::test_code::in_tests;
use crate::world::World;

pub(super) const CODE: Code = Code(408);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::FixedVisible { text, needed, none_left } = &event.kind else { return None };
        if event.is_guess() || in_tests(event.place, cx) {
            return None;
        }
        let then = match none_left {
            true => ", a GPU that a smaller machine does not have: no GPU is visible there",
            false => ", and a smaller machine does not have all of these GPUs",
        };
        let message = format!("`CUDA_VISIBLE_DEVICES` is set to `{text}`{then}");
        let label = "overrides what the user or the scheduler has set";
        let mut f = finding(CODE, event, message, event.place, label);
        f.world = World::FewerGpus(*needed);
        Some(with_stack(f, event).help(format!(
            "remove this line, and set `CUDA_VISIBLE_DEVICES={text}` in the shell that starts the program"
        )))
    }
}
