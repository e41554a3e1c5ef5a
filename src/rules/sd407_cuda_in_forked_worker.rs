//! SD407 cuda-in-forked-worker: CUDA in a fork of a process that uses CUDA.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::flow::value::Reason;
use crate::rules::check::{Check, Context};
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::{line_with, operand, quoted};
use crate::rules::shared::events::{finding, with_stack};
use crate::span::Place;
use crate::world::World;

pub(super) const CODE: Code = Code(407);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::InWorker { loader, loads, chain } = &event.kind else { return None };
        let user = quoted(cx, event.place, "this call");
        let message = match (loads, *loader == event.place) {
            (true, true) => {
                "the data set gives CUDA tensors to the worker processes of this loader, and a forked worker cannot use CUDA"
                    .to_owned()
            }
            (true, false) => {
                format!("{user} runs in a worker process of a `DataLoader`, and a forked worker cannot use CUDA")
            }
            (false, _) => format!("{user} runs in a forked process, and its parent process has already used CUDA"),
        };
        let mut f = finding(CODE, event, message, event.place, "a forked process cannot use CUDA");
        f.world = World::Cuda;
        let there = chain.iter().find(|s| matches!(s.reason, Reason::Made | Reason::Moved));
        if let Some(step) = there.filter(|s| s.place != event.place) {
            f = f.related(step.place, "puts a tensor of the data set on CUDA");
        }
        if *loader != event.place {
            let label = if *loads { "starts the worker processes" } else { "starts the forked processes" };
            f = f.related(*loader, label);
        }
        let help = if *loads {
            on_the_cpu(cx, event.place)
        } else {
            "start the processes with `torch.multiprocessing.set_start_method(\"spawn\")`".to_owned()
        };
        Some(with_stack(f, event).help(help))
    }
}

/// The line without the transfer.
fn on_the_cpu(cx: &Context<'_>, place: Place) -> String {
    let moved =
        CallAt::new(cx, place).filter(|call| call.target().is_some()).and_then(|call| call.receiver());
    let line = moved.and_then(|moved| line_with(cx, place, &operand(cx, moved)?));
    match line {
        Some(line) => {
            format!("keep the tensor on the CPU, `{line}`, and move the batch in the training loop")
        }
        None => "give CPU tensors to the loader, and move the batch in the training loop".to_owned(),
    }
}
