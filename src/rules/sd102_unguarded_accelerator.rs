//! SD102 unguarded-accelerator: another accelerator is used on a path without a check for it.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::{decides_all, home, written_for};
use crate::rules::shared::events::{with_also, with_stack};
use crate::rules::shared::unchecked_use::Use;

pub(super) const CODE: Code = Code(102);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Use { what, origin, backend: Some(b), how, .. } = &event.kind else { return None };
        let name = b.name();
        if event.is_guess() || written_for(event.place, name, cx) {
            return None;
        }
        let (place, _) = home(event, *origin);
        let asked = match name {
            "mps" => Some("torch.backends.mps.is_available"),
            "xpu" => Some("torch.xpu.is_available"),
            // The module of a plug-in, such as `torch.npu`, may not exist.
            _ => None,
        };
        let check =
            asked.map_or_else(|| format!("torch.{name}.is_available()"), |asked| format!("{asked}()"));
        let used = Use {
            event,
            what,
            how: *how,
            place,
            accelerator: &name.to_uppercase(),
            device: name,
            check: &check,
        };
        let remedy = asked.filter(|_| decides_all(event, place, cx)).map(|check| Remedy::Choose {
            literal: place,
            check,
            otherwise: "cpu",
        });
        Some(with_also(with_stack(used.finding(CODE, cx), event), event).remedy(remedy))
    }
}
