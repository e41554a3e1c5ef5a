//! SD202 module-input-mismatch: a module and its input on two devices.

mod averaged_copy;
mod input;
mod replicas;

use crate::finding::{Code, Finding, Label};
use crate::flow::event::{DeviceName, Entered, Event, Meeting, Operand};
use crate::flow::value::Reason;
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::sd201_mixed_device_operation::{move_one, plain_meeting};
use crate::rules::sd204_default_device_tensor::default_device;
use crate::rules::shared::callers::{as_tests_like, callers_decide};
use crate::rules::shared::meeting_words::{operation, raises};
use crate::rules::shared::meetings::{meeting_finding, mismatch};
use crate::rules::shared::one_device::on_one_device;
use crate::span::Place;
use crate::world::World;
use input::Input;

pub(super) const CODE: Code = Code(202);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let (meeting, what, stray, other) = mismatch(event)?;
        let called = handed_over(event, stray, other);
        // A weight that meets an argument in the module's own `forward`.
        let weight = matches!(meeting, Meeting::Operator | Meeting::Function)
            && stray.of_module != other.of_module
            && called.is_some();
        if meeting != Meeting::ModuleInput && !weight {
            return None;
        }
        let given = matches!(other.device, DeviceName::Varies(_))
            && other.chain.iter().all(|s| s.reason == Reason::Given);
        if given && (callers_decide(event, other, cx) || as_tests_like(event, other, cx)) {
            return None;
        }
        // Inside a method, the module's own device is symbolic: SD204 reports tensors that are created there.
        if matches!(other.device, DeviceName::WithModule) {
            let fits = meeting == Meeting::ModuleInput && default_device(event, cx).is_none();
            return fits.then(|| plain_meeting(CODE, event, cx))?;
        }
        let site = called.map_or(event.place, |call| call.site);
        let input = Input::of(site, called, (stray, other), cx);
        let message = match &input {
            Some(input) => input.message(&operation("the call", site, cx), what, (stray, other), event),
            None => raises(event, cx)?,
        };
        let mut f = meeting_finding(CODE, event, message, cx)?;
        "raises here".clone_into(&mut f.primary.text);
        if let Some(call) = called {
            let inner = std::mem::replace(&mut f.primary.place, call.site);
            f.related.retain(|l| l.place != call.site);
            f.related.insert(0, Label::new(inner, "this operation raises"));
            // A module is usually moved where it is constructed, so the finding shows that place.
            if let Some(made) = call.made.filter(|&m| f.related.iter().all(|l| l.place != m)) {
                f.related.insert(1, Label::new(made, "the module is made here"));
            }
            "the module and its input are on different devices".clone_into(&mut f.primary.text);
        }
        if matches!(event.bite.world, World::Always) {
            f.world = World::Cuda;
        }
        let is_module = |side: &Operand| side.of_module || side.place == event.place;
        let both = || match (is_module(stray) || is_module(other), called) {
            (false, _) => move_one(event, stray, other, cx),
            (true, None) => {
                "move the module and all its inputs to the same device before the call".to_owned()
            }
            (true, Some(call)) => {
                let module = input::called_module(call.site, cx).unwrap_or_else(|| "the module".to_owned());
                format!("move {module} and all its inputs to the same device before the call")
            }
        };
        let mut remedies = on_one_device(event, stray, other, cx);
        // Either of two inputs can be moved. For a module and an input, the call of the module decides which.
        if input.is_some() {
            remedies.retain(|r| matches!(r, Remedy::Make { .. }));
        }
        let f = f.remedy(remedies).remedy(input.as_ref().and_then(Input::remedy));
        Some(f.help(input.map_or_else(both, |input| input.help())))
    }

    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        let mut found = replicas::kept_methods(cx);
        found.extend(averaged_copy::left(cx));
        found
    }
}

/// The outermost call of a module whose argument is on another device, if neither side was created inside the call.
fn handed_over(event: &Event, stray: &Operand, other: &Operand) -> Option<Entered> {
    let within = |function: Place| {
        let inside = |s: &Operand| {
            s.chain.iter().any(|s| s.place.file == function.file && function.span.contains(s.place.span))
        };
        inside(stray) || inside(other)
    };
    event.entered.iter().take_while(|call| !within(call.forward)).last().copied()
}
