//! SD403 visible-devices-set-too-late: a variable that the program sets after CUDA has read it.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::{quoted, text};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(403);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::EnvironmentTooLate { variable, first } = &event.kind else { return None };
        let user = quoted(cx, *first, "another call");
        let message =
            format!("`{variable}` is set after {user} has initialised CUDA: the new value has no effect");
        let mut f = finding(CODE, event, message, event.place, "has no effect here");
        f.world = World::Cuda;
        if *first != event.place {
            f = f.related(*first, "initialises CUDA, which reads the variable");
        }
        let help = match text(cx, *first) {
            Some(first) => {
                format!("set `{variable}` before `{first}`, or in the shell that starts the program")
            }
            None => format!("set `{variable}` first, or in the shell that starts the program"),
        };
        Some(with_stack(f, event).help(help))
    }
}
