//! Path conditions: the tests that decide whether a place in a function is reached.

use crate::ir::{Block, Expr, ExprId, FuncKind, Module, Stmt, StmtId};
use crate::span::Span;

/// The tests on the path to a place, in all functions around it, each with the outcome that leads there.
pub fn conditions(ir: &Module, at: Span) -> Vec<(ExprId, bool)> {
    let mut found = Vec::new();
    let around =
        |f: &&crate::ir::Function| f.kind == FuncKind::Function && f.parent.is_some() && f.span.contains(at);
    for function in ir.functions.iter().filter(around) {
        in_block(ir, function.body, at, &mut found);
        in_expressions(ir, ir.exprs_of(function), at, &mut found);
    }
    found
}

fn in_block(ir: &Module, block: Block, at: Span, found: &mut Vec<(ExprId, bool)>) {
    let covers = |block: Block| ir.block(block).iter().any(|&s| ir.stmt_span(s).contains(at));
    for &s in ir.block(block) {
        if !ir.stmt_span(s).contains(at) {
            if ir.stmt_span(s).end <= at.start {
                came_past(ir, s, found);
            }
            continue;
        }
        let mut inside = |block: Block, condition: Option<(ExprId, bool)>| {
            if covers(block) {
                found.extend(condition);
                in_block(ir, block, at, found);
            }
        };
        match ir.stmt(s) {
            &Stmt::If { test, then, orelse } => {
                inside(then, Some((test, true)));
                inside(orelse, Some((test, false)));
            }
            &Stmt::While { body, orelse, .. } | &Stmt::For { body, orelse, .. } => {
                inside(body, None);
                inside(orelse, None);
            }
            Stmt::With { body, .. } => inside(*body, None),
            &Stmt::Try { body, handlers, orelse, finally } => {
                [body, orelse, finally].into_iter().for_each(|b| inside(b, None));
                ir.handlers(handlers).iter().for_each(|h| inside(h.body, None));
            }
            Stmt::Match { cases, .. } => cases.iter().for_each(|c| inside(c.body, None)),
            _ => {}
        }
    }
}

/// Adds the path conditions that a completed statement implies for the code after it.
fn came_past(ir: &Module, s: StmtId, found: &mut Vec<(ExprId, bool)>) {
    match *ir.stmt(s) {
        Stmt::If { test, then, orelse } => {
            if ends(ir, then) {
                found.push((test, false));
            }
            if ends(ir, orelse) {
                found.push((test, true));
            }
        }
        Stmt::Assert { test, .. } => found.push((test, true)),
        _ => {}
    }
}

/// Whether control never passes the end of the block.
fn ends(ir: &Module, block: Block) -> bool {
    ir.block(block).iter().any(|&s| match *ir.stmt(s) {
        Stmt::Return(_) | Stmt::Raise { .. } | Stmt::Break | Stmt::Continue => true,
        Stmt::If { then, orelse, .. } => ends(ir, then) && ends(ir, orelse),
        Stmt::With { body, .. } => ends(ir, body),
        _ => false,
    })
}

/// `b(x) if a else c(x)`, `a and b(x)`
fn in_expressions(ir: &Module, exprs: std::ops::Range<usize>, at: Span, found: &mut Vec<(ExprId, bool)>) {
    let covers = |e: ExprId| ir.span(e).contains(at);
    for n in exprs.filter(|&n| ir.expr_spans[n].contains(at)) {
        match ir.exprs[n] {
            Expr::IfElse(id) => {
                let parts = ir.if_else(id);
                found.extend(covers(parts.then).then_some((parts.test, true)));
                found.extend(covers(parts.orelse).then_some((parts.test, false)));
            }
            Expr::And(list) | Expr::Or(list) => {
                let truth = matches!(ir.exprs[n], Expr::And(_));
                let list = ir.list(list);
                let before = list.iter().position(|&e| covers(e)).unwrap_or_default();
                found.extend(list[..before].iter().map(|&e| (e, truth)));
            }
            _ => {}
        }
    }
}
