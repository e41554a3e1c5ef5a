//! `def to(self, *args, **kwargs)` of a class that asks this and that and leaves the moving to its base.

use super::module::MOVES;
use super::{Closure, Interp};
use crate::ir::{ArgKind, Expr, ExprId, ParamKind, Stmt, Var};
use crate::sym::Sym;

impl Interp<'_> {
    /// Does a module's own method of this name end in `return super().to(*args, **kwargs)`, and change nothing before? What it
    /// refuses to move is a matter of its own: as a rule it moves as any module does.
    pub(super) fn is_handed_up(&self, name: Sym, method: Closure) -> bool {
        let ir = &self.program.get(method.module).ir;
        let function = ir.function(method.func);
        let [receiver, positional, keywords] = &function.params[..] else { return false };
        let any = positional.kind == ParamKind::Star && keywords.kind == ParamKind::DoubleStar;
        if !MOVES.contains(&name.as_str()) || !any {
            return false;
        }
        let local = |e: ExprId, slot| ir.expr(e) == Expr::Var(Var::Local(slot));
        let hands_up = |e: ExprId| {
            let Expr::Call(id) = ir.expr(e) else { return false };
            let call = ir.call(id);
            let Expr::Attr { base, name: method } = ir.expr(call.func) else { return false };
            let Expr::Call(of) = ir.expr(base) else { return false };
            let [a, b] = call.args else { return false };
            method == name
                && ir.is_builtin(ir.call(of).func, "super")
                && a.kind == ArgKind::Star
                && local(a.value, positional.slot)
                && b.kind == ArgKind::DoubleStar
                && local(b.value, keywords.slot)
        };
        let last = ir.block(function.body).last().map(|&s| ir.stmt(s));
        let ends = matches!(last, Some(&Stmt::Return(Some(e))) if hands_up(e));
        let changes = ir.stmts[ir.stmts_of(function)].iter().any(|s| match *s {
            Stmt::Assign { targets, .. } => ir.list(targets).iter().any(|&t| {
                matches!(ir.expr(t), Expr::Attr { .. } | Expr::Index { .. })
                    || local(t, positional.slot)
                    || local(t, keywords.slot)
                    || local(t, receiver.slot)
            }),
            Stmt::AugAssign { .. } | Stmt::Del(_) => true,
            _ => false,
        });
        // Not those of `@wraps(nn.Module.to)`.
        let body = function.exprs.start as usize..function.exprs.end as usize;
        let moves = ir.exprs[body]
            .iter()
            .filter(|e| matches!(**e, Expr::Attr { name, .. } if MOVES.contains(&name.as_str())));
        ends && !changes && moves.count() == 1
    }
}
