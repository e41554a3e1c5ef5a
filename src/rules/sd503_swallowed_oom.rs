//! SD503 swallowed-oom: a handler that drops every error of work on a device.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::{quoted, text};
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::test_code::has_tests;
use crate::world::World;

pub(super) const CODE: Code = Code(503);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Swallowed { said } = &event.kind else { return None };
        // A test does little work. A caller cannot fix a handler in another file.
        if has_tests(event.place, cx) || event.place.file != cx.file {
            return None;
        }
        let message = format!(
            "{} drops every error of the device work in its block, `torch.OutOfMemoryError` included",
            quoted(cx, event.place, "this handler")
        );
        let mut f = finding(CODE, event, message, event.place, "neither raises nor logs the error");
        f.world = World::Cuda;
        if let Some(said) = *said {
            f = f.related(said, "does not name the error");
        }
        let expected = "catch only the exceptions that you expect";
        let head = text(cx, event.place).and_then(|head| head.strip_prefix("except")?.strip_suffix(':'));
        let help = match head.map(|head| head.rsplit_once(" as ").ok_or(head.trim())) {
            Some(Ok((_, name))) => format!("log `{name}`, or {expected}"),
            Some(Err(types)) => {
                let types = if types.is_empty() { "Exception" } else { types };
                format!("write `except {types} as error:` and log `error`, or {expected}")
            }
            None => format!("{expected}, and raise or log the others"),
        };
        Some(with_stack(f, event).help(help))
    }
}
