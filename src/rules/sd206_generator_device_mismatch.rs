//! SD206 generator-device-mismatch: a generator that draws for a tensor on another device.

mod advice;
mod given_generator;

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Meeting};
use crate::rules::check::{Check, Context};
use crate::rules::shared::callers::as_tests_like;
use crate::rules::shared::code::variable;
use crate::rules::shared::meetings::{meeting_finding, mismatch};

pub(super) const CODE: Code = Code(206);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let (Meeting::Generator, what, stray, other) = mismatch(event)? else { return None };
        // The default generator has no place of its own, and is on the CPU.
        let given = other.place != event.place;
        let (generator, drawn) =
            if stray.place == event.place && given { (other, stray) } else { (stray, other) };
        if as_tests_like(event, generator, cx) {
            return None;
        }
        let given = generator.place != event.place;
        let whose = match variable(cx, generator.place) {
            Some(name) if given => format!("its generator, `{name}`,"),
            _ if given => "its generator".to_owned(),
            _ => "its default generator".to_owned(),
        };
        let (there, here) = (drawn.device.in_words(), generator.device.in_words());
        let message = format!("{what} draws on {there}, but {whose} is on {here}");
        let help = advice::advice(event, generator, drawn, cx);
        Some(meeting_finding(CODE, event, message, cx)?.help(help))
    }

    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        given_generator::drawn(cx)
    }
}
