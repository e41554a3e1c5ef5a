//! SD204 default-device-tensor: an operation on a tensor that is made on the CPU by default and a tensor on another device.

use crate::finding::{Code, Finding};
use crate::flow::event::{DeviceName, Event, Meeting};
use crate::flow::value::Reason;
use crate::rules::check::{Check, Context};
use crate::rules::shared::assumptions::of_meeting;
use crate::rules::shared::callers::{as_tests_like, callers_decide};
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::meeting_words::{MAX_OPERAND, quoted, raises, raises_here, with_method};
use crate::rules::shared::meetings::{made, mismatch};
use crate::rules::shared::naming::Spot;
use crate::rules::shared::one_device::on_one_device;
use crate::span::Place;

pub(super) const CODE: Code = Code(204);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        default_device(event, cx)
    }
}

/// The created tensor, unless a caller or a test decides the device of the other one.
pub(super) fn default_device(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let (meeting, _, stray, other) = mismatch(event)?;
    if matches!(meeting, Meeting::Generator | Meeting::CpuOnly | Meeting::OldConstructor | Meeting::Data) {
        return None;
    }
    let (DeviceName::WithModule | DeviceName::Varies(_)) = other.device else { return None };
    if stray.device != DeviceName::Known("cpu".to_owned()) {
        return None;
    }
    let (place, how) = made(stray)?;
    if callers_decide(event, other, cx) || as_tests_like(event, other, cx) {
        return None;
    }
    if matches!(&other.device, DeviceName::Varies(_))
        && other.chain.iter().any(|s| matches!(s.reason, Reason::Made | Reason::Moved))
    {
        return None;
    }
    let text = match how {
        Reason::Default => "made without `device=`: on the CPU",
        Reason::Typed => "made on the CPU",
        _ => "always on the CPU",
    };
    let f = finding(CODE, event, raises(event, cx)?, place, text);
    let f = f.related(event.place, raises_here(event, cx));
    let help = make_there(event, place, how, cx)?;
    Some(
        with_stack(f, event)
            .assume(of_meeting(event, cx))
            .help(help)
            .remedy(on_one_device(event, stray, other, cx)),
    )
}

/// The code that creates the tensor on the device of the other one, or moves it there.
fn make_there(event: &Event, place: Place, how: Reason, cx: &Context<'_>) -> Option<String> {
    let (_, _, stray, other) = mismatch(event)?;
    let spot = Spot::new(cx, place);
    // In one expression, both tensors keep their names.
    let beside = || {
        let one = event.place.file == place.file && event.place.span.contains(place.span);
        one.then(|| with_method(other, event, ".device", cx))?
    };
    if let Some((spot, device)) =
        spot.as_ref().and_then(|spot| Some((spot, spot.device(other).or_else(beside)?)))
    {
        return Some(match spot.corrected(how, &device) {
            Some(line) if how == Reason::Default => format!("pass `device=`: `{line}`"),
            Some(line) => format!("move it to the same device: `{line}`"),
            None if spot.function().is_some_and(|path| path.starts_with("torch.distributions.")) => {
                format!("give the distribution tensors on the same device: `device={device}`")
            }
            None if how == Reason::Default => format!("pass `device={device}`"),
            None => format!("move it to the same device: `.to({device})`"),
        });
    }
    // The other tensor has no name where the first one is created.
    let device = Spot::new(cx, event.place).and_then(|spot| spot.device_for(stray, other));
    if let Some(device) = device
        && let Some(moved) = with_method(stray, event, &format!(".to({device})"), cx)
    {
        return Some(format!("move it where it is used: `{moved}`"));
    }
    let named = Some(other.place).filter(|&at| at != event.place).and_then(|at| quoted(at, MAX_OPERAND, cx));
    let named = named.unwrap_or_else(|| "the other tensor".to_owned());
    Some(if how == Reason::Default {
        format!("make it on the device of {named}: pass `device=`")
    } else {
        format!("move it to the device of {named}: `.to(…)`")
    })
}
