//! Findings about events: the calls that lead there, and the other places of the same cause.

use crate::finding::{Code, Finding, Label, Role};
use crate::flow::event::{Bite, Event, Kind, Step};
use crate::flow::value::Reason;
use crate::span::Place;

/// More labels than this say nothing more.
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
    // The outermost call is in the file that the finding belongs to. Of two tensors that meet elsewhere the innermost one there
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

/// Later uses that go wrong for the same reason: at most this many are told.
const MAX_ALSO: usize = 12;

/// What is said of these.
const ALSO: &str = "needs it, too";

/// What is said of what does not need a device but raises on it.
pub const ALSO_RAISES: &str = "raises there, too";

/// Adds the later uses that need the same.
pub fn with_also(f: Finding, event: &Event) -> Finding {
    with_also_said(f, event, ALSO)
}

/// Adds the later places of the same cause, with these words.
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

/// A reason in words.
pub fn reason(step: &Step) -> &'static str {
    match step.reason {
        Reason::Default => "made here without `device=`",
        Reason::Made => "made here on that device",
        Reason::Host | Reason::Typed => "made here, on the CPU",
        Reason::Moved => "moved here",
        Reason::Literal => "the device is written here",
        Reason::Given => "given from outside",
        Reason::Batch => "batches of a `DataLoader` are on the CPU",
        Reason::Module => "the module is made here",
        Reason::Loaded => "loaded here",
        Reason::Pinned => "pinned here",
        Reason::Unwaited => "copied here",
        Reason::Kept => "kept here as a plain attribute",
        Reason::Stored => "kept here in an attribute",
        Reason::Defaulted => "the device is left to its default here",
        Reason::Text | Reason::Number => "named here",
        Reason::Refused => "made of both here",
        Reason::None => "here",
    }
}
