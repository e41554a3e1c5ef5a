//! SD702 half-on-cpu: half precision where the chosen device is the CPU.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(702);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::HalfOnCpu { moved } = &event.kind else { return None };
        if event.is_guess() {
            return None;
        }
        let message =
            "half precision stays where the chosen device is the CPU: slow there, and not for every operator";
        let mut f = finding(CODE, event, message.to_owned(), event.place, "whatever the device is");
        f.world = World::NoCuda;
        if let Some(moved) = moved.filter(|m| *m != event.place) {
            f = f.related(moved, "goes to the chosen device here");
        }
        Some(
            with_stack(f, event)
                .help("choose the type with the device: `float16` for CUDA, `float32` for the CPU"),
        )
    }
}
