//! SD103 uncalled-availability-check: a check that is not called, and so is always true.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::{line_with, text};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(103);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::UncalledCheck { function } = &event.kind else { return None };
        let message = format!("`{function}` without `()` is a function, so this condition is always true");
        let mut f = finding(CODE, event, message, event.place, "the parentheses are missing");
        f.world = World::NoCuda;
        let called = format!("{}()", text(cx, event.place).unwrap_or(function));
        let line = line_with(cx, event.place, &called).unwrap_or(called);
        Some(with_stack(f, event).help(format!("call it: `{line}`")).remedy([Remedy::Call(event.place)]))
    }
}
