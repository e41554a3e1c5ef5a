//! SD104 inverted-availability-check: a use on the wrong side of its check, or before what must be there to be asked.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::{home, written_for};
use crate::rules::shared::assumptions::assume_no_cuda;
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
    let message = match event.bite.world {
        World::With(b) => format!("CUDA is used where only {} was checked for", b.name().to_uppercase()),
        _ => "CUDA is used in the branch for machines that do not have it".to_owned(),
    };
    let mut f = finding(CODE, event, message, place, "CUDA, on the wrong side of the check");
    if let Some(o) = other {
        f = f.related(o, format!("{what} uses it"));
    }
    Some(assume_no_cuda(with_stack(f, event), event, cx).help("swap the two branches of the check"))
}

/// SD104, too: `torch.npu.is_available()` where `torch.npu` may not exist.
fn missing_plugin(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Plugin { function, backend } = &event.kind else { return None };
    let name = backend.name();
    if event.is_guess() || written_for(event.place, name, cx) {
        return None;
    }
    let message = format!(
        "`{function}()` is asked before anything says that `torch.{name}` exists: only its plug-in brings it"
    );
    let f = finding(CODE, event, message, event.place, "`AttributeError` without the plug-in");
    Some(
        with_stack(f, event)
            .help(format!("import the plug-in first, or ask `hasattr(torch, \"{name}\")` before")),
    )
}
