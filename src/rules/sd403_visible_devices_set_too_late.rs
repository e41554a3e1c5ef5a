//! SD403 visible-devices-set-too-late: a variable that CUDA has read before it is set.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(403);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::EnvironmentTooLate { variable, first } = &event.kind else { return None };
        let message = format!("`{variable}` is set after CUDA was asked, which has read it already");
        let mut f = finding(CODE, event, message, event.place, "has no effect any more");
        f.world = World::Cuda;
        if *first != event.place {
            f = f.related(*first, "CUDA is asked here");
        }
        Some(with_stack(f, event).help("set it before, or in the shell that starts the program"))
    }
}
