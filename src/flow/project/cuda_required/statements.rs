//! What a statement evaluates itself.

use crate::ir::{ExprId, Stmt};

/// The expressions that a statement always evaluates first.
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
