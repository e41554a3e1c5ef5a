//! Places that only the first of all processes reaches: `if not trainer.is_global_zero: return`.

use crate::flow::query::path_conditions::conditions;
use crate::ir::{CmpOp, Expr, ExprId, Module, UnaryOp, Whole};
use crate::span::Span;
use crate::words::Words;

/// Attributes and functions that are true in the process with the global rank 0 only.
static FIRST: Words = Words::of("first process");

/// Names of the global rank.
static RANK: Words = Words::of("global rank");

/// Whether the tests around the place let only the process with the global rank 0 reach it.
pub(crate) fn is_in_first_process(ir: &Module, at: Span) -> bool {
    conditions(ir, at).into_iter().any(|(test, outcome)| is_first(ir, test, outcome))
}

/// Whether this outcome of the test implies that the global rank is 0.
fn is_first(ir: &Module, test: ExprId, outcome: bool) -> bool {
    let any = |list| ir.list(list).iter().any(|&e| is_first(ir, e, outcome));
    match ir.expr(test) {
        Expr::Unary { op: UnaryOp::Not, operand } => is_first(ir, operand, !outcome),
        Expr::And(list) if outcome => any(list),
        Expr::Or(list) if !outcome => any(list),
        Expr::Compare { op, left, right } if ir.expr(right) == Expr::Int(Whole(0)) => {
            let equal = match op {
                CmpOp::Eq | CmpOp::LtE => true,
                CmpOp::NotEq | CmpOp::Gt => false,
                _ => return false,
            };
            equal == outcome && is_rank(ir, left)
        }
        Expr::Call(call) => outcome && is_named(ir, ir.call(call).func),
        _ => outcome && is_named(ir, test),
    }
}

fn is_named(ir: &Module, e: ExprId) -> bool {
    ir.last_name(e).is_some_and(|name| FIRST.has(name.as_str()))
}

/// `rank`, `self.global_rank`, `dist.get_rank()`. The local rank is 0 on every machine.
fn is_rank(ir: &Module, e: ExprId) -> bool {
    let named = match ir.expr(e) {
        Expr::Call(call) if ir.call(call).args.is_empty() => ir.call(call).func,
        _ => e,
    };
    ir.last_name(named).is_some_and(|name| RANK.has(name.as_str()))
}
