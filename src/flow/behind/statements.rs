//! What a statement does by itself: what it sets, and what it evaluates first.

use crate::ir::{Expr, ExprId, Module, Stmt};

/// What a statement may set, several at once taken apart.
pub(super) fn may_set(ir: &Module, s: &Stmt) -> Vec<ExprId> {
    let targets = match *s {
        Stmt::Assign { targets, .. } => ir.list(targets).to_vec(),
        Stmt::AugAssign { target, .. } | Stmt::AnnAssign { target, .. } | Stmt::For { target, .. } => {
            vec![target]
        }
        Stmt::With { ref items, .. } => items.iter().filter_map(|&(_, target)| target).collect(),
        _ => Vec::new(),
    };
    let parts = |e: ExprId| match ir.expr(e) {
        Expr::Tuple(list) | Expr::List(list) => ir.list(list).to_vec(),
        _ => vec![e],
    };
    targets.into_iter().flat_map(parts).collect()
}

/// What a statement evaluates first, whatever else it does.
pub(super) fn at_once(s: &Stmt) -> Vec<ExprId> {
    match *s {
        Stmt::AugAssign { value, .. } | Stmt::AnnAssign { value: Some(value), .. } => vec![value],
        Stmt::If { test, .. } | Stmt::While { test, .. } | Stmt::Assert { test, .. } => vec![test],
        Stmt::For { iter, .. } => vec![iter],
        Stmt::With { ref items, .. } => items.iter().map(|&(e, _)| e).take(1).collect(),
        Stmt::Match { subject, .. } => vec![subject],
        _ => Vec::new(),
    }
}
