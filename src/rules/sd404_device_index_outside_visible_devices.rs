//! SD404 device-index-outside-visible-devices: an index among the machine's GPUs in place of one among the visible GPUs.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::{line_with, quoted};
use crate::rules::shared::events::{finding, with_stack};
use crate::span::Place;
use crate::world::World;

pub(super) const CODE: Code = Code(404);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::OutsideVisible { index, visible, set } = &event.kind else { return None };
        let (message, label, help) = match (index, visible) {
            (Some(i), Some(visible)) => (
                format!(
                    "`cuda:{i}` does not exist: `CUDA_VISIBLE_DEVICES` is `{visible}`, and PyTorch sees {}",
                    seen(visible)
                ),
                "there is no such GPU in this process",
                help(cx, event.place, *i, visible),
            ),
            _ => (
                format!(
                    "{} takes its index from `CUDA_VISIBLE_DEVICES`, but PyTorch numbers the visible GPUs from 0",
                    quoted(cx, event.place, "this device")
                ),
                "another GPU, or none",
                "write the index among the visible GPUs, which start at 0: after `CUDA_VISIBLE_DEVICES=\"2,3\"`, GPU 2 is `cuda:0`"
                    .to_owned(),
            ),
        };
        let mut f = finding(CODE, event, message, event.place, label);
        f.world = World::Cuda;
        if let Some(set) = set.filter(|s| *s != event.place) {
            f = f.related(set, "the visible GPUs are set here");
        }
        Some(with_stack(f, event).help(help))
    }
}

/// The devices that exist if the variable has this value.
fn seen(visible: &str) -> String {
    match visible.split(',').count() {
        1 => "only `cuda:0`".to_owned(),
        2 => "only `cuda:0` and `cuda:1`".to_owned(),
        n => format!("only `cuda:0` to `cuda:{}`", n - 1),
    }
}

/// The line with the index of the same GPU in this process, if the GPU is visible.
fn help(cx: &Context<'_>, place: Place, index: u32, visible: &str) -> String {
    let Some(new) = visible.split(',').position(|n| n.trim().parse() == Ok(index)) else {
        return format!("use one of the visible GPUs: {}", seen(visible).trim_start_matches("only "));
    };
    let old = cx.sources.text(place);
    let code = if old == index.to_string() {
        Some(new.to_string())
    } else {
        let named = format!("cuda:{index}");
        old.contains(&named).then(|| old.replacen(&named, &format!("cuda:{new}"), 1))
    };
    match code.and_then(|code| line_with(cx, place, &code)) {
        Some(line) => format!("GPU {index} of the machine is `cuda:{new}` in this process: `{line}`"),
        None => format!("use `cuda:{new}`: it is GPU {index} of the machine in this process"),
    }
}
