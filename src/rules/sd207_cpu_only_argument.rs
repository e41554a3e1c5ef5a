//! SD207 cpu-only-argument: a tensor on a GPU where PyTorch requires one on the CPU.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Meeting, Operand};
use crate::ir::Expr;
use crate::rules::check::{Check, Context};
use crate::rules::shared::assumptions::of_meeting;
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::{quotable, text, variable};
use crate::rules::shared::events::{finding, with_also, with_stack};
use crate::rules::shared::meetings::{mismatch, origins};
use crate::span::Place;

pub(super) const CODE: Code = Code(207);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let (meeting, what, stray, _) = mismatch(event)?;
        if meeting == Meeting::OldConstructor {
            let device = stray.device.in_words();
            let message = format!("{what} makes only CPU tensors, but `device=` asks for {device}");
            let f = finding(CODE, event, message, event.place, "`device=` must be the CPU here");
            return Some(
                with_stack(origins(f, stray), event)
                    .assume(of_meeting(event, cx))
                    .help(instead_of_constructor(event, cx)),
            );
        }
        if meeting != Meeting::CpuOnly {
            return None;
        }
        let wants = if what.contains("pin_memory") { "pins only CPU tensors" } else { "needs a CPU tensor" };
        let of_method = || variable(cx, receiver(event, cx)?).filter(|_| stray.place == event.place);
        let subject = match variable(cx, stray.place).or_else(of_method) {
            _ if what.contains("DataLoader") => "its data set gives tensors that are".to_owned(),
            Some(name) => format!("`{name}` is"),
            None => "this tensor is".to_owned(),
        };
        let message = format!("{what} {wants}, but {subject} on {}", stray.device.in_words());
        let f = finding(CODE, event, message, event.place, "needs the CPU");
        Some(
            with_also(with_stack(origins(f, stray), event).assume(of_meeting(event, cx)), event)
                .help(from_cpu(event, what, stray, cx)),
        )
    }
}

/// The object of the method call.
fn receiver(event: &Event, cx: &Context<'_>) -> Option<Place> {
    let call = CallAt::new(cx, event.place)?;
    let (base, method) = call.attribute()?;
    (method.as_str() == "pin_memory").then(|| call.place_of(base))
}

/// The help: how to get the value from the GPU to the CPU.
fn from_cpu(event: &Event, what: &str, stray: &Operand, cx: &Context<'_>) -> String {
    if what.contains("DataLoader") {
        return "set `pin_memory=False`, or return CPU tensors from the data set".to_owned();
    }
    if what.contains("pin_memory=") {
        return "remove `pin_memory=True`: only CPU memory can be pinned".to_owned();
    }
    if what.contains("pin_memory") {
        return "remove this call: only CPU tensors can be pinned".to_owned();
    }
    let copied = text(cx, stray.place).map(|text| match text.strip_suffix(".cuda()") {
        Some(before) => before.to_owned(),
        None => format!("{text}.cpu()"),
    });
    let simple = variable(cx, stray.place).is_some() || CallAt::new(cx, stray.place).is_some();
    let copied = copied.filter(|_| simple);
    let code = copied.and_then(|text| CallAt::new(cx, event.place)?.replaced(stray.place.span, &text));
    match code.filter(|_| stray.place != event.place) {
        Some(code) => format!("pass a CPU tensor: `{code}`"),
        None => "pass a CPU tensor: copy it with `.cpu()`".to_owned(),
    }
}

/// The current function that replaces `torch.FloatTensor(…, device=…)`.
fn instead_of_constructor(event: &Event, cx: &Context<'_>) -> String {
    let general = || "use `torch.tensor(values, device=…)` or `torch.empty(sizes, device=…)`".to_owned();
    let code = || {
        let call = CallAt::new(cx, event.place)?;
        let function = match call.expr(call.first()?) {
            Expr::List(_) => "torch.tensor",
            Expr::Int(_) => "torch.empty",
            _ => return None,
        };
        let path = call.path()?;
        let (_, class) = path.as_str().rsplit_once('.')?;
        let added = DTYPES.iter().find(|&&(name, _)| name == class)?.1;
        let inner = call.arguments().strip_suffix(')')?.trim_end_matches([',', ' ']);
        quotable(format!("{function}{inner}{added})"))
    };
    code().map_or_else(general, |code| format!("use a function that takes a device: `{code}`"))
}

/// The dtype of each legacy constructor, as an argument.
const DTYPES: &[(&str, &str)] = &[
    ("Tensor", ""),
    ("FloatTensor", ", dtype=torch.float32"),
    ("DoubleTensor", ", dtype=torch.float64"),
    ("HalfTensor", ", dtype=torch.float16"),
    ("LongTensor", ", dtype=torch.int64"),
    ("IntTensor", ", dtype=torch.int32"),
    ("ByteTensor", ", dtype=torch.uint8"),
    ("BoolTensor", ", dtype=torch.bool"),
];
