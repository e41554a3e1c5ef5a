//! SD201 mixed-device-operation: an operation on tensors of two devices.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Meeting, Operand};
use crate::rules::check::{Check, Context};
use crate::rules::shared::callers::{as_tests_like, callers_decide};
use crate::rules::shared::meeting_words::{
    MAX_OPERAND, is_device_argument, quoted, raises, raises_here, with_method,
};
use crate::rules::shared::meetings::{meeting_finding, mismatch};
use crate::rules::shared::naming::Spot;
use crate::rules::shared::one_device::on_one_device;

pub(super) const CODE: Code = Code(201);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let (meeting, ..) = mismatch(event)?;
        (meeting != Meeting::ModuleInput).then(|| plain_meeting(CODE, event, cx))?
    }
}

/// Two tensors that meet, if neither a caller nor a test decides their devices.
pub(super) fn plain_meeting(code: Code, event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let (meeting, _, stray, other) = mismatch(event)?;
    if matches!(meeting, Meeting::Generator | Meeting::CpuOnly | Meeting::OldConstructor | Meeting::Data)
        || callers_decide(event, other, cx)
        || as_tests_like(event, other, cx)
    {
        return None;
    }
    let remedies = on_one_device(event, stray, other, cx);
    let mut f = meeting_finding(code, event, raises(event, cx)?, cx)?;
    f.primary.text = raises_here(event, cx);
    Some(f.help(move_one(event, stray, other, cx)).remedy(remedies))
}

/// The help: which of the two tensors to move, as code if both have names.
pub(super) fn move_one(event: &Event, stray: &Operand, other: &Operand, cx: &Context<'_>) -> String {
    let spot = Spot::new(cx, event.place);
    let device = if is_device_argument(other.place, cx) {
        quoted(other.place, MAX_OPERAND, cx).map(|device| device.trim_matches('`').to_owned())
    } else {
        spot.and_then(|spot| spot.device_for(stray, other))
    };
    let to = device.map(|device| format!(".to({device})"));
    match (to, with_method(stray, event, "", cx)) {
        (Some(to), moved) => match moved.and_then(|_| with_method(stray, event, &to, cx)) {
            Some(moved) => format!("move one of them: `{moved}`"),
            None => format!("move the tensor that is on {}: `{to}`", stray.device_in_words()),
        },
        (None, Some(moved)) => {
            let other = Some(other.place).filter(|&place| place != event.place);
            let other = other.and_then(|place| quoted(place, MAX_OPERAND, cx));
            let other = other.unwrap_or_else(|| "the other tensor".to_owned());
            format!("move `{moved}` to the device of {other}")
        }
        (None, None) => "move one of the tensors to the device of the other".to_owned(),
    }
}
