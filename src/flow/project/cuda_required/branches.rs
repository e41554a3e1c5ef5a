//! Branches that no path without CUDA continues after: they refuse, leave the function, or set a value that is needed later.

use super::Uses;
use super::caught::exits;
use super::refuses::{Point, Refusal, Refuses};
use crate::ir::{Block, Expr, ExprId, FuncKind, Module, Stmt, StmtId, Var};
use crate::span::Span;
use crate::work::spend;

impl Refuses<'_> {
    /// `if …: net = …`, `elif …: net = …` without an `else`, where each branch needs CUDA and sets a variable that later code reads and
    /// no other code in the function sets. No path continues without one of the branches.
    pub(super) fn filled(&self, s: StmtId, later: &[StmtId]) -> Option<Point> {
        // Without later statements, no code reads the variable.
        let &last = later.last()?;
        if !self.uses.anywhere() {
            return None;
        }
        let ir = self.ir();
        let function = ir.function(self.func);
        let branches = branches_without_else(ir, s)?;
        spend(branches.len());
        // Other files may set a file's variables.
        if function.kind != FuncKind::Function || !branches.iter().all(|&b| self.ends(b) == Some(true)) {
            return None;
        }
        let after = ir.stmt_span(s).end;
        let unset_else = |&target: &ExprId| {
            let param = function.params.iter().any(|p| ir.expr(target) == Expr::Var(Var::Local(p.slot)));
            let set = |block: Block| sets(ir, block).any(|e| ir.names_the_same(e, target));
            let elsewhere = || {
                let mut others = ir.settings_in(target, ir.stmts_of(function));
                others.any(|other| !ir.stmt_span(s).contains(ir.stmt_span(other.stmt)))
            };
            matches!(ir.expr(target), Expr::Var(Var::Local(_)))
                && !param
                && branches.iter().all(|&b| set(b))
                && !elsewhere()
                && self.reads(Span::new(after, ir.stmt_span(last).end), target)
        };
        let found = sets(ir, *branches.first()?).any(|target| unset_else(&target));
        found.then_some(Point { after, refusal: Some(Refusal::Always) })
    }

    /// Whether the function's statements in this part of the text mention the variable.
    fn reads(&self, part: Span, variable: ExprId) -> bool {
        let ir = self.ir();
        let Expr::Var(variable) = ir.expr(variable) else { return false };
        let all = ir.mentions_in(variable, ir.function(self.func).exprs.clone());
        // The expressions of consecutive statements are in the same order as the statements.
        let from = all.partition_point(|&e| ir.span(e).start < part.start);
        all.get(from).is_some_and(|&e| part.contains(ir.span(e)))
    }

    /// Whether an `if` whose branches all need CUDA counts as a use. It does on a path past it, and in a constructor: the creation of the
    /// object has taken one of the branches.
    pub(super) fn counts_branches(&self) -> bool {
        self.uses == Uses::OnTheWay || self.uses == Uses::All && self.is_constructor()
    }

    /// Whether no path without CUDA continues after the block. `Some(true)`: its caller does not continue either.
    pub(super) fn ends(&self, block: Block) -> Option<bool> {
        match self.block(block) {
            Some(point) => Some(point.refusal == Some(Refusal::Always)),
            None => self.leaves(block),
        }
    }

    /// Whether the block leaves the function. `Some(true)`: its caller does not continue either.
    pub(super) fn leaves(&self, block: Block) -> Option<bool> {
        let &last = self.ir().block(block).last()?;
        match *self.ir().stmt(last) {
            Stmt::Raise { .. } => Some(true),
            Stmt::Return(_) => Some(false),
            Stmt::Expr(e) => exits(self.program, self.module, e).then_some(true),
            _ => None,
        }
    }
}

/// The branches of an `if` with `elif` and without `else`.
fn branches_without_else(ir: &Module, s: StmtId) -> Option<Vec<Block>> {
    let (mut branches, mut at) = (Vec::new(), s);
    while let Stmt::If { then, orelse, .. } = *ir.stmt(at) {
        branches.push(then);
        match *ir.block(orelse) {
            [] => return (branches.len() > 1).then_some(branches),
            [only] => at = only,
            _ => return None,
        }
    }
    None
}

/// The targets that the statements of the block itself assign.
fn sets(ir: &Module, block: Block) -> impl Iterator<Item = ExprId> + '_ {
    let targets = |&s: &StmtId| match *ir.stmt(s) {
        Stmt::Assign { targets, .. } => ir.list(targets),
        _ => &[],
    };
    ir.block(block).iter().flat_map(targets).copied()
}
