//! SD5: memory.

use super::{Context, finding, with_stack};
use crate::finding::Finding;
use crate::flow::event::{Event, Kind};
use crate::world::{World, gibibytes};

/// SD507 impossible-allocation
pub(super) fn impossible(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Allocation { bytes, .. } = &event.kind else { return None };
    if *bytes <= cx.limits.max_accelerator_memory {
        return None;
    }
    let most = gibibytes(cx.limits.max_accelerator_memory);
    let message = format!("this tensor takes {}, and no accelerator has more than {most}", gibibytes(*bytes));
    let mut f = finding(507, event, message, event.place, "cannot be allocated anywhere");
    f.world = World::FreeBelow(*bytes);
    Some(with_stack(f, event).help("check the sizes, or keep it in host memory and move parts of it"))
}

/// SD501 missing-oom-handling
pub(super) fn missing_handler(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Allocation { bytes, handled: false } = &event.kind else { return None };
    if *bytes < cx.limits.oom_threshold || event.is_guess() {
        return None;
    }
    let message = format!(
        "this tensor takes {} on the accelerator, and nothing handles running out of memory",
        gibibytes(*bytes)
    );
    let mut f = finding(501, event, message, event.place, "raises where less is free");
    f.world = World::FreeBelow(*bytes);
    Some(
        with_stack(f, event)
            .help("catch `torch.OutOfMemoryError` around it and fall back to something smaller"),
    )
}

/// SD503 swallowed-oom
pub(super) fn swallowed(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Swallowed { said } = &event.kind else { return None };
    // What a test makes is small, and it is over soon. What a handler of another file drops, a call of that cannot mend.
    if super::has_tests(event.place, cx) || event.place.file != cx.file {
        return None;
    }
    let message = "this handler drops every error of the device work above it, out-of-memory errors included"
        .to_owned();
    let mut f = finding(503, event, message, event.place, "nothing of the error is kept");
    f.world = World::Cuda;
    if let Some(said) = *said {
        f = f.related(said, "does not say what happened");
    }
    Some(with_stack(f, event).help("catch what you expect, and let the rest through or log it"))
}

/// SD506 inference-without-no-grad
pub(super) fn with_graph(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::EvaluatedWithGraph = &event.kind else { return None };
    if super::has_tests(event.place, cx) {
        return None;
    }
    let message = "this model is in evaluation mode, and every call still builds a graph".to_owned();
    let mut f = finding(506, event, message, event.place, "keeps what a backward pass would need");
    f.world = World::Cuda;
    Some(with_stack(f, event).help("run it under `torch.no_grad()` or `torch.inference_mode()`"))
}
