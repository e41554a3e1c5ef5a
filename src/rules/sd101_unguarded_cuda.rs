//! SD101 unguarded-cuda: CUDA on a path that has not asked whether there is any.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, UseKind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::{chosen, decides_all, home};
use crate::rules::shared::assumptions::assume_no_cuda;
use crate::rules::shared::events::{finding, with_also, with_stack};

pub(super) const CODE: Code = Code(101);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Use { what, origin, backend: None, how, .. } = &event.kind else { return None };
        if event.is_guess() || chosen(event, cx) || *how == UseKind::Pinned {
            return None;
        }
        let (place, other) = home(event, *origin);
        let message = format!("{what} needs CUDA, and nothing here has asked whether it is there");
        let mut f = finding(CODE, event, message, place, "raises without CUDA");
        if let Some(o) = other {
            let text = if o == event.place {
                format!("{what} uses it here")
            } else {
                "the device is decided here".to_owned()
            };
            f = f.related(o, text);
        }
        let help = match how {
            UseKind::Query => "guard it: `if torch.cuda.is_available():`",
            _ => {
                "choose the device by a check: `device = \"cuda\" if torch.cuda.is_available() else \"cpu\"`, and move things with `.to(device)`"
            }
        };
        let check = "torch.cuda.is_available";
        let remedy = Remedy::Choose { literal: place, check, otherwise: "cpu" };
        let remedy = decides_all(event, place, cx).then_some(remedy);
        Some(with_also(assume_no_cuda(with_stack(f, event), event, cx), event).help(help).remedy(remedy))
    }
}
