//! SD208 cpu-tensor-in-collective: a CPU tensor in a collective of an NCCL group.

use crate::assumption::Assumption;
use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::flow::value::Reason;
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, reason, with_stack};
use crate::rules::shared::test_code::in_tests;
use crate::world::World;

pub(super) const CODE: Code = Code(208);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::CpuInCollective { what, tensor, elsewhere } = &event.kind else { return None };
        if event.symbolic && event.speculative {
            return None;
        }
        // Tests run in one process, in which `accelerate` gathers nothing.
        let several = what.starts_with("torch.");
        let tested = |place| in_tests(place, cx);
        if !several && (tested(event.place) || event.stack.iter().any(|&call| tested(call))) {
            return None;
        }
        let message = format!("`{what}` of an NCCL group is given a tensor on the CPU");
        let mut f = finding(CODE, event, message, event.place, "NCCL moves data between GPUs only");
        f.world = World::Cuda;
        for step in tensor.chain.iter().filter(|s| s.reason != Reason::None).take(2) {
            if !f.places().any(|p| p == step.place) {
                f = f.related(step.place, reason(step));
            }
        }
        let group = elsewhere.then_some(Assumption::GroupIsNccl);
        Some(
            with_stack(f, event)
                .assume(group)
                .help("move it to this process's GPU first, or use a Gloo group"),
        )
    }
}
