//! SD207 cpu-only-argument: a tensor on a GPU where PyTorch wants one on the CPU.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Meeting};
use crate::rules::check::{Check, Context};
use crate::rules::shared::assumptions::of_meeting;
use crate::rules::shared::events::{finding, with_also, with_stack};
use crate::rules::shared::meetings::{mismatch, origins};

pub(super) const CODE: Code = Code(207);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let (meeting, what, stray, _) = mismatch(event)?;
        if meeting == Meeting::OldConstructor {
            let device = stray.device.in_words();
            let message =
                format!("{what} makes tensors on the CPU and nowhere else, and is asked for {device}");
            let f = finding(CODE, event, message, event.place, "takes `device=` for the CPU only");
            return Some(
                with_stack(origins(f, stray), event)
                    .assume(of_meeting(event, cx))
                    .help("`torch.tensor(…, device=…)` or `torch.empty(…, device=…)`"),
            );
        }
        if meeting != Meeting::CpuOnly {
            return None;
        }
        let message =
            format!("{what} wants this tensor on the CPU, and it is on {}", stray.device.in_words());
        let f = finding(CODE, event, message, event.place, "must be on the CPU");
        Some(
            with_also(with_stack(origins(f, stray), event).assume(of_meeting(event, cx)), event)
                .help("pass `.cpu()` of it"),
        )
    }
}
