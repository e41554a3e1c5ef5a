//! SD702 half-on-cpu: half precision although the chosen device may be the CPU.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::quoted;
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(702);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::HalfOnCpu { moved } = &event.kind else { return None };
        if event.is_guess() {
            return None;
        }
        let half = quoted(cx, event.place, "this model");
        let message = format!(
            "{half} stays in `float16` if the chosen device is the CPU, where `float16` is slow and some operators do not support it"
        );
        let mut f = finding(CODE, event, message, event.place, "`float16` on every device");
        f.world = World::NoCuda;
        if let Some(moved) = moved.filter(|m| *m != event.place) {
            f = f.related(moved, "moved to the chosen device here");
        }
        Some(
            with_stack(f, event)
                .help("choose the dtype with the device, and convert with `.to(device, dtype)` in place of `.half()`: `dtype = torch.float16 if device.type == \"cuda\" else torch.float32`"),
        )
    }
}
