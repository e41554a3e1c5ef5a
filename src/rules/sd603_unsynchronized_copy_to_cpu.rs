//! SD603 unsynchronized-copy-to-cpu: a copy that the program reads before it is complete.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::calls::synchronize;
use crate::rules::shared::code::quoted;
use crate::rules::shared::events::with_stack;
use crate::rules::shared::transfers::transfer;

pub(super) const CODE: Code = Code(603);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::ReadTooEarly { read } = &event.kind else { return None };
        let copy = quoted(cx, event.place, "this copy to the CPU");
        let reader = quoted(cx, *read, "another line");
        let message =
            format!("{copy} returns before the copy is complete, and {reader} reads it without waiting");
        let f = transfer(CODE, event, &message, "starts the copy and returns")
            .related(*read, "may read old numbers");
        let wait = synchronize(f.world);
        let help = format!("leave out `non_blocking=True`, or call `{wait}` before {reader}");
        Some(
            with_stack(f, event)
                .help(help)
                .remedy([Remedy::Without { call: event.place, keyword: "non_blocking" }]),
        )
    }
}
