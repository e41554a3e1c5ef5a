//! SD406 missing-set-device: processes or threads that do not choose their own GPU.

mod threads;

use crate::assumption::Assumption;
use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(406);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::NoSetDevice { uses, indexed } = &event.kind else { return None };
        if event.speculative && event.symbolic {
            return None;
        }
        let (message, use_) = if *indexed {
            (
                "no process of this NCCL group calls `torch.cuda.set_device()`: work that names no index runs on GPU 0",
                "each process uses its own GPU here",
            )
        } else {
            (
                "every process of this NCCL group uses GPU 0: none calls `torch.cuda.set_device()`",
                "GPU 0 in every process",
            )
        };
        let mut f =
            finding(CODE, event, message.to_owned(), event.place, "each process joins the group here");
        f.world = World::Cuda;
        for &place in uses.iter().take(3) {
            if !f.places().any(|p| p == place) {
                f = f.related(place, use_);
            }
        }
        Some(
            with_stack(f, event)
                .assume([Assumption::NoGpuChosen])
                .help("call `torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))` before the process joins the group"),
        )
    }

    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        threads::started(cx)
    }
}
