//! SD703 bfloat16-without-support-check: `bfloat16` on a GPU that nobody has asked for it.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(703);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::Bfloat16 = &event.kind else { return None };
        let message = "this is `bfloat16` on a GPU, and nothing here has asked whether it knows that type";
        let mut f =
            finding(CODE, event, message.to_owned(), event.place, "emulated, or not there, on older GPUs");
        f.world = World::CapabilityBelow(8, 0);
        Some(with_stack(f, event).help(
            "ask `torch.cuda.is_bf16_supported(including_emulation=False)`, and take `float16` otherwise",
        ))
    }
}
