//! What a statement does by itself: what it sets, and what it evaluates first.

use crate::ir::{ExprId, Stmt};

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
