//! SD204 default-device-tensor: a tensor that is made on the CPU by default, and meets one that is elsewhere.

use crate::finding::{Code, Finding};
use crate::flow::event::{DeviceName, Event, Meeting};
use crate::flow::value::Reason;
use crate::rules::check::{Check, Context};
use crate::rules::shared::assumptions::of_meeting;
use crate::rules::shared::callers::{as_tests_like, callers_decide};
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::meetings::{made, mismatch};
use crate::rules::shared::naming::Spot;
use crate::rules::shared::one_device::on_one_device;

pub(super) const CODE: Code = Code(204);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        default_device(event, cx)
    }
}

/// The tensor that was made, if who decides where the other one is has no say in it.
pub(super) fn default_device(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let (meeting, what, stray, other) = mismatch(event)?;
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
        _ => "always made on the CPU",
    };
    let there = other.device.in_words();
    let message = format!("a tensor on the CPU meets one on {there} in {what}");
    let then = format!("meets a tensor on {there} here");
    let f = finding(CODE, event, message, place, text).related(event.place, then);
    let spot = Spot::new(cx, place);
    let there = spot.as_ref().and_then(|spot| Some((spot, spot.device(other)?)));
    let help = match there {
        Some((spot, device)) => match spot.corrected(how, &device) {
            Some(line) => format!("make it where the other one is: `{line}`"),
            None if how == Reason::Default => format!("make it where the other one is: `device={device}`"),
            None => format!("move it to where the other one is: `.to({device})`"),
        },
        None => "make it on the device of the tensor that it meets".to_owned(),
    };
    Some(
        with_stack(f, event)
            .assume(of_meeting(event, cx))
            .help(help)
            .remedy(on_one_device(event, stray, other, cx)),
    )
}
