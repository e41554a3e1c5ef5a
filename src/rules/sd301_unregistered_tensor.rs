//! SD301 unregistered-tensor: a plain tensor attribute that a module does not move.

use crate::finding::{Code, Finding};
use crate::flow::event::{DeviceName, Event, Meeting};
use crate::flow::value::Reason;
use crate::ir::Expr;
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::assumptions::of_meeting;
use crate::rules::shared::callers::as_tests_like;
use crate::rules::shared::code::{assigned, quotable, variable};
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::functions::function_of;
use crate::rules::shared::meetings::{made, mismatch};
use crate::span::Place;

pub(super) const CODE: Code = Code(301);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let (meeting, what, stray, other) = mismatch(event)?;
        if matches!(meeting, Meeting::Generator | Meeting::CpuOnly | Meeting::OldConstructor | Meeting::Data)
        {
            return None;
        }
        let given = matches!(other.device, DeviceName::Varies(_)) && event.callers_decide;
        if given || as_tests_like(event, other, cx) {
            return None;
        }
        let step = stray.chain.iter().find(|s| matches!(s.reason, Reason::Kept | Reason::Stored))?;
        let place = step.place;
        let fits = match step.reason {
            // The tensor was moved to the module's device at that time and stays there. It need not be created elsewhere.
            Reason::Stored => {
                let before = stray.chain.iter().skip_while(|s| s.reason != Reason::Stored).nth(1);
                let explicit = before
                    .is_none_or(|s| !matches!(s.reason, Reason::Default | Reason::Host | Reason::Typed));
                explicit && matches!(other.device, DeviceName::Known(_))
            }
            _ => function_of(place, cx) != function_of(event.place, cx),
        };
        if stray.device != DeviceName::Known("cpu".to_owned()) || !fits {
            return None;
        }
        let attribute = variable(cx, place);
        let message = format!(
            "{} is not a buffer: `.to()` leaves it on the CPU, and {what} meets a tensor on {}",
            attribute.map_or_else(|| "this attribute".to_owned(), |name| format!("`{name}`")),
            other.device.in_words()
        );
        let f = finding(CODE, event, message, place, "a plain attribute, not a buffer");
        let mut f = f.related(event.place, format!("meets a tensor on {} here", other.device.in_words()));
        if let Some((made, _)) = made(stray).filter(|&(p, _)| p != place) {
            f = f.related(made, "made here: on the CPU");
        }
        let help = registered(place, attribute, cx);
        let remedy = (step.reason == Reason::Kept).then_some(Remedy::Register(place));
        Some(with_stack(f, event).assume(of_meeting(event, cx)).help(help).remedy(remedy))
    }
}

/// The help: how to turn the attribute into a buffer.
fn registered(place: Place, attribute: Option<&str>, cx: &Context<'_>) -> String {
    let value = assigned(cx, place);
    if let Some((_, Expr::List(_) | Expr::Tuple(_) | Expr::Dict(_) | Expr::Comp(_), _)) = value {
        return "register each of its tensors as a buffer, with `register_buffer`".to_owned();
    }
    let general = || "register it as a buffer, with `register_buffer`".to_owned();
    if let Some((_, Expr::IfElse(_), _)) = value {
        return general();
    }
    let Some((owner, name)) = attribute.and_then(|text| text.rsplit_once('.')) else { return general() };
    let code = |value| quotable(format!("{owner}.register_buffer(\"{name}\", {value}, persistent=False)"));
    let whole = value.and_then(|(.., value)| code(value));
    whole.or_else(|| code("…")).map_or_else(general, |code| format!("register it as a buffer: `{code}`"))
}
