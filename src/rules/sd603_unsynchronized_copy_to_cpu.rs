//! SD603 unsynchronized-copy-to-cpu: a copy that is read before it is done.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::with_stack;
use crate::rules::shared::transfers::transfer;

pub(super) const CODE: Code = Code(603);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::ReadTooEarly { read } = &event.kind else { return None };
        let message =
            "this copy to the CPU is read before anything has waited for it: the numbers may be old";
        let f = transfer(CODE, event, message, "returns before the copy is done").related(*read, "read here");
        Some(
            with_stack(f, event)
                .help("leave out `non_blocking`, or call `torch.cuda.synchronize()` before the read")
                .remedy([Remedy::Without { call: event.place, keyword: "non_blocking" }]),
        )
    }
}
