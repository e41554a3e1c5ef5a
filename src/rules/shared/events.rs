//! Findings about events: the calls that lead there, and the other places of the same cause.

use crate::finding::{Code, Finding, Label, Role};
use crate::flow::event::{Bite, Event, Kind, Step};
use crate::flow::value::Reason;
use crate::span::Place;

/// How many other places a finding shows at most.
pub const MAX_RELATED: usize = 6;

/// A finding about an event, with the event's world and condition, and the calls that led there.
pub fn finding(code: Code, event: &Event, message: String, primary: Place, label: &str) -> Finding {
    let mut f = Finding::new(code, event.bite.world, message, Label::new(primary, label));
    f.condition = condition(&event.bite);
    f.premises.clone_from(&event.bite.premises);
    f.also.clone_from(&event.bite.also);
    f.behind_cuda = event.bite.behind_cuda;
    f
}

fn condition(bite: &Bite) -> Option<String> {
    if bite.conditions.is_empty() {
        return None;
    }
    Some(format!("when {}", bite.conditions.join(" and ")))
}

/// Adds the calls that lead from the entry's file to the event.
pub fn with_stack(mut f: Finding, event: &Event) -> Finding {
    f.suspects.extend(event.stack.iter().rev());
    for &site in event.stack.iter().rev().take(3) {
        if f.related.len() < MAX_RELATED && !f.places().any(|p| p == site) {
            f.related.push(Label::call(site));
        }
    }
    // The outermost call is in the file of the finding. Of two tensors that meet in another file, the innermost place in the finding's file
    // says more.
    let own = |site: &&Place| event.stack.first().is_some_and(|first| first.file == site.file);
    let meets = matches!(event.kind, Kind::Mismatch { .. });
    let inner = event.stack.iter().rev().find(own).filter(|_| meets);
    for &site in inner.into_iter().chain(event.stack.first()) {
        if !f.places().any(|p| p == site) {
            f.related.push(Label::call(site));
        }
    }
    for &site in &event.stack {
        if !f.places().any(|p| p == site) {
            f.unshown.push(Label::call(site));
        }
    }
    f
}

/// How many later places that fail for the same reason a finding shows at most.
const MAX_ALSO: usize = 12;

/// The label of these places.
const ALSO: &str = "also needs it";

/// The label of a later place that does not need the device but raises on it.
pub const ALSO_RAISES: &str = "would also raise";

/// Adds the later uses that need the same.
pub fn with_also(f: Finding, event: &Event) -> Finding {
    with_also_said(f, event, ALSO)
}

/// Adds the later places of the same cause, with this label.
pub fn with_also_said(mut f: Finding, event: &Event, said: &str) -> Finding {
    for (n, also) in event.also.iter().enumerate() {
        let role = Role::Repeated { through: also.through.clone() };
        let label = Label { role, ..Label::new(also.place, said) };
        if f.places().any(|p| p == also.place) {
            continue;
        }
        if n < MAX_ALSO {
            f.related.push(label);
        } else {
            f.unshown.push(label);
        }
    }
    f
}

/// The origin of a device, without the device.
pub fn reason(step: &Step) -> &'static str {
    match step.reason {
        Reason::Default => "made here without `device=`",
        Reason::Made => "made here",
        Reason::Host | Reason::Typed => "made here on the CPU",
        Reason::Moved => "moved here",
        Reason::Literal => "the device is set here",
        Reason::Given => "a parameter",
        Reason::Batch => "batches of a `DataLoader` are on the CPU",
        Reason::Module => "the module is made here",
        Reason::Loaded => "loaded here",
        Reason::Pinned => "pinned here",
        Reason::Unwaited => "copied here",
        Reason::Kept => "stored here as a plain attribute",
        Reason::Stored => "stored here in an attribute",
        Reason::Defaulted => "this call uses the default device",
        Reason::Text | Reason::Number => "the device is named here",
        Reason::Refused => "the result of an operation that raises",
        Reason::None => "here",
    }
}

/// The origin of a device, with the device: "moved here to `cuda`".
pub fn origin(step: &Step, on: &str) -> String {
    let how = reason(step);
    match step.reason {
        Reason::Host | Reason::Typed | Reason::Batch if on == "the CPU" => how.to_owned(),
        Reason::Made | Reason::Loaded | Reason::Module => format!("{how} on {on}"),
        Reason::Moved | Reason::Unwaited => format!("{how} to {on}"),
        _ => format!("{how}: {}{on}", if is_device(step.reason) { "" } else { "on " }),
    }
}

/// Is the origin a device, and not a tensor?
const fn is_device(reason: Reason) -> bool {
    matches!(reason, Reason::Literal | Reason::Defaulted | Reason::Text | Reason::Number)
}
