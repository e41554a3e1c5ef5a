//! SD201 mixed-device-operation: an operation on tensors of two devices.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Gives, Meeting, Operand};
use crate::rules::check::{Check, Context};
use crate::rules::shared::callers::{as_tests_like, callers_decide};
use crate::rules::shared::meetings::{meeting_finding, meets, mismatch};
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

/// Two tensors that meet, if neither a caller nor a test decides where they are.
pub(super) fn plain_meeting(code: Code, event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let (meeting, what, stray, other) = mismatch(event)?;
    if matches!(meeting, Meeting::Generator | Meeting::CpuOnly | Meeting::OldConstructor | Meeting::Data)
        || callers_decide(event, other, cx)
        || as_tests_like(event, other, cx)
    {
        return None;
    }
    let message = meets(what, stray, other);
    let remedies = on_one_device(event, stray, other, cx);
    Some(meeting_finding(code, event, message, cx)?.help(move_one(event, stray, other, cx)).remedy(remedies))
}

/// Which of two tensors one would move, by the names that they have where they meet.
fn move_one(event: &Event, stray: &Operand, other: &Operand, cx: &Context<'_>) -> String {
    let spot = Spot::new(cx, event.place);
    let name = spot.as_ref().and_then(|spot| spot.name(stray.place)).filter(|_| stray.gives == Gives::Tensor);
    match (name, spot.and_then(|spot| spot.device(other))) {
        (Some(name), Some(device)) => format!("move one of them: `{name}.to({device})`"),
        (None, Some(device)) => {
            format!("move the one that is on {}: `.to({device})`", stray.device.in_words())
        }
        (Some(name), None) => format!("move `{name}` to the device of the tensor that it meets"),
        (None, None) => "move one of them to the device of the other".to_owned(),
    }
}
