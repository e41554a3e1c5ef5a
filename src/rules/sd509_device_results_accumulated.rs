//! SD509 device-results-accumulated: the results of all iterations stay on the GPU.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::{line_with, operand, quoted};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(509);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::ResultsKept = &event.kind else { return None };
        let what = quoted(cx, event.place, "this call");
        let message = format!("{what} keeps the result of every iteration in GPU memory");
        let mut f = finding(CODE, event, message, event.place, "the result stays on the GPU");
        f.world = World::Cuda;
        let result = CallAt::new(cx, event.place).and_then(|call| call.argument(0, ""));
        let line =
            result.and_then(|result| line_with(cx, result, &format!("{}.cpu()", operand(cx, result)?)));
        let help = match line {
            Some(line) => format!("move each result to the CPU: `{line}`"),
            None => "move each result to the CPU with `.cpu()`".to_owned(),
        };
        Some(with_stack(f, event).help(help))
    }
}
