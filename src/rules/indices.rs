//! SD4: device indices.

use super::{Context, finding, with_also, with_stack};
use crate::finding::Finding;
use crate::flow::event::{Event, Kind, UseKind};
use crate::flow::value::Reason;
use crate::world::World;

/// SD402 hard-coded-device-list
pub(super) fn device_list(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::Use { what, how: UseKind::DeviceList, index: Some(i), .. } = &event.kind else { return None };
    if event.is_guess() {
        return None;
    }
    let message =
        format!("{what} names {} GPUs, and nothing here has asked whether there are that many", i + 1);
    let mut f = finding(402, event, message, event.place, "raises with fewer GPUs");
    f.world = World::FewerGpus(i + 1);
    Some(with_stack(f, event).help("take what is there: `list(range(torch.cuda.device_count()))`"))
}

/// SD401 hard-coded-device-index
pub(super) fn device_index(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::Use { what, origin, index: Some(i), backend: None, how, .. } = &event.kind else { return None };
    if *i == 0 || matches!(how, UseKind::DeviceList | UseKind::Pinned) || event.is_guess() {
        return None;
    }
    let (place, _) = super::availability::home(event, *origin);
    let message =
        format!("`cuda:{i}` is written down, and nothing here has asked whether there are {} GPUs", i + 1);
    let mut f = finding(401, event, message, place, &format!("raises with fewer than {} GPUs", i + 1));
    f.world = World::FewerGpus(i + 1);
    if place != event.place {
        f = f.related(event.place, format!("{what} uses it"));
    }
    Some(
        with_also(with_stack(f, event), event)
            .help("take the index from the caller, or check `torch.cuda.device_count()`"),
    )
}

/// SD403 visible-devices-set-too-late
pub(super) fn too_late(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::EnvironmentTooLate { variable, first } = &event.kind else { return None };
    let message = format!("`{variable}` is set after CUDA was asked, which has read it already");
    let mut f = finding(403, event, message, event.place, "has no effect any more");
    f.world = World::Cuda;
    if *first != event.place {
        f = f.related(*first, "CUDA is asked here");
    }
    Some(with_stack(f, event).help("set it before, or in the shell that starts the program"))
}

/// SD404 device-index-outside-visible-devices
pub(super) fn outside_visible(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::OutsideVisible { index, visible, set } = &event.kind else { return None };
    let message = match (index, visible) {
        (Some(i), Some(v)) => {
            format!(
                "`cuda:{i}` does not exist where `CUDA_VISIBLE_DEVICES` is `{v}`: visible GPUs are numbered from zero"
            )
        }
        _ => {
            "this index comes from `CUDA_VISIBLE_DEVICES`, and visible GPUs are numbered from zero".to_owned()
        }
    };
    let mut f = finding(404, event, message, event.place, "another GPU, or none");
    f.world = World::Cuda;
    if let Some(set) = set.filter(|s| *s != event.place) {
        f = f.related(set, "the visible GPUs are chosen here");
    }
    Some(
        with_stack(f, event)
            .help("count from zero: with `CUDA_VISIBLE_DEVICES=\"2,3\"` they are `cuda:0` and `cuda:1`"),
    )
}

/// SD408 hard-coded-visible-devices
pub(super) fn fixed_visible(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::FixedVisible { text, needed, none_left } = &event.kind else { return None };
    if event.is_guess() || super::in_tests(event.place, cx) {
        return None;
    }
    let then = if *none_left { "no GPU is visible" } else { "some of them are missing" };
    let message =
        format!("`CUDA_VISIBLE_DEVICES` is fixed to `{text}`: with fewer than {needed} GPUs {then}");
    let mut f = finding(408, event, message, event.place, "the user's choice, made here");
    f.world = World::FewerGpus(*needed);
    Some(with_stack(f, event).help("leave it to the environment, or take it from an argument"))
}

/// SD405 global-rank-as-device-index
pub(super) fn global_rank(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::GlobalRank = &event.kind else { return None };
    // Tests run on one machine.
    if event.is_guess() || super::in_tests(event.place, cx) {
        return None;
    }
    let world = match event.bite.world {
        other @ World::With(_) => other,
        _ => World::Cuda,
    };
    let what = if world == World::Cuda { "GPU" } else { "device" };
    let message = format!(
        "the global rank is no device index: on the second machine there is no {what} of that number"
    );
    let mut f = finding(405, event, message, event.place, "counts processes of all machines");
    f.world = world;
    Some(with_stack(with_also(f, event), event).help("take the local one: `int(os.environ[\"LOCAL_RANK\"])`"))
}

/// SD406 missing-set-device
pub(super) fn no_set_device(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::NoSetDevice { uses, indexed } = &event.kind else { return None };
    if event.speculative && event.symbolic {
        return None;
    }
    let (message, use_) = if *indexed {
        (
            "no process of this group makes its GPU the current one: what names no index goes to GPU 0",
            "one GPU for each process",
        )
    } else {
        ("every process of this group uses the same GPU: none chooses its own", "GPU 0 in every process")
    };
    let mut f = finding(406, event, message.to_owned(), event.place, "a process for each GPU starts here");
    f.world = World::Cuda;
    for &place in uses.iter().take(3) {
        if !f.places().any(|p| p == place) {
            f = f.related(place, use_);
        }
    }
    Some(
        with_stack(f, event)
            .help("choose before anything else: `torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))`"),
    )
}

/// SD407 cuda-in-forked-worker
pub(super) fn in_worker(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::InWorker { loader, loads, chain } = &event.kind else { return None };
    let (message, help) = if *loads {
        (
            "this runs in the loader's workers, which are forks of a process that uses CUDA",
            "give out CPU tensors, and move the batch in the loop",
        )
    } else {
        (
            "this runs in a fork of a process that has used CUDA",
            "start processes afresh: `torch.multiprocessing.set_start_method(\"spawn\")`",
        )
    };
    let mut f = finding(407, event, message.to_owned(), event.place, "CUDA cannot be used in a fork");
    f.world = World::Cuda;
    let there = chain.iter().find(|s| matches!(s.reason, Reason::Made | Reason::Moved));
    if let Some(step) = there.filter(|s| s.place != event.place) {
        f = f.related(step.place, "what the data set gives out is put on CUDA here");
    }
    if *loader != event.place {
        f = f.related(
            *loader,
            if *loads { "the workers are started here" } else { "the fork is started here" },
        );
    }
    Some(with_stack(f, event).help(help))
}
