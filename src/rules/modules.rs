//! SD3: what modules keep where `.to()` does not see it, and what must come after a move.

use super::naming::Spot;
use super::{Context, finding, reason, with_also, with_stack};
use crate::finding::Finding;
use crate::flow::event::{Event, Kind, LeftBehind};
use crate::flow::value::Reason;
use crate::remedy::Remedy;
use crate::world::World;

/// SD302 unregistered-submodule
pub(super) fn submodule(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::Unregistered { container, parameters } = &event.kind else { return None };
    let what = if *parameters { "parameters" } else { "modules" };
    let message = format!(
        "these {what} are in a plain {container}: `.to()`, `parameters()` and `state_dict()` miss them"
    );
    let mut f = finding(302, event, message, event.place, "not registered");
    f.world = World::Always;
    let kind = match (*container, *parameters) {
        ("dict", true) => "ParameterDict",
        ("dict", false) => "ModuleDict",
        (_, true) => "ParameterList",
        (_, false) => "ModuleList",
    };
    let help = format!("keep them in an `nn.{kind}`");
    Some(with_stack(f, event).help(help).remedy([Remedy::Hold { attribute: event.place, class: kind }]))
}

/// SD303 non-leaf-parameter
pub(super) fn non_leaf(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::NonLeaf { what, used } = &event.kind else { return None };
    let (message, label, help) = match what.as_str() {
        "the module" => (
            "this copy of a parameter is no parameter: the module does not register it, and nothing trains it"
                .to_owned(),
            "kept by the module here",
            "make the tensor on the device first, and the `nn.Parameter` of that",
        ),
        "the parameter's name" => (
            "this copy of a parameter is no parameter: in the place of one the module refuses it".to_owned(),
            "`TypeError` unless it is there already",
            "move the module, or the values of the parameter: its `.data`",
        ),
        "`.grad`" => (
            "this copy is no leaf: its `.grad` stays `None`".to_owned(),
            "its gradient is asked for here",
            "move first, then ask for gradients: `.to(…).requires_grad_()`",
        ),
        name => (
            format!("this copy is no leaf, and {name} refuses it"),
            "given to the optimizer here",
            "move first, then ask for gradients: `.to(…).requires_grad_()`",
        ),
    };
    let f = finding(303, event, message, event.place, "another tensor than the one that keeps the gradient");
    let f = if *used == event.place { f } else { f.related(*used, label) };
    Some(with_stack(f, event).help(help))
}

/// SD304 optimizer-before-transfer
pub(super) fn optimizer_first(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::OptimizerFirst { optimizer, then, left } = &event.kind else { return None };
    if event.symbolic && event.speculative {
        return None;
    }
    let moved = "the model is moved here";
    let (message, label, then_label, help) = match left {
        LeftBehind::State => (
            format!(
                "`{optimizer}` makes its state where the parameters are now, and the model is moved later"
            ),
            "made too early",
            moved,
            "make the optimizer after the model is complete and in its place",
        ),
        LeftBehind::LaterState => (
            format!("`{optimizer}` has a state from here on, and the model is moved away from it later"),
            "where the parameters are now",
            moved,
            "move the model first: `load_state_dict()` and the steps put the state where the parameters are",
        ),
        LeftBehind::Parameters => (
            format!("`{optimizer}` is given parameters that the model does not have any more later"),
            "made too early",
            "the parameters are replaced here",
            "make the optimizer after the model is complete and in its place",
        ),
    };
    let mut f = finding(304, event, message, event.place, label).related(*then, then_label);
    f.world = if *left == LeftBehind::Parameters { World::Always } else { World::Cuda };
    Some(with_stack(f, event).help(help))
}

/// SD306 data-parallel-before-transfer
pub(super) fn wrapped(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::WrappedOnCpu { wrapper, chain } = &event.kind else { return None };
    let message = format!("`{wrapper}` wraps a model that is on the CPU");
    let label = match *wrapper {
        "DataParallel" => "with two GPUs or more its parameters must be on the first one",
        _ => "its parameters must be on the device that it names",
    };
    let mut f = finding(306, event, message, event.place, label);
    f.world = World::Cuda;
    for step in chain.iter().filter(|s| s.reason != Reason::None).take(2) {
        if !f.places().any(|p| p == step.place) {
            f = f.related(step.place, reason(step));
        }
    }
    Some(with_stack(f, event).help("move the model first, with `.to(…)`"))
}

/// SD108 unguarded-nccl
pub(super) fn nccl(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Nccl = &event.kind else { return None };
    if event.is_guess() || super::availability::chosen(event, cx) {
        return None;
    }
    let message = "NCCL needs CUDA, and nothing here has asked whether it is there".to_owned();
    let f = finding(108, event, message, event.place, "raises without a GPU");
    Some(
        with_also(with_stack(f, event), event)
            .help("choose the back end: `\"nccl\" if torch.cuda.is_available() else \"gloo\"`")
            .remedy([Remedy::Choose {
                literal: event.place,
                check: "torch.cuda.is_available",
                otherwise: "gloo",
            }]),
    )
}

/// SD107 hard-coded-autocast-device
pub(super) fn autocast(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::CudaAutocast { follows, given } = &event.kind else { return None };
    if event.is_guess() || super::availability::chosen(event, cx) {
        return None;
    }
    let message =
        "this is for CUDA alone, and the work in it follows a device that may be the CPU: it is off there"
            .to_owned();
    let mut f = finding(107, event, message, event.place, "nothing raises; PyTorch only warns");
    f.world = World::NoCuda;
    if *follows != event.place {
        f = f.related(*follows, "works on the chosen device");
    }
    if cx.sources.text(event.place).contains("GradScaler") {
        return Some(
            with_stack(f, event).help("name the type of the chosen device: `torch.amp.GradScaler(…)`"),
        );
    }
    let name = given.and_then(|given| Spot::new(cx, event.place)?.name(given));
    let remedy = name.map(|x| Remedy::Autocast { call: event.place, device: format!("{x}.device") });
    Some(with_stack(f, event).help("name the type of the chosen device: `torch.autocast(…)`").remedy(remedy))
}
