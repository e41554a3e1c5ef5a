//! SD8: devices as values; SD208 and SD702, which a chosen device decides.

use super::naming::is_short;
use super::{Context, finding, reason, with_stack};
use crate::finding::Finding;
use crate::flow::event::{Compared, Event, Kind, Misplaced};
use crate::flow::value::Reason;
use crate::remedy::Remedy;
use crate::world::World;

/// SD801 invalid-device-string
pub(super) fn invalid(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
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
    let mut f = finding(801, event, message, event.place, "raises on every machine");
    f.world = World::Always;
    Some(with_stack(f, event).help(help))
}

/// SD801 invalid-device-string: what is no string
pub(super) fn misplaced(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
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
    let mut f = finding(801, event, message.to_owned(), event.place, label);
    if what != Misplaced::Number {
        f.world = World::Always;
    }
    Some(with_stack(f, event).help(help))
}

/// SD802 device-compared-with-string
pub(super) fn compared(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::DeviceCompared { with, how } = &event.kind else { return None };
    let message = match how {
        Compared::Text => format!("a `torch.device` never equals a string, not even {with:?}"),
        Compared::Tensors => format!("a tensor's device has an index and never equals `{with}`"),
        Compared::Indexed => format!("this device has an index and never equals `{with}`"),
        Compared::Type => format!("the type of no device is {with:?}"),
        Compared::Inside => {
            format!("{with:?} is looked for in a `torch.device`, which is no text and raises")
        }
    };
    let label = match how {
        Compared::Type => "never equal",
        Compared::Inside => "`TypeError` on every machine",
        _ => "compare `.type` instead",
    };
    let mut f = finding(802, event, message, event.place, label);
    if *how != Compared::Tensors || !f.world.has_cuda() {
        f.world = World::Always;
    }
    // Where there is only the CPU, no device is the one that is looked for, and the answer is right by chance.
    f.shows_with_accelerator = *how != Compared::Inside && !with.starts_with("cpu");
    if *how == Compared::Type {
        let help = "the types are `cuda`, `cpu`, `mps`, …, without an index: `.type == \"cuda\"`";
        return Some(with_stack(f, event).help(help));
    }
    let remedy = (*how == Compared::Text).then_some(Remedy::CompareType(event.place));
    Some(with_stack(f, event).help("compare its type: `.type == \"cuda\"`").remedy(remedy))
}

/// SD804 module-has-no-device
pub(super) fn no_device(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::NoDevice = &event.kind else { return None };
    let message = "this module has no `device`: its parameters may be on several".to_owned();
    let mut f = finding(804, event, message, event.place, "`AttributeError` on every machine");
    f.world = World::Always;
    let module = cx.sources.text(event.place).strip_suffix(".device").filter(|text| is_short(text));
    let help = match module {
        Some(module) => format!("ask a parameter: `next({module}.parameters()).device`"),
        None => "ask one of its parameters for its `.device`".to_owned(),
    };
    Some(with_stack(f, event).help(help))
}

/// SD208 cpu-tensor-in-collective
pub(super) fn collective(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::CpuInCollective { what, tensor, elsewhere } = &event.kind else { return None };
    if event.symbolic && event.speculative {
        return None;
    }
    // Tests run in one process, in which `accelerate` gathers nothing.
    let several = what.starts_with("torch.");
    let tested = |place| super::in_tests(place, cx);
    if !several && (tested(event.place) || event.stack.iter().any(|&call| tested(call))) {
        return None;
    }
    let message = format!("`{what}` of an NCCL group is given a tensor on the CPU");
    let mut f = finding(208, event, message, event.place, "NCCL moves data between GPUs only");
    f.world = World::Cuda;
    f.in_group = *elsewhere;
    for step in tensor.chain.iter().filter(|s| s.reason != Reason::None).take(2) {
        if !f.places().any(|p| p == step.place) {
            f = f.related(step.place, reason(step));
        }
    }
    Some(with_stack(f, event).help("move it to this process's GPU first, or use a Gloo group"))
}

/// SD702 half-on-cpu
pub(super) fn half(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::HalfOnCpu { moved } = &event.kind else { return None };
    if event.is_guess() {
        return None;
    }
    let message =
        "half precision stays where the chosen device is the CPU: slow there, and not for every operator";
    let mut f = finding(702, event, message.to_owned(), event.place, "whatever the device is");
    f.world = World::NoCuda;
    if let Some(moved) = moved.filter(|m| *m != event.place) {
        f = f.related(moved, "goes to the chosen device here");
    }
    Some(
        with_stack(f, event)
            .help("choose the type with the device: `float16` for CUDA, `float32` for the CPU"),
    )
}
