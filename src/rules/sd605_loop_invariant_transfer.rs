//! SD605 loop-invariant-transfer: the same copy in every round, or in every call of a module.

use crate::assumption::{Assumption, ByDefault};
use crate::finding::{Code, Finding};
use crate::flow::event::{Again, Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::with_stack;
use crate::rules::shared::transfers::transfer;

pub(super) const CODE: Code = Code(605);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let &Kind::InvariantMove { again } = &event.kind else { return None };
        let (message, help) = match again {
            Again::Forward => (
                "the same tensor is copied again in every call of the module",
                "let the module move it: `self.register_buffer(…, persistent=False)`",
            ),
            Again::Loop => (
                "the same tensor is copied again in every round of the loop",
                "move it once, before the loop",
            ),
        };
        let f = transfer(CODE, event, message, "copied every time");
        // What a module has made where its inputs are is there already.
        let by_default = event.symbolic && again == Again::Forward;
        let default = by_default.then_some(Assumption::DefaultDevice(ByDefault::Device));
        Some(with_stack(f, event).help(help).assume(default))
    }
}
