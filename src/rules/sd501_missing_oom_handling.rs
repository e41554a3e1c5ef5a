//! SD501 missing-oom-handling: a large allocation without a handler for out-of-memory errors.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::quoted;
use crate::rules::shared::events::{finding, with_stack};
use crate::world::{World, gibibytes};

pub(super) const CODE: Code = Code(501);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Allocation { bytes, handled: false } = &event.kind else { return None };
        if *bytes < cx.limits.oom_threshold || event.is_guess() {
            return None;
        }
        let message = format!(
            "{} takes {} of the accelerator's memory, and nothing catches `torch.OutOfMemoryError`",
            quoted(cx, event.place, "this tensor"),
            gibibytes(*bytes)
        );
        let mut f = finding(CODE, event, message, event.place, "raises if less memory is free");
        f.world = World::FreeBelow(*bytes);
        Some(
            with_stack(f, event)
                .help("put it in a `try`, and fall back to a smaller size or to the CPU in `except torch.OutOfMemoryError:`"),
        )
    }
}
