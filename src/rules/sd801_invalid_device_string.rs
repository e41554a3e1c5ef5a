//! SD801 invalid-device-string: what stands where a device is wanted, and is none.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, Misplaced};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(801);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        invalid(event, cx).or_else(|| misplaced(event, cx))
    }
}

/// SD801 invalid-device-string
fn invalid(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::InvalidDevice { text } = &event.kind else { return None };
    let (message, help) = if text == "cuda:cuda" {
        ("this puts a device behind `cuda:`, where its index belongs".to_owned(), "use the device as it is")
    } else if text.is_empty() {
        (
            "a type of numbers stands where PyTorch wants a device".to_owned(),
            "write `dtype=`, or name the device",
        )
    } else {
        let help = match text.as_str() {
            "gpu" | "GPU" | "CUDA" | "Cuda" => "PyTorch calls it `cuda`",
            _ => "write `cuda`, `cuda:0`, `cpu`, `mps`, …",
        };
        (format!("PyTorch knows no device `{text}`"), help)
    };
    let mut f = finding(CODE, event, message, event.place, "raises on every machine");
    f.world = World::Always;
    Some(with_stack(f, event).help(help))
}

/// SD801 invalid-device-string: what is no string
fn misplaced(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::Misplaced { what } = event.kind else { return None };
    let (message, label, help) = match what {
        Misplaced::Number => (
            "`get_device()` of a CPU tensor is -1, and that is no device",
            "raises where the tensor is on the CPU",
            "give the device itself, the tensor's `.device`",
        ),
        Misplaced::Manager => (
            "`torch.cuda.device(…)` switches the current GPU in a `with`, and is no device",
            "raises on every machine",
            "write `torch.device(\"cuda\", …)`, with the same index",
        ),
        Misplaced::Autocast => (
            "`torch.autocast` wants the type of a device, and this is a `torch.device`",
            "raises on every machine",
            "give its type: `.type`",
        ),
        Misplaced::Unnumbered => (
            "which GPU is to be the current one needs a number, and this device has none",
            "raises wherever it runs",
            "give the index: `torch.device(\"cuda\", 0)`",
        ),
        Misplaced::Location => (
            "`map_location` is a number, which is neither a device nor a function",
            "`TypeError`: an `int` is not callable",
            "name the device: `cuda:` and that number, as a text",
        ),
        Misplaced::Truth => (
            "a truth value stands where PyTorch wants a device",
            "`TypeError` on every machine",
            "name what is meant: `non_blocking=True`",
        ),
    };
    let mut f = finding(CODE, event, message.to_owned(), event.place, label);
    if what != Misplaced::Number {
        f.world = World::Always;
    }
    Some(with_stack(f, event).help(help))
}
