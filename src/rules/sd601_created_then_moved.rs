//! SD601 created-then-moved: a tensor that is made on the CPU and moved at once.

use crate::assumption::Assumption;
use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::ir::{Block, Expr, ExprId, Stmt};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::with_stack;
use crate::rules::shared::naming::Spot;
use crate::rules::shared::test_code::{has_tests, in_tests};
use crate::rules::shared::transfers::transfer;

pub(super) const CODE: Code = Code(601);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::CreatedThenMoved { counted } = event.kind else { return None };
        // Wherever it is made, a test that does it does so once.
        let from = event.stack.first().copied().unwrap_or(event.place);
        if in_tests(event.place, cx) || has_tests(from, cx) || only_tries(event, cx) {
            return None;
        }
        let f =
            transfer(CODE, event, "this tensor is made on the CPU and then copied", "made there, moved here");
        let help = if counted {
            "count where it is needed: `torch.arange(…, device=…)`"
        } else {
            "make it where it is needed: `device=`"
        };
        let function = Spot::new(cx, event.place).and_then(|spot| spot.made_of());
        let remedy = function.map(|function| Remedy::MakeThere { transfer: event.place, function });
        let assumptions = [Assumption::RunsOften, Assumption::LeftToDefault];
        Some(with_stack(f, event).assume(assumptions).help(help).remedy(remedy))
    }
}

/// `try: torch.zeros(2).to(device)`, `return True`: is it made to see whether that works, in a function that says yes or no?
fn only_tries(event: &Event, cx: &Context<'_>) -> bool {
    let Some(module) = cx.program.module_of(event.place.file) else { return false };
    let (ir, at) = (&cx.program.get(module).ir, event.place.span);
    let Some(function) = ir.function_at(at) else { return false };
    let stmts = || ir.stmts[ir.stmts_of(function)].iter();
    let tried = |block: Block| ir.block(block).iter().any(|&s| ir.stmt_span(s).contains(at));
    let mut answers =
        stmts().filter_map(|s| if let Stmt::Return(value) = *s { Some(value) } else { None }).peekable();
    let answer = |e: ExprId| matches!(ir.expr(e), Expr::True | Expr::False);
    answers.peek().is_some()
        && answers.all(|value| value.is_some_and(answer))
        && stmts().any(|s| matches!(*s, Stmt::Try { body, .. } if tried(body)))
}
