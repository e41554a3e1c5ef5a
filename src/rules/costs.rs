//! Rules about costs that are off unless asked for.

use super::{Context, finding, with_stack};
use crate::finding::Finding;
use crate::flow::event::{Event, Kind};
use crate::world::World;

fn cost(code: u16, event: &Event, message: &str, label: &str, help: &str) -> Finding {
    let mut f = finding(code, event, message.to_owned(), event.place, label);
    f.world = World::Cuda;
    with_stack(f, event).help(help)
}

/// SD508 empty-cache-in-loop
pub(super) fn emptied(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::CacheEmptied = &event.kind else { return None };
    Some(cost(
        508,
        event,
        "this gives the allocator's memory back in every round, only for it to be asked for again",
        "waits for the GPU, and empties the cache",
        "leave it out, or call it once, after the loop",
    ))
}

/// SD606 sync-in-training-loop
pub(super) fn sync(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::SyncInTraining = &event.kind else { return None };
    Some(cost(
        606,
        event,
        "this reads a number back from the GPU in every round of a training",
        "waits for the GPU",
        "keep a detached tensor, and read it every so many rounds",
    ))
}

/// SD509 device-results-accumulated
pub(super) fn kept(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::ResultsKept = &event.kind else { return None };
    Some(cost(
        509,
        event,
        "the results of all rounds stay in device memory",
        "kept on the GPU",
        "move each to the host first: `.cpu()`",
    ))
}
