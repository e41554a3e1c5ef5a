//! Findings about two tensors that meet, and the origins of their devices.

use crate::finding::{Code, Finding, Label};
use crate::flow::event::{Event, Kind, Meeting, Operand};
use crate::flow::value::Reason;
use crate::rules::check::Context;
use crate::rules::shared::assumptions::of_meeting;
use crate::rules::shared::events::{finding, origin, with_stack};
use crate::span::Place;

pub fn mismatch(event: &Event) -> Option<(Meeting, &str, &Operand, &Operand)> {
    match &event.kind {
        Kind::Mismatch { meeting, what, stray, other } => Some((*meeting, what, stray, other)),
        _ => None,
    }
}

/// A finding at the operation, with both sides and the places where their devices were chosen.
pub fn meeting_finding(code: Code, event: &Event, message: String, cx: &Context<'_>) -> Option<Finding> {
    let (_, _, stray, other) = mismatch(event)?;
    let f = finding(code, event, message, event.place, "the two devices meet here");
    let mut f = sides(f, stray, other);
    f.stray_from = made(stray).map(|(place, _)| place);
    // A device literal alone is no mistake.
    f.suspects.extend(stray.chain.iter().filter(|s| s.reason != Reason::Literal).map(|s| s.place));
    Some(with_stack(f, event).assume(of_meeting(event, cx)))
}

fn sides(mut f: Finding, stray: &Operand, other: &Operand) -> Finding {
    for side in [stray, other] {
        if side.place != f.primary.place && !f.places().any(|p| p == side.place) {
            f.related.push(Label::new(side.place, format!("on {}", side.device_in_words())));
        }
    }
    let f = origins(f, stray);
    origins(f, other)
}

/// Labels for one side: the last three places that decided its device.
pub fn origins(mut f: Finding, side: &Operand) -> Finding {
    let mut steps: Vec<_> =
        side.chain.iter().filter(|s| s.reason != Reason::Given && s.reason != Reason::None).collect();
    steps.truncate(3);
    for step in steps {
        if !f.places().any(|p| p == step.place) {
            f = f.related(step.place, origin(step, &side.device_in_words()));
        }
    }
    f
}

/// Where a tensor was made on the CPU, and how.
pub fn made(side: &Operand) -> Option<(Place, Reason)> {
    side.chain
        .last()
        .filter(|s| matches!(s.reason, Reason::Default | Reason::Host | Reason::Typed))
        .map(|s| (s.place, s.reason))
}
