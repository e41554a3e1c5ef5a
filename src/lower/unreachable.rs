//! Unreachable statements: the rest of a block after `return`, `raise`, `continue` or `break`.
//!
//! They have no effect, so they are left out. Only their presence matters: a function with an unreachable `yield` is a generator, and the
//! names that they bind are local.

use rustpython_ast::visitor::{Visitor, walk_expr, walk_stmt};
use rustpython_ast::{Expr, Stmt};

/// The reachable statements of a function's block.
pub(super) fn reached(body: &[Stmt]) -> &[Stmt] {
    match body.iter().position(ends) {
        Some(last) if last + 1 < body.len() && !yields(&body[last + 1..]) => &body[..=last],
        _ => body,
    }
}

/// Does the statement never continue with the next one?
fn ends(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Return(_) | Stmt::Raise(_) | Stmt::Continue(_) | Stmt::Break(_) => true,
        Stmt::If(s) => {
            let clauses = || s.elif_else_clauses.iter();
            clauses().any(|clause| clause.test.is_none())
                && s.body.iter().any(ends)
                && clauses().all(|clause| clause.body.iter().any(ends))
        }
        _ => false,
    }
}

fn yields(stmts: &[Stmt]) -> bool {
    let mut found = Yields(false);
    stmts.iter().for_each(|stmt| found.visit_stmt(stmt));
    found.0
}

/// Searches for a `yield` at any depth.
struct Yields(bool);

impl<'a> Visitor<'a> for Yields {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        self.0 |= matches!(expr, Expr::Yield(_) | Expr::YieldFrom(_));
        walk_expr(self, expr);
    }
}
