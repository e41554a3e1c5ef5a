//! SD802 device-compared-with-string: a device that is compared with what it never equals.

use crate::finding::{Code, Finding};
use crate::flow::event::{Compared, Event, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(802);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::DeviceCompared { with, how } = &event.kind else { return None };
        let message = match how {
            Compared::Text => format!("a `torch.device` never equals a string, not even {with:?}"),
            Compared::Tensors => format!("a tensor's device has an index and never equals `{with}`"),
            Compared::Indexed => format!("this device has an index and never equals `{with}`"),
            Compared::Type => format!("the type of no device is {with:?}"),
            Compared::Inside => {
                format!("{with:?} is looked for in a `torch.device`, which is no text and raises")
            }
        };
        let label = match how {
            Compared::Type => "never equal",
            Compared::Inside => "`TypeError` on every machine",
            _ => "compare `.type` instead",
        };
        let mut f = finding(CODE, event, message, event.place, label);
        if *how != Compared::Tensors || !f.world.has_cuda() {
            f.world = World::Always;
        }
        // Where there is only the CPU, no device is the one that is looked for, and the answer is right by chance.
        f.shows_with_accelerator = *how != Compared::Inside && !with.starts_with("cpu");
        if *how == Compared::Type {
            let help = "the types are `cuda`, `cpu`, `mps`, …, without an index: `.type == \"cuda\"`";
            return Some(with_stack(f, event).help(help));
        }
        let remedy = (*how == Compared::Text).then_some(Remedy::CompareType(event.place));
        Some(with_stack(f, event).help("compare its type: `.type == \"cuda\"`").remedy(remedy))
    }
}
