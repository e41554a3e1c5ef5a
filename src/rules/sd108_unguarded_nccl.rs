//! SD108 unguarded-nccl: a process group of NCCL on a path that does not imply CUDA.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::chosen;
use crate::rules::shared::assumptions::assume_no_cuda;
use crate::rules::shared::events::{finding, with_also, with_stack};

pub(super) const CODE: Code = Code(108);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Nccl = &event.kind else { return None };
        if event.is_guess() || chosen(event, cx) {
            return None;
        }
        let message = "NCCL needs CUDA, and nothing here has asked whether it is there".to_owned();
        let f = finding(CODE, event, message, event.place, "raises without a GPU");
        Some(
            with_also(assume_no_cuda(with_stack(f, event), event, cx), event)
                .help("choose the back end: `\"nccl\" if torch.cuda.is_available() else \"gloo\"`")
                .remedy([Remedy::Choose {
                    literal: event.place,
                    check: "torch.cuda.is_available",
                    otherwise: "gloo",
                }]),
        )
    }
}
