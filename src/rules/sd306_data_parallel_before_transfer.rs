//! SD306 data-parallel-before-transfer: a model on the CPU is wrapped for GPUs.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::flow::value::Reason;
use crate::rules::check::{Check, Context};
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::variable;
use crate::rules::shared::events::{finding, reason, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(306);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::WrappedOnCpu { wrapper, chain } = &event.kind else { return None };
        let call = CallAt::new(cx, event.place);
        let model = call.as_ref().and_then(|call| variable(cx, call.place_of(call.first()?)));
        let subject = model.map_or_else(|| "the model".to_owned(), |name| format!("`{name}`"));
        let (message, label) = match *wrapper {
            "DataParallel" => (
                format!("`{wrapper}` needs the parameters on its first GPU, but {subject} is on the CPU"),
                "raises with two or more GPUs",
            ),
            _ => (
                format!(
                    "`{wrapper}` needs the parameters on the GPU in `device_ids`, but {subject} is on the CPU"
                ),
                "raises here",
            ),
        };
        let mut f = finding(CODE, event, message, event.place, label);
        f.world = World::Cuda;
        for step in chain.iter().filter(|s| s.reason != Reason::None).take(2) {
            if !f.places().any(|p| p == step.place) {
                f = f.related(step.place, reason(step));
            }
        }
        let help = match model {
            Some(name) => format!("move the model before this line: `{name}.to(device)`"),
            None => "move the model before this line, with `.to(device)`".to_owned(),
        };
        Some(with_stack(f, event).help(help))
    }
}
