//! SD206 generator-device-mismatch: a generator that draws for a tensor on another device.

mod given_generator;
mod made_on_host;

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Meeting};
use crate::rules::check::{Check, Context};
use crate::rules::shared::callers::as_tests_like;
use crate::rules::shared::meetings::{meeting_finding, mismatch};

pub(super) const CODE: Code = Code(206);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let (Meeting::Generator, what, stray, other) = mismatch(event)? else { return None };
        // One that nobody gave has no place of its own, and is on the CPU.
        let given = other.place != event.place;
        let (generator, drawn) =
            if stray.place == event.place && given { (other, stray) } else { (stray, other) };
        if as_tests_like(event, generator, cx) {
            return None;
        }
        let message = format!(
            "{what} draws on {} with a generator of {}",
            drawn.device.in_words(),
            generator.device.in_words()
        );
        Some(
            meeting_finding(CODE, event, message, cx)?
                .help("make the generator on the same device: `torch.Generator(device=…)`"),
        )
    }

    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        given_generator::drawn(cx)
    }
}
