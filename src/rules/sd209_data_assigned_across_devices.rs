//! SD209 data-assigned-across-devices: an assignment to `.data` from another device.

use crate::finding::{Code, Finding};
use crate::flow::event::{DeviceName, Event, Meeting, Operand};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::{assigned, quotable, text};
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
        let target = text(cx, event.place).unwrap_or(".data");
        let message = format!(
            "`{target}` and its new value are on different devices: {} and {}",
            other.device.in_words(),
            stray.device.in_words()
        );
        let value = assigned(cx, event.place).map_or("…", |(_, _, value)| value);
        let code =
            quotable(format!("{target}.copy_({value})")).unwrap_or_else(|| format!("{target}.copy_(…)"));
        let help = format!("copy the values, which works across devices: `{code}`");
        Some(meeting_finding(CODE, event, message, cx)?.help(help))
    }
}
