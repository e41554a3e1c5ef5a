//! SD607 timing-without-synchronize: a clock that is read while the GPU is at work.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
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
        let message = "the clock is read while the GPU is still at work: the call above has only queued it";
        let f = transfer(CODE, event, message, "read before the work is done")
            .related(*work, "queued here")
            .related(*started, "timed from here");
        Some(
            with_stack(f, event)
                .help("call `torch.cuda.synchronize()` before the clock is read, at both ends"),
        )
    }
}
