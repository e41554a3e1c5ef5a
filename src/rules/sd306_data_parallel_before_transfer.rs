//! SD306 data-parallel-before-transfer: a model on the CPU that is wrapped for GPUs.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::flow::value::Reason;
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, reason, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(306);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::WrappedOnCpu { wrapper, chain } = &event.kind else { return None };
        let message = format!("`{wrapper}` wraps a model that is on the CPU");
        let label = match *wrapper {
            "DataParallel" => "with two GPUs or more its parameters must be on the first one",
            _ => "its parameters must be on the device that it names",
        };
        let mut f = finding(CODE, event, message, event.place, label);
        f.world = World::Cuda;
        for step in chain.iter().filter(|s| s.reason != Reason::None).take(2) {
            if !f.places().any(|p| p == step.place) {
                f = f.related(step.place, reason(step));
            }
        }
        Some(with_stack(f, event).help("move the model first, with `.to(…)`"))
    }
}
