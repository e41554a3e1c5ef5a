//! SD4: device indices.

use super::{Context, finding, with_also, with_stack};
use crate::finding::Finding;
use crate::flow::event::{Event, Kind, UseKind};
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
