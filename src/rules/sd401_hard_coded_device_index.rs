//! SD401 hard-coded-device-index: a GPU with a literal index.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, UseKind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::home;
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::{line_with, quoted, stands_alone};
use crate::rules::shared::events::{finding, with_also, with_stack};
use crate::span::Place;
use crate::world::World;

pub(super) const CODE: Code = Code(401);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Use { what, origin, index: Some(i), backend: None, how, .. } = &event.kind else {
            return None;
        };
        if *i == 0 || matches!(how, UseKind::DeviceList | UseKind::Pinned) || event.is_guess() {
            return None;
        }
        let (place, _) = home(event, *origin);
        let needed = i + 1;
        let user = quoted(cx, event.place, what);
        let message = format!("{user} uses `cuda:{i}`: no check for {needed} GPUs comes before it");
        let raises = format!("raises with fewer than {needed} GPUs");
        let label = if place == event.place { &raises } else { "the index is written here" };
        let mut f = finding(CODE, event, message, place, label);
        f.world = World::FewerGpus(needed);
        if place != event.place {
            f = f.related(event.place, raises);
        }
        Some(with_also(with_stack(f, event), event).help(help(cx, place, *i)))
    }
}

/// The line with a check; also if the index is part of a string: `"cuda:1" if torch.cuda.device_count() > 1 else "cuda:0"`.
fn help(cx: &Context<'_>, place: Place, index: u32) -> String {
    let is_text = |place: &Place| {
        let plain = |quote: char| cx.sources.text(*place) == format!("{quote}cuda:{index}{quote}");
        ['"', '\''].into_iter().any(plain) && stands_alone(cx, *place)
    };
    let given = || CallAt::new(cx, place)?.argument(0, "device");
    let literal = Some(place).filter(is_text).or_else(|| given().filter(is_text));
    let checked = literal.and_then(|at| {
        let text = cx.sources.text(at);
        let first = text.replace(&format!(":{index}"), ":0");
        line_with(cx, at, &format!("{text} if torch.cuda.device_count() > {index} else {first}"))
    });
    match checked {
        Some(line) => format!("check the number of GPUs: `{line}`"),
        None => {
            format!("check `torch.cuda.device_count() > {index}` first, or take the index from the caller")
        }
    }
}
