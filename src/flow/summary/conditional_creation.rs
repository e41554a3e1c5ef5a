//! Branches that create a value if the existing one no longer fits, or does not exist yet.
//!
//! `if self.size != x.shape: self.size = x.shape` sets what it tests: the branch is taken when the sizes change, not in every call. The
//! same holds for `if total is None: total = …` in a loop after `total = None`, and for the code after
//! `if self.size == x.shape: return self.table`.

use crate::flow::machine::Interp;
use crate::ir::{Block, CmpOp, Expr, ExprId, Module, Stmt, StmtId, UnaryOp};
use crate::span::Span;

impl Interp<'_> {
    /// Whether the expression is in such a branch.
    pub(crate) fn is_made_anew(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let at = ir.span(e);
        ir.stmts.iter().zip(&ir.stmt_spans).any(|(s, &whole)| {
            let Stmt::If { test, then, .. } = *s else { return false };
            whole.contains(at) && is_in(ir, then, at) && {
                ir.block(then).iter().any(|&s| self.sets_what_is_asked(test, whole, s))
            }
        }) || self.is_after_return(at)
            || self.fills_what_callers_miss()
    }

    /// Whether the current function is a method that its file only calls in such branches, or during set-up. The branch must test an
    /// attribute that the method sets: `if n > self.most: self.fill(n)`, with `self.most = n` in `fill`.
    fn fills_what_callers_miss(&self) -> bool {
        let (linked, frame) = (self.linked(), self.here());
        let ir = &linked.ir;
        let method = ir.function(frame.func);
        // A module's `forward` is called without its name.
        if method.class.is_none() || matches!(method.name.as_str(), "forward" | "__call__") {
            return false;
        }
        let mut set: Vec<ExprId> = Vec::new();
        for s in &ir.stmts[ir.stmts_of(method)] {
            match *s {
                // A counter changes in every call.
                Stmt::Assign { targets, value } => {
                    let kept =
                        |t: &&ExprId| matches!(ir.expr(**t), Expr::Attr { .. }) && !ir.asks_about(value, **t);
                    set.extend(ir.list(targets).iter().filter(kept));
                }
                // A returned value is not kept.
                Stmt::Return(Some(_)) => return false,
                _ => {}
            }
        }
        let misses = |part: ExprId| {
            is_about_what_lacks(ir, part) && set.iter().any(|&place| ir.asks_about(part, place))
        };
        let missed = |at: Span| {
            ir.stmts.iter().any(|s| match *s {
                Stmt::If { test, then, .. } => is_in(ir, then, at) && parts(ir, test).any(misses),
                _ => false,
            })
        };
        let (mut some, mut all) = (false, true);
        for call in ir.calls() {
            if !matches!(ir.expr(call.func), Expr::Attr { name, .. } if name == method.name) {
                continue;
            }
            let (at, around) = (ir.span(call.func), ir.function_around(call.func));
            let once = self.sets_up(ir.function(around).name, frame.module, around);
            some |= !once;
            all &= once || missed(at);
        }
        some && all
    }

    /// Whether the place is after `if size == self.size: return self.table`, with `self.size = size` in between or later. Then the
    /// function reaches the place only when the sizes have changed.
    fn is_after_return(&self, at: Span) -> bool {
        let ir = &self.linked().ir;
        let body = ir.block(ir.function(self.here().func).body);
        let returns =
            |then: Block| ir.block(then).last().is_some_and(|&s| matches!(ir.stmt(s), Stmt::Return(Some(_))));
        body.iter().enumerate().any(|(n, &s)| {
            let Stmt::If { test, then, orelse } = *ir.stmt(s) else { return false };
            let rest = &body[n + 1..];
            returns(then)
                && ir.block(orelse).is_empty()
                && rest.iter().any(|&s| ir.stmt_span(s).contains(at))
                && rest.iter().any(|&s| self.sets_what_was_the_same(test, s))
        })
    }

    /// Whether the statement sets an attribute that the test compares for equality, or for existence.
    fn sets_what_was_the_same(&self, test: ExprId, s: StmtId) -> bool {
        let ir = &self.linked().ir;
        let Stmt::Assign { targets, value } = *ir.stmt(s) else { return false };
        let same = |part: ExprId, place: ExprId| {
            matches!(ir.expr(part), Expr::Compare { op: CmpOp::Eq | CmpOp::IsNot, .. })
                && ir.asks_about(part, place)
        };
        ir.list(targets).iter().any(|&place| {
            matches!(ir.expr(place), Expr::Attr { .. } | Expr::Index { .. })
                && parts(ir, test).any(|part| same(part, place))
                && !ir.asks_about(value, place)
        })
    }

    /// Whether the statement sets an attribute that the test of an `if` finds missing or different.
    fn sets_what_is_asked(&self, test: ExprId, _whole: Span, s: StmtId) -> bool {
        let ir = &self.linked().ir;
        let Stmt::Assign { targets, value } = *ir.stmt(s) else { return false };
        let asked = |place: ExprId| {
            parts(ir, test).any(|part| is_about_what_lacks(ir, part) && ir.asks_about(part, place))
        };
        ir.list(targets).iter().any(|&place| match ir.expr(place) {
            // A counter changes in every iteration.
            Expr::Attr { .. } | Expr::Index { .. } => asked(place) && !ir.asks_about(value, place),
            _ => false,
        })
    }
}

/// Whether a test, or a part of one, holds if something is missing or different.
fn is_about_what_lacks(ir: &Module, part: ExprId) -> bool {
    match ir.expr(part) {
        Expr::Compare { op, .. } => !matches!(op, CmpOp::IsNot | CmpOp::In),
        Expr::Unary { op, .. } => op == UnaryOp::Not,
        _ => false,
    }
}

fn parts(ir: &Module, e: ExprId) -> impl Iterator<Item = ExprId> {
    ir.exprs_in(e).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX)))
}

/// Whether the place is in a statement of the block.
fn is_in(ir: &Module, block: Block, at: Span) -> bool {
    ir.block(block).iter().any(|&s| ir.stmt_span(s).contains(at))
}
