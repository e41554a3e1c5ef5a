//! SD407 cuda-in-forked-worker: CUDA in the fork of a process that uses it.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::flow::value::Reason;
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(407);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
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
        let mut f = finding(CODE, event, message.to_owned(), event.place, "CUDA cannot be used in a fork");
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
}
