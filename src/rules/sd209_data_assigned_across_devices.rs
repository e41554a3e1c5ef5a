//! SD209 data-assigned-across-devices: an assignment to `.data` from another device.

use crate::finding::{Code, Finding};
use crate::flow::event::{DeviceName, Event, Meeting, Operand};
use crate::rules::check::{Check, Context};
use crate::rules::shared::meetings::{meeting_finding, mismatch};

pub(super) const CODE: Code = Code(209);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let (Meeting::Data, _, stray, other) = mismatch(event)? else { return None };
        if event.symbolic && event.stack.len() > 1 {
            return None;
        }
        let known = |o: &Operand| matches!(o.device, DeviceName::Known(_));
        if !known(stray) || !known(other) {
            return None;
        }
        let message = format!(
            "`.data` is assigned across devices, {} and {}",
            stray.device.in_words(),
            other.device.in_words()
        );
        Some(meeting_finding(CODE, event, message, cx)?.help("copy the values instead: `.data.copy_(…)`"))
    }
}
