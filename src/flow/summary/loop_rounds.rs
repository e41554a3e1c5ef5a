//! Operations that every iteration of a loop repeats on the same value.

use crate::ir::{Expr, ExprId, Module, Stmt};
use crate::span::Span;

/// Whether a loop moves the same value to one device after another: `for gpu in range(count): x.to(f"cuda:{gpu}")`. Only one of the
/// copies could be kept, so such code wants a side effect of copying, such as peer access.
pub(crate) fn goes_round(ir: &Module, e: ExprId, receiver: ExprId) -> bool {
    let (at, called) = (ir.span(e), ir.span(receiver));
    let named = |n: usize, target: ExprId| match ir.exprs[n] {
        Expr::Var(var) => ir.binds(target, var),
        _ => false,
    };
    ir.stmts.iter().zip(&ir.stmt_spans).any(|(s, around)| match *s {
        Stmt::For { target, .. } if around.contains(at) && !is_read_besides(ir, *around, e, receiver) => {
            let mut of_round = ir.exprs_in(e).filter(|&n| named(n, target)).peekable();
            of_round.peek().is_some() && of_round.all(|n| !called.contains(ir.expr_spans[n]))
        }
        _ => false,
    })
}

/// Whether other code in the loop reads the moved value. Then the value is meant to be there.
fn is_read_besides(ir: &Module, around: Span, e: ExprId, receiver: ExprId) -> bool {
    let it = ir.expr(receiver);
    let at = ir.span(e);
    ir.exprs
        .iter()
        .zip(&ir.expr_spans)
        .any(|(&x, &span)| x == it && around.contains(span) && !at.contains(span))
}
