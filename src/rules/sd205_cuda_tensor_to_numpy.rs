//! SD205 cuda-tensor-to-numpy: a tensor on a GPU that is passed to NumPy.

mod arguments;

use crate::finding::{Code, Finding};
use crate::flow::event::{DeviceName, Event, Gives, Kind, Operand};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::assumptions::of_tensor;
use crate::rules::shared::callers::{as_tests_like, callers_decide};
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::meeting_words::{MAX_OPERAND, operation, quoted, value_stored};
use crate::rules::shared::meetings::origins;
use crate::rules::shared::naming::is_short;
use crate::span::Place;

pub(super) const CODE: Code = Code(205);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::ToHost { what, tensor } = &event.kind else { return None };
        if callers_decide(event, tensor, cx) || as_tests_like(event, tensor, cx) {
            return None;
        }
        let message = on_gpu(event, what, tensor, cx);
        let f = finding(CODE, event, message, event.place, "raises `TypeError` for a tensor on a GPU");
        let f = origins(f, tensor);
        let given = Some(tensor.place)
            .filter(|&p| p != event.place && matches!(tensor.gives, Gives::Tensor | Gives::Tensors));
        let several = tensor.gives == Gives::Tensors;
        let remedy = Remedy::ToHost { call: event.place, tensor: given, several };
        Some(
            with_stack(f, event)
                .help(copied(event, tensor, cx))
                .remedy([remedy])
                .assume(of_tensor(event, tensor, cx)),
        )
    }

    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        arguments::to_numpy(cx)
    }
}

/// "`curve.numpy()` raises: `curve` is on `cuda`, and NumPy reads only CPU memory"
fn on_gpu(event: &Event, what: &str, tensor: &Operand, cx: &Context<'_>) -> String {
    let call = operation(what, event.place, cx);
    let name = given(event, tensor, cx);
    let name = name.and_then(|place| quoted(place, MAX_OPERAND, cx)).unwrap_or_else(|| "a tensor".to_owned());
    let verb = if tensor.gives == Gives::Tensors { "has tensors" } else { "is" };
    let (condition, on) = match &tensor.device {
        DeviceName::Known(_) => (String::new(), tensor.device_in_words()),
        DeviceName::Varies(of) if name == format!("`{of}`") || name.starts_with(&format!("`{of}.")) => {
            return format!("{call} raises if `{of}` is on a GPU: NumPy reads only CPU memory");
        }
        DeviceName::Varies(of) if tensor.symbol.as_ref().is_some_and(|s| s.names) => {
            (format!(" if `{of}` is a GPU"), format!("`{of}`"))
        }
        DeviceName::Varies(of) => (format!(" if `{of}` is on a GPU"), tensor.device_in_words()),
        DeviceName::WithModule => (" if the module is on a GPU".to_owned(), tensor.device_in_words()),
    };
    format!("{call} raises{condition}: {name} {verb} on {on}, and NumPy reads only CPU memory")
}

/// The tensor: an argument, the object of the method, or the value of an assignment.
fn given(event: &Event, tensor: &Operand, cx: &Context<'_>) -> Option<Place> {
    if tensor.place == event.place { value_stored(event.place, cx) } else { Some(tensor.place) }
}

/// The call with a copy of the tensor on the CPU.
fn copied(event: &Event, tensor: &Operand, cx: &Context<'_>) -> String {
    let written = |call: Place, tensor: Place, several: bool| {
        let (text, of) = (cx.sources.text(call), cx.sources.text(tensor));
        let inside = call != tensor && call.file == tensor.file && call.span.contains(tensor.span);
        if !inside || !is_short(text) || text.contains('`') {
            return None;
        }
        let from = (tensor.span.start - call.span.start) as usize;
        let (before, after) = (text.get(..from)?, text.get(from + of.len()..)?);
        let plain = of.ends_with([')', ']']) && !of.starts_with('(')
            || of.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        let copy = match (several, of.strip_suffix(".detach()")) {
            (true, _) => format!("[t.detach().cpu() for t in {of}]"),
            (false, Some(_)) => format!("{of}.cpu()"),
            (false, None) if plain => format!("{of}.detach().cpu()"),
            (false, None) => format!("({of}).detach().cpu()"),
        };
        Some(format!("copy it to the CPU first: `{before}{copy}{after}`"))
    };
    let several = tensor.gives == Gives::Tensors;
    let stored = value_stored(event.place, cx).filter(|_| tensor.place == event.place);
    if let Some(value) = stored.and_then(|value| quoted(value, MAX_OPERAND, cx)) {
        let value = value.trim_matches('`');
        let simple = value.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '(' | ')'));
        let value = if simple { value.to_owned() } else { format!("({value})") };
        return format!(
            "copy it to the CPU first: `{} = {value}.detach().cpu()`",
            cx.sources.text(event.place).trim()
        );
    }
    written(event.place, tensor.place, several)
        .unwrap_or_else(|| "copy it to the CPU first: `.detach().cpu()`".to_owned())
}
