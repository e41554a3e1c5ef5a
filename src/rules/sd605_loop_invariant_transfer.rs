//! SD605 loop-invariant-transfer: the same copy in every iteration, or in every call of a module.

use crate::assumption::{Assumption, ByDefault};
use crate::finding::{Code, Finding};
use crate::flow::event::{Again, Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::{quoted, text};
use crate::rules::shared::events::with_stack;
use crate::rules::shared::transfers::transfer;

pub(super) const CODE: Code = Code(605);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let &Kind::InvariantMove { again } = &event.kind else { return None };
        let copy = quoted(cx, event.place, "this call");
        let call = CallAt::new(cx, event.place);
        let tensor = call.as_ref().and_then(CallAt::receiver).and_then(|tensor| text(cx, tensor));
        let is_name = |name: &&str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let (message, help) = match again {
            Again::Forward => {
                let name = tensor.and_then(|tensor| tensor.strip_prefix("self.")).filter(is_name);
                (
                    format!("{copy} copies the same tensor in every call of the module"),
                    match name {
                        Some(name) => format!(
                            "make `{name}` a buffer, which moves with the module: `self.register_buffer(\"{name}\", …, persistent=False)`"
                        ),
                        None => {
                            "make the tensor a buffer, which moves with the module: `self.register_buffer(…)`"
                                .to_owned()
                        }
                    },
                )
            }
            Again::Loop => (
                format!("{copy} copies the same data in every iteration of the loop"),
                match tensor.filter(is_name) {
                    Some(tensor) => format!(
                        "move `{tensor}` once, where it is made or before the loop: `{}`",
                        cx.sources.text(event.place)
                    ),
                    None => format!("make this copy once, before the loop: {copy}"),
                },
            ),
        };
        let f = transfer(CODE, event, &message, "the same copy every time");
        // A tensor that a module creates on the device of its inputs is already there.
        let by_default = event.symbolic && again == Again::Forward;
        let default = by_default.then_some(Assumption::DefaultDevice(ByDefault::Device));
        Some(with_stack(f, event).help(help).assume(default))
    }
}
