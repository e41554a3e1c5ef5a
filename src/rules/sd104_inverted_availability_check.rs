//! SD104 inverted-availability-check: CUDA is used in the wrong branch of a check, or the check itself needs a plug-in.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::{home, written_for};
use crate::rules::shared::assumptions::assume_no_cuda;
use crate::rules::shared::code::quoted;
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(104);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        inverted_check(event, cx).or_else(|| missing_plugin(event, cx))
    }
}

/// SD104 inverted-availability-check
fn inverted_check(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Use { what, origin, backend: None, inverted: true, .. } = &event.kind else { return None };
    let (place, other) = home(event, *origin);
    let used = quoted(cx, event.place, what);
    let (message, label, help) = match event.bite.world {
        World::With(b) => {
            let name = b.name().to_uppercase();
            (
                format!("{used} uses CUDA, but the condition only checks for {name}"),
                "the condition does not check for CUDA",
                format!("check `torch.cuda.is_available()` here, or use `\"{}\"` as the device", b.name()),
            )
        }
        _ => (
            format!("{used} uses CUDA in the branch where CUDA is not available"),
            "CUDA is not available here",
            "swap the two branches, so that CUDA is used only if `torch.cuda.is_available()` is true"
                .to_owned(),
        ),
    };
    let mut f = finding(CODE, event, message, place, label);
    if let Some(o) = other {
        f = f.related(o, "raises here");
    }
    Some(assume_no_cuda(with_stack(f, event), event, cx).help(help))
}

/// SD104, too: `torch.npu.is_available()` where `torch.npu` may not exist.
fn missing_plugin(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Plugin { function, backend } = &event.kind else { return None };
    let name = backend.name();
    if event.is_guess() || written_for(event.place, name, cx) {
        return None;
    }
    let message = format!(
        "`torch.{name}` exists only with its plug-in, and no import of it comes before `{function}()`"
    );
    let f = finding(CODE, event, message, event.place, "`AttributeError` without the plug-in");
    let checked = format!("hasattr(torch, \"{name}\") and {function}()");
    Some(
        with_stack(f, event)
            .help(format!("import the plug-in first, or check that the module exists: `{checked}`")),
    )
}
