//! SD602 non-blocking-without-pinned-memory: a copy from pageable memory that overlaps with nothing.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::with_stack;
use crate::rules::shared::test_code::in_tests;
use crate::rules::shared::transfers::transfer;

pub(super) const CODE: Code = Code(602);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Pageable { made } = &event.kind else { return None };
        if in_tests(event.place, cx) {
            return None;
        }
        let message = "`non_blocking=True` overlaps with nothing here: the memory is not pinned, and the program waits while it is read";
        let mut f = transfer(CODE, event, message, "copies from pageable memory");
        if *made != event.place {
            f = f.related(*made, "not pinned here");
        }
        Some(with_stack(f, event).help("pin it first: `pin_memory=True` in the loader, or `.pin_memory()`"))
    }
}
