//! The execution order of the places of a finding.

use std::cmp::Reverse;

use super::check::Context;
use super::shared::functions::function_of;
use crate::finding::{Finding, Role};
use crate::flow::event::Event;
use crate::span::{FileId, Place};

/// A function, by its file and its range; `None`: the body of the file.
type Function = (FileId, Option<(u32, u32)>);

/// The places that lead to the event or follow from it, in execution order. The calls that lead there come last in their functions. Places
/// in one function are in the order of its text. Places in none of these functions come first.
pub(super) fn order(event: &Event, finding: &Finding, cx: &Context<'_>) -> Vec<Place> {
    let function = |place: Place| -> Function { (place.file, function_of(place, cx)) };
    let frames: Vec<Function> = event.stack.iter().copied().chain([event.place]).map(function).collect();
    let key = |place: &Place| {
        if let Some(call) = event.stack.iter().position(|site| site == place) {
            return (call + 1, true, place.span.end, Reverse(place.span.start));
        }
        let of = function(*place);
        match frames.iter().rposition(|frame| *frame == of) {
            // The parts of an expression are evaluated before the expression.
            Some(frame) => (frame + 1, false, place.span.end, Reverse(place.span.start)),
            None => (0, false, 0, Reverse(0)),
        }
    };
    let flow = finding.related.iter().filter(|label| label.role == Role::Flow);
    let mut places: Vec<Place> =
        [finding.primary.place].into_iter().chain(flow.map(|label| label.place)).collect();
    places.sort_by_key(key);
    places.dedup();
    places
}
