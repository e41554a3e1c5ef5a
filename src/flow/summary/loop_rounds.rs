//! What is done in each round of a loop to the same thing.

use crate::ir::{Expr, ExprId, Module, Stmt};
use crate::span::Span;

/// `for gpu in range(count): x.to(f"cuda:{gpu}")`: the same thing to one device after the other. What is done so is done for what
/// comes of the copying itself, such as peer access, for only one of the copies could be kept.
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

/// Is what is moved read elsewhere in the loop? Then it was meant to be there.
fn is_read_besides(ir: &Module, around: Span, e: ExprId, receiver: ExprId) -> bool {
    let it = ir.expr(receiver);
    let at = ir.span(e);
    ir.exprs
        .iter()
        .zip(&ir.expr_spans)
        .any(|(&x, &span)| x == it && around.contains(span) && !at.contains(span))
}
