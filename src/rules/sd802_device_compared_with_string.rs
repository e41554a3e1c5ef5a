//! SD802 device-compared-with-string: a device is compared with a value that it never equals.

use crate::finding::{Code, Finding};
use crate::flow::event::{Compared, Event, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::{quoted, text};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(802);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::DeviceCompared { with, how } = &event.kind else { return None };
        let left = quoted(cx, event.place, "this");
        let message = match how {
            Compared::Text => {
                format!("{left} is a `torch.device`, which never equals a string such as {with:?}")
            }
            Compared::Tensors | Compared::Indexed => {
                format!("{left} has an index, such as `cuda:0`, and so never equals `{with}`")
            }
            Compared::Type => format!("{left} never equals {with:?}, which is not the name of a device type"),
            Compared::Inside => {
                format!("{left} raises: a `torch.device` is not a string, so `in` cannot search it")
            }
        };
        let label = match how {
            Compared::Inside => "`TypeError` on every machine",
            _ => "never equal",
        };
        let mut f = finding(CODE, event, message, event.place, label);
        if *how != Compared::Tensors || !f.world.has_cuda() {
            f.world = World::Always;
        }
        // On a machine with only a CPU, no device is the one that the code compares with, so the result is right by chance.
        f.shows_with_accelerator = *how != Compared::Inside && !with.starts_with("cpu");
        let remedy = (*how == Compared::Text).then_some(Remedy::CompareType(event.place));
        Some(with_stack(f, event).help(help(*how, with, text(cx, event.place))).remedy(remedy))
    }
}

/// What to compare instead; `left` is the device in the source.
fn help(how: Compared, with: &str, left: Option<&str>) -> String {
    let kind =
        with.split(':').next().filter(|kind| kind.bytes().all(|b| b.is_ascii_lowercase())).unwrap_or("cuda");
    let device = left.unwrap_or("device");
    match how {
        Compared::Type => {
            "use a device type without an index, such as `\"cuda\"`, `\"cpu\"` or `\"mps\"`".to_owned()
        }
        Compared::Text if with.contains(':') => {
            format!("compare devices: `{device} == torch.device({with:?})`")
        }
        Compared::Inside => {
            let sides = left.and_then(|text| {
                text.split_once(" not in ")
                    .map(|(_, device)| (device, "!="))
                    .or_else(|| text.split_once(" in ").map(|(_, device)| (device, "==")))
            });
            let (device, operator) = sides.unwrap_or(("device", "=="));
            format!("compare the type: `{device}.type {operator} \"{kind}\"`")
        }
        _ => format!("compare the type: `{device}.type == \"{kind}\"`"),
    }
}
