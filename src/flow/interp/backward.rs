//! What `backward` of an `autograd.Function` is given: what `forward` has saved for it, and the gradients of what that has returned.

use super::super::value::{OuterId, OuterKey, Value};
use super::Interp;
use crate::ir::{ArgKind, Expr, ExprId, FuncId, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::torch;

/// Which of the tensors that `forward` deals with.
enum Which {
    Saved(usize),
    Returned(usize),
}

impl Interp<'_> {
    /// Is it, or is it the gradient of, a tensor that `forward` has made without saying where? That is where `backward` makes its own.
    pub(super) fn is_from_forward(&self, o: OuterId) -> bool {
        let Some((module, func, which)) = self.dealt_with(o) else { return false };
        let Some(class) = self.program.get(module).ir.function(func).class else { return false };
        let Some(forward) = self.program.own_method(ClassKey { module, class }, self.known.forward) else {
            return false;
        };
        let ir = &self.program.get(module).ir;
        let function = ir.function(forward);
        match which {
            Which::Saved(n) => ir.exprs[ir.exprs_of(function)].iter().any(|e| {
                let Expr::Call(id) = *e else { return false };
                let call = ir.call(id);
                ir.last_name(call.func).is_some_and(|name| name.as_str() == "save_for_backward")
                    && call.args.get(n).is_some_and(|a| self.is_made_by_default(module, forward, a.value))
            }),
            Which::Returned(n) => ir.stmts[ir.stmts_of(function)].iter().any(|s| {
                let Stmt::Return(Some(value)) = *s else { return false };
                let one = match ir.expr(value) {
                    Expr::Tuple(list) => ir.list(list).get(n).copied(),
                    _ => Some(value).filter(|_| n == 0),
                };
                one.is_some_and(|e| self.is_made_by_default(module, forward, e))
            }),
        }
    }

    /// The `backward` that the outside thing belongs to, and which tensor of its `forward` that is about.
    fn dealt_with(&self, o: OuterId) -> Option<(ModIdx, FuncId, Which)> {
        match self.t.get_outer(o).key {
            OuterKey::Param { module, func, index } if self.is_backward(module, func) => {
                Some((module, func, Which::Returned(usize::from(index.checked_sub(1)?))))
            }
            OuterKey::Item { base, key: Some(Value::Int(n)) } => {
                let OuterKey::Attr { base: context, name } = self.t.get_outer(base).key else { return None };
                match self.t.get_outer(context).key {
                    OuterKey::Param { module, func, index: 0 }
                        if name.as_str() == "saved_tensors" && self.is_backward(module, func) =>
                    {
                        Some((module, func, Which::Saved(usize::try_from(n).ok()?)))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Is it a variable that holds what a factory makes without being told where, and that is at most filled? What adds to it would
    /// have to be there as well.
    fn is_made_by_default(&self, module: ModIdx, func: FuncId, e: ExprId) -> bool {
        let ir = &self.program.get(module).ir;
        let Expr::Var(var @ Var::Local(_)) = ir.expr(e) else { return false };
        let placed = |k: ArgKind| match k {
            ArgKind::DoubleStar => true,
            ArgKind::Keyword(name) => name == self.known.device,
            _ => false,
        };
        let makes = |value: ExprId| {
            let Expr::Call(id) = ir.expr(value) else { return false };
            let call = ir.call(id);
            let factory = |path| torch::function(path).is_some_and(|op| op.kind == torch::Kind::Factory);
            matches!(self.program.resolve_expr(module, call.func), Some(Resolved::External(path)) if factory(path))
                && !call.args.iter().any(|a| placed(a.kind))
        };
        let own = &ir.stmts[ir.stmts_of(ir.function(func))];
        let added_to =
            |s: &Stmt| matches!(*s, Stmt::AugAssign { target, .. } if ir.expr(target) == Expr::Var(var));
        !own.iter().any(added_to)
            && own.iter().any(|s| match *s {
                Stmt::Assign { targets, value } => {
                    ir.list(targets).iter().any(|&t| ir.expr(t) == Expr::Var(var)) && makes(value)
                }
                _ => false,
            })
    }
}
