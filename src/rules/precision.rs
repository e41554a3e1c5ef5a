//! SD7: precision that a device lacks.

use super::{ALSO_RAISES, Context, finding, with_also_said, with_stack};
use crate::finding::Finding;
use crate::flow::event::{Event, Kind};
use crate::ir::Function;
use crate::span::Place;
use crate::world::{Backend, World};

/// SD701 float64-on-mps
pub(super) fn double_on_mps(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::DoubleOnMps { on } = &event.kind else { return None };
    // The callers of a private function are in sight: where they call it with their tensors, it is found.
    let by_callers = event.symbolic && event.speculative && is_private(event.place, cx);
    if cx.cuda_only || event.asked_for || by_callers || super::in_tests(event.place, cx) {
        return None;
    }
    let message = format!("this is `float64` on {}, and MPS has no `float64`", on.in_words());
    let mut f = finding(701, event, message, event.place, "raises where the device is MPS");
    f.world = World::With(Backend::Mps);
    Some(
        with_also_said(with_stack(f, event), event, ALSO_RAISES)
            .help("take `float32` where the device's type is `mps`, or do this part on the CPU"),
    )
}

/// SD704 float64-on-gpu
pub(super) fn double_on_gpu(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::DoubleOnGpu = &event.kind else { return None };
    if super::in_tests(event.place, cx) {
        return None;
    }
    let message =
        "this is `float64` on a GPU, where most do a small fraction of the work that they do in `float32`";
    let mut f = finding(704, event, message.to_owned(), event.place, "double precision");
    f.world = World::Cuda;
    Some(with_stack(f, event).help("take `float32`, or do what needs the precision on the CPU"))
}

/// SD703 bfloat16-without-support-check
pub(super) fn bfloat16(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::Bfloat16 = &event.kind else { return None };
    let message = "this is `bfloat16` on a GPU, and nothing here has asked whether it knows that type";
    let mut f = finding(703, event, message.to_owned(), event.place, "emulated, or not there, on older GPUs");
    f.world = World::CapabilityBelow(8, 0);
    Some(
        with_stack(f, event).help(
            "ask `torch.cuda.is_bf16_supported(including_emulation=False)`, and take `float16` otherwise",
        ),
    )
}

/// Is it in a function that is not for others?
fn is_private(place: Place, cx: &Context<'_>) -> bool {
    let Some(module) = cx.program.module_of(place.file) else { return false };
    let functions = &cx.program.get(module).ir.functions;
    let around = functions.iter().filter(|f| f.parent.is_some() && f.span.contains(place.span));
    around.max_by_key(|f| f.span.start).is_some_and(Function::is_private)
}
