//! Caches that methods keep: `if self.mask.size(0) != x.size(1): self.mask = build(x)`.
//!
//! The test compares what is kept with what the call is about, and its branch keeps something new. That the cache is
//! filled by one call and used by a later one is what it is for, and no coincidence.

use super::super::atom::{Atom, AtomId};
use super::super::device_words::speaks_of_devices;
use super::super::diagram::Cond;
use super::super::value::FrameId;
use super::Interp;
use crate::ir::{Block, CmpOp, Expr, ExprId, Stmt};
use crate::span::Span;
use crate::sym::Sym;

impl Interp<'_> {
    /// An `if` whose test may ask whether a cache still fits.
    pub(super) fn note_memo(&mut self, test: ExprId, cond: Cond, then: Block) {
        if cond == super::TRUE || cond == super::FALSE || self.here().class.is_none() {
            return;
        }
        let key = (self.here().module, test);
        let asked = match self.memo_tests.get(&key) {
            Some(asked) => asked.clone(),
            None => {
                let asked = self.comparisons_with_kept(test, then);
                self.memo_tests.insert(key, asked.clone());
                asked
            }
        };
        if asked.is_empty() {
            return;
        }
        let mut atoms: Vec<AtomId> = Vec::new();
        self.d.support(cond, &mut atoms);
        let file = self.linked().ir.file;
        for atom in atoms {
            if let Atom::Opaque { place } = self.atoms.get(atom)
                && place.file == file
                && asked.contains(&place.span)
            {
                self.memos.insert(atom, self.frame);
            }
        }
    }

    /// The comparisons in a test of something that the branch keeps anew.
    fn comparisons_with_kept(&self, test: ExprId, then: Block) -> Vec<Span> {
        let ir = &self.linked().ir;
        let mut kept: Vec<Sym> = Vec::new();
        for &s in ir.block(then) {
            match ir.stmt(s) {
                Stmt::Assign { targets, .. } => {
                    kept.extend(ir.list(*targets).iter().filter_map(|&t| self.kept_name(t)));
                }
                // `self.register_buffer("mask", mask)`
                Stmt::Expr(e) => {
                    if let Expr::Call(c) = ir.expr(*e)
                        && let Expr::Attr { name, .. } = ir.expr(ir.call(c).func)
                        && name.as_str() == "register_buffer"
                        && let Some(Expr::Str(field)) = ir.call(c).args.first().map(|a| ir.expr(a.value))
                    {
                        kept.push(field);
                    }
                }
                _ => {}
            }
        }
        let inside = ir.exprs_in(test);
        inside
            .filter_map(|n| match ir.exprs[n] {
                Expr::Compare {
                    op: CmpOp::NotEq | CmpOp::Lt | CmpOp::LtE | CmpOp::Gt | CmpOp::GtE,
                    left,
                    right,
                } => {
                    let (l, r) = (self.speaks_of_any(left, &kept), self.speaks_of_any(right, &kept));
                    let other = if l { right } else { left };
                    let constant =
                        matches!(ir.expr(other), Expr::Int(_) | Expr::Float(_) | Expr::Str(_) | Expr::None);
                    ((l || r) && !constant && !self.speaks_of_places(left) && !self.speaks_of_places(right))
                        .then_some(ir.expr_spans[n])
                }
                _ => None,
            })
            .collect()
    }

    /// `if self.moved is None: self.moved = self.mean.to(x.device)`: is what is made there kept where the function asks whether
    /// something is?
    pub(super) fn is_kept_once(&self, made: ExprId) -> bool {
        let ir = &self.linked().ir;
        let stmts = &ir.stmts[ir.stmts_of(ir.function(self.here().func))];
        let kept: Vec<Sym> = stmts
            .iter()
            .filter_map(|s| match *s {
                Stmt::Assign { targets, value } if ir.span(value).contains(ir.span(made)) => Some(targets),
                _ => None,
            })
            .flat_map(|targets| ir.list(targets).iter().filter_map(|&t| self.kept_name(t)))
            .collect();
        let named = |x: &Expr| matches!(x, Expr::Str(name) if kept.contains(name));
        stmts.iter().any(|s| match *s {
            Stmt::If { test, .. } => {
                self.speaks_of_any(test, &kept) || ir.exprs[ir.exprs_in(test)].iter().any(named)
            }
            _ => false,
        })
    }

    /// `self.mask`, `self.grid[i]`
    fn kept_name(&self, target: ExprId) -> Option<Sym> {
        let ir = &self.linked().ir;
        match ir.expr(target) {
            Expr::Attr { base, name } => matches!(ir.expr(base), Expr::Var(_)).then_some(name),
            Expr::Index { base, .. } => self.kept_name(base),
            _ => None,
        }
    }

    fn speaks_of_any(&self, e: ExprId, names: &[Sym]) -> bool {
        let ir = &self.linked().ir;
        ir.exprs[ir.exprs_in(e)].iter().any(|x| matches!(x, Expr::Attr { name, .. } if names.contains(name)))
    }

    /// `x.device`, and `x.type()`, whose text names the device as well.
    fn speaks_of_places(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let place = |name: &str| name == "type" || speaks_of_devices(name);
        ir.exprs[ir.exprs_in(e)].iter().any(|x| matches!(x, Expr::Attr { name, .. } if place(name.as_str())))
    }

    /// Is it one cache only in each call that decides? Two that are asked the same have the same answer.
    pub(super) fn is_memo(&self, atom: AtomId, before: &mut Vec<FrameId>) -> bool {
        match self.memos.get(&atom) {
            Some(frame) if !before.contains(frame) => {
                before.push(*frame);
                true
            }
            _ => false,
        }
    }
}
