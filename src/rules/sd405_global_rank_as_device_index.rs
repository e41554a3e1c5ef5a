//! SD405 global-rank-as-device-index: a GPU by the number of a process among those of all machines.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_also, with_stack};
use crate::rules::shared::test_code::in_tests;
use crate::world::World;

pub(super) const CODE: Code = Code(405);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::GlobalRank = &event.kind else { return None };
        // Tests run on one machine.
        if event.is_guess() || in_tests(event.place, cx) {
            return None;
        }
        let world = match event.bite.world {
            other @ World::With(_) => other,
            _ => World::Cuda,
        };
        let what = if world == World::Cuda { "GPU" } else { "device" };
        let message = format!(
            "the global rank is no device index: on the second machine there is no {what} of that number"
        );
        let mut f = finding(CODE, event, message, event.place, "counts processes of all machines");
        f.world = world;
        Some(
            with_stack(with_also(f, event), event)
                .help("take the local one: `int(os.environ[\"LOCAL_RANK\"])`"),
        )
    }
}
