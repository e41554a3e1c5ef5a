//! SD305 hard-coded-device-in-module: a CUDA device that a module fixes.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, UseKind};
use crate::ir::ClassId;
use crate::link::ClassKey;
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::{chosen, home};
use crate::rules::shared::assumptions::assume_no_cuda;
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::quotable;
use crate::rules::shared::events::{finding, with_also, with_stack};
use crate::rules::shared::module_device::module_device;
use crate::rules::shared::test_code::in_tests;
use crate::span::Place;
use crate::torch::{self, Base};

pub(super) const CODE: Code = Code(305);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Use { what, origin, backend: None, how, .. } = &event.kind else { return None };
        // Code outside modules chose the device, so the device is hard-coded there.
        if origin.is_some_and(|o| o.file != event.place.file || !in_module_class(o, cx)) {
            return None;
        }
        if !matches!(how, UseKind::Transfer | UseKind::Move | UseKind::Factory | UseKind::Pinned) {
            return None;
        }
        // The tests that construct it may only run with CUDA.
        if event.is_guess() && in_tests(event.place, cx) {
            return None;
        }
        if !event.in_module
            || chosen(event, cx)
            || event.symbolic && (event.stack.len() > 1 || event.asked_for)
        {
            return None;
        }
        let (place, other) = home(event, *origin);
        let message =
            format!("{what} uses a hard-coded CUDA device, even if the module is on another device");
        let mut f = finding(CODE, event, message, place, "hard-coded CUDA device");
        if let Some(o) = other {
            f = f.related(o, format!("{what} uses the device here"));
        }
        let help = follows_module(event, *origin, cx);
        Some(with_also(assume_no_cuda(with_stack(f, event), event, cx), event).help(help))
    }
}

/// The same call with the device of an input or of a parameter of the module.
fn follows_module(event: &Event, origin: Option<Place>, cx: &Context<'_>) -> String {
    let Some(device) = module_device(cx, event.place) else {
        return match cx.program.module_of(event.place.file).and_then(|m| {
            cx.program.get(m).ir.function_at(event.place.span)
        }) {
            Some(function) if function.name.as_str() == "__init__" => {
                "let the caller choose: take the device as a parameter of the constructor, or leave the move to `.to()`"
                    .to_owned()
            }
            _ => "take the device from an input or a parameter of the module: `x.device`".to_owned(),
        };
    };
    let call = CallAt::new(cx, event.place);
    let code = call.and_then(|call| match (call.attribute(), origin) {
        (Some((base, name)), None) if name.as_str() == "cuda" => {
            quotable(format!("{}.to({device})", call.text(base)))
        }
        (_, Some(literal)) => call.replaced(literal.span, &device),
        _ => None,
    });
    let general = "use the device of an input or of a parameter";
    match code {
        Some(code) => format!("{general}: `{code}`"),
        None => format!("{general}: `{device}`"),
    }
}

/// Is the place in a class that may be a module? In a test that constructs modules, the test has chosen the device.
fn in_module_class(place: Place, cx: &Context<'_>) -> bool {
    let Some(module) = cx.program.module_of(place.file) else { return false };
    let linked = cx.program.get(module);
    let forward = crate::sym::Sym::new("forward");
    (0_u32..).zip(linked.ir.classes.iter().zip(&linked.classes)).any(|(n, (class, info))| {
        let module_base = |&path: &_| torch::base_class(path).is_some_and(|b| b.kind == Base::Module);
        let key = ClassKey { module, class: ClassId(n) };
        class.span.contains(place.span)
            && (info.externals.iter().any(module_base) || cx.program.find_method(key, forward).is_some())
    })
}
