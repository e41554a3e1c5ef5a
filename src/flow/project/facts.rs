//! Facts about one place in a file, for all callers: the code around it, and the code before it in its function.

use crate::flow::query::nodes::outermost;
use crate::ir::{Expr, ExprId, FuncId, Module, Stmt};
use crate::span::Span;

/// Context managers and decorators under which autograd records nothing.
const CUTS: [&str; 2] = ["no_grad", "inference_mode"];
/// Functions that select the process's GPU.
const CHOOSERS: [&str; 2] = ["set_device", "set_device_idx"];

/// Whether the expression is inside a decorator or `with` under which autograd records nothing.
pub(crate) fn is_without_gradients(ir: &Module, e: ExprId) -> bool {
    let cuts = |e: ExprId| {
        ir.exprs_in(e).any(|n| {
            let e = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
            ir.last_name(e).is_some_and(|name| CUTS.contains(&name.as_str()))
        })
    };
    let at = ir.span(e);
    let mut decorators = ir.functions_around(at).flat_map(|f| ir.list(ir.function(f).decorators));
    decorators.any(|&d| cuts(d))
        || ir.stmts.iter().zip(&ir.stmt_spans).any(|(s, span)| match s {
            Stmt::With { items, .. } => span.contains(at) && items.iter().any(|&(manager, _)| cuts(manager)),
            _ => false,
        })
}

/// Whether the function has called `set_device` before.
pub(crate) fn chooses_before(ir: &Module, e: ExprId) -> bool {
    is_called_before(ir, e, &CHOOSERS)
}

/// Whether the function around the expression has called one of these functions before.
pub(crate) fn is_called_before(ir: &Module, e: ExprId, names: &[&str]) -> bool {
    let (around, at) = (ir.function_around(e), ir.span(e));
    ir.calls().any(|call| {
        let named = ir.last_name(call.func).is_some_and(|n| names.contains(&n.as_str()));
        named && ir.span(call.func).end < at.start && ir.function_around(call.func) == around
    })
}

/// Whether the expression is in a constructor.
pub(crate) fn is_in_constructor(ir: &Module, e: ExprId) -> bool {
    outermost(ir, e)
        .is_some_and(|f| ir.function(f).class.is_some() && ir.function(f).name.as_str() == "__init__")
}

/// Whether the place is in a loop of its function, or in a comprehension.
pub(crate) fn is_repeated(ir: &Module, at: Span) -> bool {
    ir.loops().iter().any(|(_, span)| span.contains(at))
        || ir
            .exprs
            .iter()
            .zip(&ir.expr_spans)
            .any(|(e, span)| matches!(e, Expr::Comp(_)) && span.contains(at))
}

/// Whether the expression runs when the outermost function around it runs: it is not in a nested function, lambda or class.
pub(crate) fn is_run_at_once(ir: &Module, e: ExprId) -> bool {
    ir.function_around(e) == outermost(ir, e).unwrap_or(FuncId(0))
}
