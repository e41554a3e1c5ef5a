//! SD101 unguarded-cuda: CUDA is used on a path without a check for it.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, UseKind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::{chosen, decides_all, home};
use crate::rules::shared::assumptions::assume_no_cuda;
use crate::rules::shared::events::{with_also, with_stack};
use crate::rules::shared::unchecked_use::Use;

pub(super) const CODE: Code = Code(101);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Use { what, origin, backend: None, how, .. } = &event.kind else { return None };
        if event.is_guess() || chosen(event, cx) || *how == UseKind::Pinned {
            return None;
        }
        let (place, _) = home(event, *origin);
        let used = Use {
            event,
            what,
            how: *how,
            place,
            accelerator: "CUDA",
            device: "cuda",
            check: "torch.cuda.is_available()",
        };
        let f = used.finding(CODE, cx);
        let check = "torch.cuda.is_available";
        let remedy = Remedy::Choose { literal: place, check, otherwise: "cpu" };
        let remedy = decides_all(event, place, cx).then_some(remedy);
        Some(with_also(assume_no_cuda(with_stack(f, event), event, cx), event).remedy(remedy))
    }
}
