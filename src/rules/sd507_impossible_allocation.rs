//! SD507 impossible-allocation: an allocation larger than any accelerator's memory.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::quoted;
use crate::rules::shared::events::{finding, with_stack};
use crate::world::{World, gibibytes};

pub(super) const CODE: Code = Code(507);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Allocation { bytes, .. } = &event.kind else { return None };
        if *bytes <= cx.limits.max_accelerator_memory {
            return None;
        }
        let most = gibibytes(cx.limits.max_accelerator_memory);
        let message = format!(
            "{} takes {}, and no accelerator has more than {most}",
            quoted(cx, event.place, "this tensor"),
            gibibytes(*bytes)
        );
        let mut f = finding(CODE, event, message, event.place, "no accelerator can allocate this");
        f.world = World::FreeBelow(*bytes);
        Some(with_stack(f, event).help("check the sizes, or keep the tensor on the CPU and move parts of it"))
    }
}
