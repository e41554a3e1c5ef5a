//! Modules that a function brings to the CPU before it takes their state: `net.cpu()`, then `torch.save(net.state_dict(), path)`.

use super::held::blocks;
use super::site::argument;
use crate::ir::{Block, Expr, ExprId, FuncId, Module, Stmt, StmtId};
use crate::span::Span;
use crate::sym::Sym;

/// Has the module been moved to the CPU, in place, before the function mentions it here? `net.cpu()` as a statement of its own, or of
/// one that holds the mention.
pub(super) fn brought_to_host(ir: &Module, func: FuncId, module: ExprId) -> bool {
    let at = ir.span(module);
    let mut host = false;
    let mut block = Some(ir.function(func).body);
    while let Some(b) = block.take() {
        for &s in ir.block(b) {
            let span = ir.stmt_span(s);
            if span.start >= at.start {
                break;
            }
            if span.contains(at) {
                let holds = |b: &Block| ir.block(*b).iter().any(|&s| ir.stmt_span(s).contains(at));
                block = blocks(ir, ir.stmt(s)).into_iter().find(holds);
                break;
            }
            host = match moves(ir, s, module) {
                Some(to_host) => to_host,
                None => host && !mentions_move(ir, span, module),
            };
        }
    }
    host
}

/// Does the statement do nothing but move the module to the CPU, or (`false`) elsewhere?
fn moves(ir: &Module, s: StmtId, module: ExprId) -> Option<bool> {
    let value = match *ir.stmt(s) {
        Stmt::Expr(e) => e,
        Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| ir.names_the_same(t, module)) => {
            value
        }
        _ => return None,
    };
    let Expr::Call(id) = ir.expr(value) else { return None };
    let call = ir.call(id);
    let Expr::Attr { base, name } = ir.expr(call.func) else { return None };
    let cpu = |e: ExprId| ir.expr(e) == Expr::Str(Sym::new("cpu"));
    if !ir.names_the_same(base, module) {
        return None;
    }
    match name.as_str() {
        "cpu" => Some(true),
        "to" => Some(argument(call, 0, Sym::new("device")).is_some_and(cpu)),
        "cuda" => Some(false),
        _ => None,
    }
}

/// Is the module moved, or its name set, somewhere within this stretch?
fn mentions_move(ir: &Module, within: Span, module: ExprId) -> bool {
    let inside = |e: ExprId| within.contains(ir.span(e));
    let moved = ir.calls().any(|call| match ir.expr(call.func) {
        Expr::Attr { base, name } => {
            matches!(name.as_str(), "to" | "cuda") && inside(call.func) && ir.names_the_same(base, module)
        }
        _ => false,
    });
    let set = ir.stmts.iter().zip(&ir.stmt_spans).any(|(s, at)| match *s {
        Stmt::Assign { targets, .. } => {
            within.contains(*at) && ir.list(targets).iter().any(|&t| ir.names_the_same(t, module))
        }
        _ => false,
    });
    moved || set
}
