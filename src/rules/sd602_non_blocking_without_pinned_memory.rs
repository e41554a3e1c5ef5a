//! SD602 non-blocking-without-pinned-memory: a non-blocking copy from memory that is not pinned.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::{line_with, operand, quoted};
use crate::rules::shared::events::with_stack;
use crate::rules::shared::test_code::in_tests;
use crate::rules::shared::transfers::transfer;

pub(super) const CODE: Code = Code(602);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Pageable { made } = &event.kind else { return None };
        if in_tests(event.place, cx) {
            return None;
        }
        let call = quoted(cx, event.place, "this copy");
        let message =
            format!("{call} copies from memory that is not pinned, so it does not overlap with other work");
        let mut f = transfer(CODE, event, &message, "waits until the memory is read");
        let loader = CallAt::new(cx, *made)
            .filter(|call| call.function().is_some_and(|path| path.ends_with("DataLoader")));
        if *made != event.place {
            let label = if loader.is_some() {
                "makes batches without `pin_memory=True`"
            } else {
                "makes the tensor in memory that is not pinned"
            };
            f = f.related(*made, label);
        }
        let line = match &loader {
            Some(loader) => {
                loader.with_argument("pin_memory", "True").and_then(|code| line_with(cx, *made, &code))
            }
            None => CallAt::new(cx, event.place)
                .and_then(|call| call.receiver())
                .and_then(|tensor| line_with(cx, tensor, &format!("{}.pin_memory()", operand(cx, tensor)?))),
        };
        let help = match (line, loader.is_some()) {
            (Some(line), true) => format!("pin the batches: `{line}`"),
            (Some(line), false) => format!("pin the tensor: `{line}`, or leave out `non_blocking=True`"),
            (None, true) => "pass `pin_memory=True` to the `DataLoader`".to_owned(),
            (None, false) => {
                "pin the tensor with `.pin_memory()`, or leave out `non_blocking=True`".to_owned()
            }
        };
        Some(with_stack(f, event).help(help))
    }
}
