//! SD106 legacy-cuda-tensor-type: a type such as `torch.cuda.FloatTensor`, which needs CUDA.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, UseKind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::chosen;
use crate::rules::shared::assumptions::assume_no_cuda;
use crate::rules::shared::events::{finding, with_also, with_stack};

pub(super) const CODE: Code = Code(106);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Use { what, how: UseKind::LegacyType, backend: None, .. } = &event.kind else {
            return None;
        };
        if event.is_guess() || chosen(event, cx) {
            return None;
        }
        let message =
            format!("{what} names a CUDA tensor type, and nothing here has asked whether CUDA is there");
        let f = finding(CODE, event, message, event.place, "a legacy CUDA tensor type");
        Some(
            with_also(assume_no_cuda(with_stack(f, event), event, cx), event)
                .help("use `device=` with a device chosen by `torch.cuda.is_available()`"),
        )
    }
}
