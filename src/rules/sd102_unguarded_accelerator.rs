//! SD102 unguarded-accelerator: another accelerator on a path that has not asked whether it is there.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::{decides_all, home, written_for};
use crate::rules::shared::events::{finding, with_also, with_stack};

pub(super) const CODE: Code = Code(102);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Use { what, origin, backend: Some(b), .. } = &event.kind else { return None };
        let name = b.name();
        if event.is_guess() || written_for(event.place, name, cx) {
            return None;
        }
        let (place, other) = home(event, *origin);
        let message =
            format!("{what} needs {}, and nothing here has asked whether it is there", name.to_uppercase());
        let mut f = finding(CODE, event, message, place, &format!("raises without {}", name.to_uppercase()));
        if let Some(o) = other {
            f = f.related(o, format!("{what} uses it"));
        }
        let asked = match name {
            "mps" => Some("torch.backends.mps.is_available"),
            "xpu" => Some("torch.xpu.is_available"),
            // What a plug-in brings may not be there to be asked.
            _ => None,
        };
        let check = if name == "mps" {
            "torch.backends.mps.is_available()".to_owned()
        } else {
            format!("torch.{name}.is_available()")
        };
        Some(
            with_also(with_stack(f, event), event)
                .help(format!("choose the device by a check: `\"{name}\" if {check} else \"cpu\"`"))
                .remedy(asked.filter(|_| decides_all(event, place, cx)).map(|check| Remedy::Choose {
                    literal: place,
                    check,
                    otherwise: "cpu",
                })),
        )
    }
}
