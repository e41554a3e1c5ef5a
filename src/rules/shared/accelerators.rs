//! Code for one accelerator, and the place of a device literal.

use crate::flow::event::Event;
use crate::rules::check::Context;
use crate::rules::shared::test_code::helps_tests;
use crate::span::Place;
use crate::torch;
use crate::words::Words;

/// The place to report: where the device is written, if known, and otherwise the use. Also returns the use if it is another place.
pub fn home(event: &Event, origin: Option<Place>) -> (Place, Option<Place>) {
    match origin {
        Some(o) => (o, Some(event.place)),
        None => (event.place, None),
    }
}

/// Does the name of the file, folder, class or function say that the code is for this back end (`mps_accelerator.py`, `class NpuBackend`)?
/// Then its callers have chosen the back end.
pub fn written_for(place: Place, backend: &str, cx: &Context<'_>) -> bool {
    let named = |name: &str| name.to_ascii_lowercase().contains(backend);
    let file = cx.sources.get(place.file);
    let folder = file.path.parent().and_then(|p| p.file_name());
    if file.path.file_stem().is_some_and(|s| named(&s.to_string_lossy()))
        || folder.is_some_and(|name| name.eq_ignore_ascii_case(backend))
    {
        return true;
    }
    let Some(module) = cx.program.module_of(place.file) else { return false };
    let ir = &cx.program.get(module).ir;
    ir.functions_around(place.span).any(|f| named(ir.function(f).name.as_str()))
}

static ACCELERATORS: Words = Words::of("accelerators in names");

/// Have the callers of this function chosen an accelerator? The name of its file, class or base says so, or another function of the file
/// refuses to run without one.
pub fn chosen(event: &Event, cx: &Context<'_>) -> bool {
    (cx.cuda_only || event.cuda_only) && !several_gpus(event)
        || event.symbolic
            && (cx.refuses
                || helps_tests(event.place, cx)
                || for_accelerators(event.place, cx)
                || ACCELERATORS.all().iter().any(|name| written_for(event.place, name, cx)))
}

/// Does the event fail on a GPU other than the current one, rather than without a GPU?
fn several_gpus(event: &Event) -> bool {
    event.in_module && event.bite.world.has_cuda()
}

/// Is the place in a class whose base only makes sense with accelerators?
fn for_accelerators(place: Place, cx: &Context<'_>) -> bool {
    let Some(module) = cx.program.module_of(place.file) else { return false };
    let linked = cx.program.get(module);
    linked.ir.classes.iter().zip(&linked.classes).any(|(class, info)| {
        class.span.contains(place.span)
            && info
                .externals
                .iter()
                .any(|&p| torch::base_class(p).is_some_and(|b| b.accelerators) || torch::cuda_only_import(p))
    })
}

/// Does another device in the literal fix all places that fail for this reason? A call of `.cuda()` moves to CUDA in any case.
pub fn decides_all(event: &Event, place: Place, cx: &Context<'_>) -> bool {
    let is_text = |&at: &Place| cx.sources.text(at).starts_with(['"', '\'']);
    event.also.iter().all(|later| {
        later.place == place
            || later.through.contains(&place)
            || std::iter::once(&later.place).chain(&later.through).any(is_text)
    })
}
