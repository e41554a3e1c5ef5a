//! SD703 bfloat16-without-support-check: `bfloat16` on a GPU without a check that it is supported.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::quoted;
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(703);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Bfloat16 = &event.kind else { return None };
        let used = quoted(cx, event.place, "this");
        let message =
            format!("{used} uses `bfloat16` on a GPU without a check of `torch.cuda.is_bf16_supported()`");
        let mut f = finding(CODE, event, message, event.place, "slow or not supported on older GPUs");
        f.world = World::CapabilityBelow(8, 0);
        Some(with_stack(f, event).help(
            "use `bfloat16` only if `torch.cuda.is_bf16_supported(including_emulation=False)` is true, else `float16` on a GPU and `float32` on the CPU",
        ))
    }
}
