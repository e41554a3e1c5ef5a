//! SD1: code that needs hardware it never asked for; SD305, its form inside modules.

use super::{Context, finding, with_also, with_stack};
use crate::finding::Finding;
use crate::flow::event::{Event, Kind, UseKind};
use crate::ir::ClassId;
use crate::link::ClassKey;
use crate::remedy::Remedy;
use crate::span::Place;
use crate::torch::{self, Base};
use crate::world::World;

/// The place to report: where the device was written, if that is known; else where it is used.
pub(super) fn home(event: &Event, origin: Option<Place>) -> (Place, Option<Place>) {
    match origin {
        Some(o) => (o, Some(event.place)),
        None => (event.place, None),
    }
}

/// Does the file's, its folder's, the class's or the function's name say that it is the one for this back end
/// (`mps_accelerator.py`, `class NpuBackend`)? Then who uses it has chosen.
fn written_for(place: Place, backend: &str, cx: &Context<'_>) -> bool {
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

/// Words for accelerators in the names of files and classes.
const ACCELERATORS: &[&str] = &["cuda", "gpu", "xpu", "npu", "hpu", "mlu", "musa", "sdaa"];

/// Has whoever calls this function chosen an accelerator? By its file's, its class's or its base's name, or because
/// its file refuses to go on without one elsewhere.
pub(super) fn chosen(event: &Event, cx: &Context<'_>) -> bool {
    (cx.cuda_only || event.cuda_only) && !several_gpus(event)
        || event.symbolic
            && (cx.refuses
                || super::helps_tests(event.place, cx)
                || for_accelerators(event.place, cx)
                || ACCELERATORS.iter().any(|name| written_for(event.place, name, cx)))
}

/// Does it go wrong on another GPU than the current one, and not where there is none?
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

/// SD103 uncalled-availability-check
pub(super) fn uncalled_check(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::UncalledCheck { function } = &event.kind else { return None };
    let message = format!("`{function}` is not called, so this is always true");
    let mut f = finding(103, event, message, event.place, "the function itself, not its result");
    f.world = World::NoCuda;
    Some(with_stack(f, event).help(format!("call it: `{function}()`")).remedy([Remedy::Call(event.place)]))
}

/// SD104 inverted-availability-check
pub(super) fn inverted_check(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::Use { what, origin, backend: None, inverted: true, .. } = &event.kind else { return None };
    let (place, other) = home(event, *origin);
    let message = match event.bite.world {
        World::With(b) => format!("CUDA is used where only {} was checked for", b.name().to_uppercase()),
        _ => "CUDA is used in the branch for machines that do not have it".to_owned(),
    };
    let mut f = finding(104, event, message, place, "CUDA, on the wrong side of the check");
    if let Some(o) = other {
        f = f.related(o, format!("{what} uses it"));
    }
    Some(with_stack(f, event).help("swap the two branches of the check"))
}

/// SD104, too: `torch.npu.is_available()` where `torch.npu` may not exist.
pub(super) fn missing_plugin(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Plugin { function, backend } = &event.kind else { return None };
    let name = backend.name();
    if event.is_guess() || written_for(event.place, name, cx) {
        return None;
    }
    let message = format!(
        "`{function}()` is asked before anything says that `torch.{name}` exists: only its plug-in brings it"
    );
    let f = finding(104, event, message, event.place, "`AttributeError` without the plug-in");
    Some(
        with_stack(f, event)
            .help(format!("import the plug-in first, or ask `hasattr(torch, \"{name}\")` before")),
    )
}

/// SD102 unguarded-accelerator
pub(super) fn accelerator(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Use { what, origin, backend: Some(b), .. } = &event.kind else { return None };
    let name = b.name();
    if event.is_guess() || written_for(event.place, name, cx) {
        return None;
    }
    let (place, other) = home(event, *origin);
    let message =
        format!("{what} needs {}, and nothing here has asked whether it is there", name.to_uppercase());
    let mut f = finding(102, event, message, place, &format!("raises without {}", name.to_uppercase()));
    if let Some(o) = other {
        f = f.related(o, format!("{what} uses it"));
    }
    let asked = match name {
        "mps" => Some("torch.backends.mps.is_available"),
        "xpu" => Some("torch.xpu.is_available"),
        // What a plug-in brings may not be there to be asked.
        _ => None,
    };
    let check = if name == "mps" {
        "torch.backends.mps.is_available()".to_owned()
    } else {
        format!("torch.{name}.is_available()")
    };
    Some(
        with_also(with_stack(f, event), event)
            .help(format!("choose the device by a check: `\"{name}\" if {check} else \"cpu\"`"))
            .remedy(asked.filter(|_| decides_all(event, place, cx)).map(|check| Remedy::Choose {
                literal: place,
                check,
                otherwise: "cpu",
            })),
    )
}

/// SD106 legacy-cuda-tensor-type
pub(super) fn legacy_type(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Use { what, how: UseKind::LegacyType, backend: None, .. } = &event.kind else { return None };
    if event.is_guess() || chosen(event, cx) {
        return None;
    }
    let message =
        format!("{what} names a CUDA tensor type, and nothing here has asked whether CUDA is there");
    let f = finding(106, event, message, event.place, "a legacy CUDA tensor type");
    Some(
        with_also(with_stack(f, event), event)
            .help("use `device=` with a device chosen by `torch.cuda.is_available()`"),
    )
}

/// Is the place in a class that may be a module's? A test that makes modules has chosen the device, not they.
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

/// SD305 hard-coded-device-in-module
pub(super) fn in_module(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Use { what, origin, backend: None, how, .. } = &event.kind else { return None };
    // The device was decided outside of modules: that is where it is hard-coded.
    if origin.is_some_and(|o| o.file != event.place.file || !in_module_class(o, cx)) {
        return None;
    }
    if !matches!(how, UseKind::Transfer | UseKind::Move | UseKind::Factory | UseKind::Pinned) {
        return None;
    }
    // The tests that make it may be there for CUDA alone.
    if event.is_guess() && super::in_tests(event.place, cx) {
        return None;
    }
    if !event.in_module || chosen(event, cx) || event.symbolic && (event.stack.len() > 1 || event.asked_for) {
        return None;
    }
    let (place, other) = home(event, *origin);
    let message = format!("{what} fixes a CUDA device inside a module");
    let mut f = finding(305, event, message, place, "the module cannot run elsewhere");
    if let Some(o) = other {
        f = f.related(o, format!("{what} uses it"));
    }
    Some(
        with_also(with_stack(f, event), event)
            .help("follow an input or a parameter of the module instead, by its `.device`"),
    )
}

/// Is the device of all that goes wrong for this reason written down, here or elsewhere? Then choices there mend it. What moves to CUDA
/// whatever is chosen, as `.cuda()` does, would be left.
fn decides_all(event: &Event, place: Place, cx: &Context<'_>) -> bool {
    let is_text = |&at: &Place| cx.sources.text(at).starts_with(['"', '\'']);
    event.also.iter().all(|later| {
        later.place == place
            || later.through.contains(&place)
            || std::iter::once(&later.place).chain(&later.through).any(is_text)
    })
}

/// SD101 unguarded-cuda
pub(super) fn unguarded(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Use { what, origin, backend: None, how, .. } = &event.kind else { return None };
    if event.is_guess() || chosen(event, cx) || *how == UseKind::Pinned {
        return None;
    }
    let (place, other) = home(event, *origin);
    let message = format!("{what} needs CUDA, and nothing here has asked whether it is there");
    let mut f = finding(101, event, message, place, "raises without CUDA");
    if let Some(o) = other {
        let text = if o == event.place {
            format!("{what} uses it here")
        } else {
            "the device is decided here".to_owned()
        };
        f = f.related(o, text);
    }
    let help = match how {
        UseKind::Query => "guard it: `if torch.cuda.is_available():`",
        _ => {
            "choose the device by a check: `device = \"cuda\" if torch.cuda.is_available() else \"cpu\"`, and move things with `.to(device)`"
        }
    };
    let check = "torch.cuda.is_available";
    let remedy = Remedy::Choose { literal: place, check, otherwise: "cpu" };
    let remedy = decides_all(event, place, cx).then_some(remedy);
    Some(with_also(with_stack(f, event), event).help(help).remedy(remedy))
}

/// SD105 load-without-map-location
pub(super) fn load(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Load { program, explicit_none, several, met } = &event.kind else { return None };
    // What tests load, they have written themselves.
    if super::in_tests(event.place, cx) || event.stack.iter().any(|&call| super::in_tests(call, cx)) {
        return None;
    }
    // Checkpoints of other back ends have no CUDA tensors.
    if ["xla", "mps", "npu", "hpu", "xpu"].iter().any(|b| written_for(event.place, b, cx)) {
        return None;
    }
    let what = if *explicit_none { "`map_location=None`" } else { "no `map_location`" };
    let message = |world| {
        let then = match world {
            World::NoCuda => "goes back to that GPU, or fails to load",
            _ => "goes back to that GPU, whichever this process uses",
        };
        let (function, read) =
            if *program { ("torch.jit.load", "program") } else { ("torch.load", "checkpoint") };
        format!("`{function}` with {what}: a {read} saved on a GPU {then}")
    };
    let text = message(event.bite.world);
    let mut f = finding(105, event, text, event.place, "restores tensors to the device they were saved from");
    if *several {
        f.where_cuda_is = Some(message(World::Cuda));
    }
    let help = if *program {
        "load to the CPU, then move the model: `torch.jit.load(path, map_location=\"cpu\")`"
    } else {
        "load to the CPU, then move the model: `torch.load(path, map_location=\"cpu\")`"
    };
    let mut f = with_stack(f, event);
    for &place in met {
        if f.places().all(|p| p != place) {
            f = f.related(place, "what was taken out of the file meets a tensor of this process's GPU here");
        }
    }
    Some(f.help(help).remedy([Remedy::MapLocation(event.place)]))
}
