//! SD607 timing-without-synchronize: a clock that is read while the GPU is still working.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::calls::synchronize;
use crate::rules::shared::code::quoted;
use crate::rules::shared::events::with_stack;
use crate::rules::shared::test_code::in_tests;
use crate::rules::shared::transfers::transfer;

pub(super) const CODE: Code = Code(607);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::TimedWithoutWait { started, work } = &event.kind else { return None };
        if in_tests(event.place, cx) {
            return None;
        }
        let (clock, call) = (quoted(cx, event.place, "the clock"), quoted(cx, *work, "the call above"));
        let message =
            format!("{clock} is read before the GPU has finished {call}, which only queues its work");
        let f = transfer(CODE, event, &message, "reads the clock too early")
            .related(*work, "queues work for the GPU and returns")
            .related(*started, "starts the measurement");
        let help = format!(
            "if the work runs on the GPU, call `{}` before each of the two readings of the clock",
            synchronize(f.world)
        );
        Some(with_stack(f, event).help(help))
    }
}
