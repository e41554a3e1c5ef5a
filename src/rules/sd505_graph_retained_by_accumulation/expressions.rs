//! SD505 graph-retained-by-accumulation: compares expressions, and finds the sum so far in them.

use crate::ir::{BinOp, Expr, ExprId, Module, Whole};
use crate::span::Span;

/// The container of an item: `totals` of `totals[key]`.
pub(super) fn whole(ir: &Module, mut e: ExprId) -> ExprId {
    while let Expr::Index { base, .. } = ir.expr(e) {
        e = base;
    }
    e
}

/// Is it the sum so far, perhaps with a weight: `total`, `0.9 * total`, `totals.get(key, 0)`?
pub(super) fn is_so_far(ir: &Module, e: ExprId, target: ExprId) -> bool {
    match ir.expr(e) {
        Expr::Binary { op: BinOp::Mul, left, right } => {
            is_so_far(ir, left, target) || is_so_far(ir, right, target)
        }
        Expr::Binary { op: BinOp::Div, left, .. } => is_so_far(ir, left, target),
        _ => same(ir, e, target) || takes_from(ir, e, target),
    }
}

/// `totals.get(key, 0)`, for the target `totals[key]`.
fn takes_from(ir: &Module, e: ExprId, target: ExprId) -> bool {
    let (Expr::Call(c), Expr::Index { base, index }) = (ir.expr(e), ir.expr(target)) else { return false };
    let call = ir.call(c);
    matches!(ir.expr(call.func), Expr::Attr { base: b, name } if name.as_str() == "get" && same(ir, b, base))
        && call.args.first().is_some_and(|a| same(ir, a.value, index))
}

/// Are two expressions the same names, attributes and constant keys?
pub(super) fn same(ir: &Module, a: ExprId, b: ExprId) -> bool {
    match (ir.expr(a), ir.expr(b)) {
        (Expr::Var(x), Expr::Var(y)) => x == y,
        (Expr::Attr { base: x, name: n }, Expr::Attr { base: y, name: m }) => n == m && same(ir, x, y),
        (Expr::Index { base: x, index: i }, Expr::Index { base: y, index: j }) => {
            same(ir, x, y) && same(ir, i, j)
        }
        (Expr::Str(x), Expr::Str(y)) => x == y,
        (Expr::Int(Whole(x)), Expr::Int(Whole(y))) => x == y,
        _ => false,
    }
}

/// The innermost function around a place, or an empty span in the module body.
pub(super) fn scope_of(ir: &Module, at: Span) -> Span {
    let around = ir.functions.iter().filter(|f| f.parent.is_some() && f.span.contains(at));
    around.map(|f| f.span).max_by_key(|s| s.start).unwrap_or_default()
}
