//! Dicts of an object that hold nothing before CUDA has been needed.

use super::refuses::Refuses;
use super::statements::may_set;
use crate::ir::{CmpOp, Expr, ExprId, FuncId, FuncKind, Stmt, Var};
use crate::sym::Sym;

impl Refuses<'_> {
    /// `self.states`, a dict that is empty at first, and into which the other methods of the class only put something after they have
    /// needed CUDA: who finds something there has come past that.
    pub(super) fn is_filled_behind(&self, e: ExprId) -> bool {
        let ir = self.ir();
        let function = ir.function(self.func);
        let (Expr::Attr { name, .. }, Some(class)) = (ir.expr(e), function.class) else { return false };
        if !self.uses.anywhere()
            || function.kind != FuncKind::Function
            || !self.is_own_dict(self.func, e, name)
        {
            return false;
        }
        let mut filled = false;
        for &(_, f) in &ir.class(class).methods {
            let Some(fills) = self.fills(f, name) else { return false };
            filled |= fills && f != self.func;
        }
        filled
    }

    /// Does the method put something into the dict? Nothing if it may do so before it has needed CUDA, or hands the dict to others.
    fn fills(&self, f: FuncId, name: Sym) -> Option<bool> {
        let ir = self.ir();
        let function = ir.function(f);
        let after = self.known.get(&(self.module, f)).map(|point| point.after);
        let (mut fills, mut understood) = (false, 0);
        for n in ir.stmts_of(function) {
            let (s, at) = (&ir.stmts[n], ir.stmt_spans[n]);
            for target in may_set(ir, s) {
                match (ir.expr(target), s) {
                    (Expr::Index { base, .. }, _) if self.is_own_dict(f, base, name) => {
                        // What is put there is worked out first.
                        let behind = after.is_some_and(|after| after <= at.end);
                        // What it has found there itself it may put back.
                        if !behind && f != self.func {
                            return None;
                        }
                        fills = true;
                    }
                    (_, &Stmt::Assign { value, .. }) if self.is_own_dict(f, target, name) => {
                        if !matches!(ir.expr(value), Expr::Dict(list) if list.len == 0) {
                            return None;
                        }
                        understood += 1;
                    }
                    _ => {}
                }
            }
        }
        let mut mentioned = 0;
        for n in ir.exprs_of(function) {
            let e = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
            mentioned += u32::from(self.is_own_dict(f, e, name));
            let looked_at = match ir.exprs[n] {
                Expr::Index { base, .. } => Some(base),
                Expr::Compare { op: CmpOp::In | CmpOp::NotIn, right, .. } => Some(right),
                _ => None,
            };
            understood += u32::from(looked_at.is_some_and(|e| self.is_own_dict(f, e, name)));
        }
        (mentioned <= understood).then_some(fills)
    }

    /// Is it the attribute of this name of the method's own object?
    fn is_own_dict(&self, f: FuncId, e: ExprId, name: Sym) -> bool {
        let ir = self.ir();
        let receiver = ir.function(f).params.first().map(|p| Expr::Var(Var::Local(p.slot)));
        matches!(ir.expr(e), Expr::Attr { base, name: n } if n == name && Some(ir.expr(base)) == receiver)
    }
}
