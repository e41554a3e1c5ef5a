//! SD503 swallowed-oom: a handler that drops every error of device work.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::test_code::has_tests;
use crate::world::World;

pub(super) const CODE: Code = Code(503);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Swallowed { said } = &event.kind else { return None };
        // What a test makes is small, and it is over soon. What a handler of another file drops, a call of that cannot mend.
        if has_tests(event.place, cx) || event.place.file != cx.file {
            return None;
        }
        let message =
            "this handler drops every error of the device work above it, out-of-memory errors included"
                .to_owned();
        let mut f = finding(CODE, event, message, event.place, "nothing of the error is kept");
        f.world = World::Cuda;
        if let Some(said) = *said {
            f = f.related(said, "does not say what happened");
        }
        Some(with_stack(f, event).help("catch what you expect, and let the rest through or log it"))
    }
}
