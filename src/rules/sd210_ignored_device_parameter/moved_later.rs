//! SD210 ignored-device-parameter: objects that are created on the CPU and later moved to the function's device.

use super::File;
use crate::ir::{Expr, ExprId, Function, Slot, Stmt, Var};
use crate::link::Resolved;
use crate::span::Span;
use crate::sym::Sym;
use crate::world::Backend;

impl File<'_> {
    /// Does the same statement also pass the parameter to the object around the call's result, or to a function that is called later?
    /// `kept`: the result keeps its device, so the parameter in the call itself does not count.
    pub(super) fn comes_later(&self, function: &Function, slot: u16, call: Span, kept: bool) -> bool {
        // The body of a lambda is no statement of the function.
        let of_lambda = |s: &Stmt, at: Span| matches!(*s, Stmt::Return(Some(e)) if self.ir.span(e) == at);
        let statements = self.ir.stmts.iter().zip(&self.ir.stmt_spans);
        let around = statements
            .filter(|&(s, &at)| at.contains(call) && !of_lambda(s, at))
            .map(|(_, &at)| at)
            .max_by_key(|at| at.start);
        let Some(around) = around else { return false };
        let sent = |at: Span| around.contains(at) && !(kept && call.contains(at));
        self.namings(function, slot).iter().any(|&at| sent(at))
            || self.inside(function).any(|(_, e, at)| match e {
                Expr::Var(Var::Enclosing { slot: s, .. }) => s == slot && at.start >= around.start,
                _ => false,
            })
    }

    /// Is the call's result later moved to the parameter's device, or passed on together with it? `parts`: objects that are created from
    /// the result count too.
    pub(super) fn results_follow(&self, function: &Function, slot: u16, call: Span, parts: bool) -> bool {
        let mut named = self.names_of_result(function, call);
        let vars: Vec<(u16, Span)> = self
            .inside(function)
            .filter_map(|(_, e, at)| match e {
                Expr::Var(Var::Local(s)) => Some((s, at)),
                _ => None,
            })
            .collect();
        let made = |at: Span, named: &[u16]| vars.iter().any(|&(s, v)| named.contains(&s) && at.contains(v));
        for (s, &at) in self.ir.stmts.iter().zip(&self.ir.stmt_spans) {
            if let Stmt::Assign { targets, value } = *s
                && parts
                && function.span.contains(at)
                && at.start >= call.end
                && made(self.ir.span(value), &named)
            {
                named.extend(self.ir.list(targets).iter().flat_map(|&t| self.names_in(t)));
            }
            // After `points[order] = …`, `points` is on the device of `order`.
            if let Stmt::Assign { targets, .. } = *s
                && parts
                && function.span.contains(at)
                && at.start >= call.end
            {
                let ordered = self.ir.list(targets).iter().filter_map(|&t| match self.ir.expr(t) {
                    Expr::Index { base, index } if made(self.ir.span(index), &named) => Some(base),
                    _ => None,
                });
                let bases: Vec<u16> = ordered.flat_map(|base| self.names_in(base)).collect();
                named.extend(bases);
            }
        }
        let namings = self.namings(function, slot);
        self.inside(function).any(|(_, e, at)| {
            matches!(e, Expr::Call(_))
                && at.start >= call.end
                && namings.iter().any(|&naming| at.contains(naming))
                && made(at, &named)
        })
    }

    /// Does the function later move the call's result to a device of its own choice: `model = model.cuda()`?
    pub(super) fn is_placed_later(&self, function: &Function, call: Span) -> bool {
        let named = self.names_of_result(function, call);
        let moves = |name: Sym| name.as_str() == "cuda" || Backend::from_name(name.as_str()).is_some();
        self.inside(function).any(|(_, e, at)| {
            let Expr::Call(c) = e else { return false };
            let Expr::Attr { base, name } = self.ir.expr(self.ir.call(c).func) else { return false };
            at.start >= call.end
                && moves(name)
                && matches!(self.ir.expr(base), Expr::Var(Var::Local(s)) if named.contains(&s))
        })
    }

    /// The places where the function names its device: by the variable, by another variable, or by an attribute that has it after
    /// `self.device = device`.
    fn namings(&self, function: &Function, slot: Slot) -> Vec<Span> {
        let given = |e: ExprId| match self.ir.expr(e) {
            Expr::Var(Var::Local(s)) => s == slot,
            Expr::Call(c) => {
                let call = self.ir.call(c);
                let [arg] = call.args else { return false };
                self.ir.expr(arg.value) == Expr::Var(Var::Local(slot))
                    && matches!(self.cx.program.resolve_expr(self.module, call.func),
                        Some(Resolved::External(path)) if path.as_str() == "torch.device")
            }
            _ => false,
        };
        let receiver = function.params.first().map(|p| Expr::Var(Var::Local(p.slot)));
        let own = |base: ExprId| Some(self.ir.expr(base)) == receiver;
        let (mut variables, mut attributes): (Vec<Slot>, Vec<Sym>) = (vec![slot], Vec::new());
        for s in &self.ir.stmts[self.ir.stmts_of(function)] {
            let Stmt::Assign { targets, value } = *s else { continue };
            if !given(value) {
                continue;
            }
            for &target in self.ir.list(targets) {
                match self.ir.expr(target) {
                    Expr::Var(Var::Local(s)) => variables.push(s),
                    Expr::Attr { base, name } if own(base) => attributes.push(name),
                    _ => {}
                }
            }
        }
        let names = |e: Expr| match e {
            Expr::Var(Var::Local(s)) => variables.contains(&s),
            Expr::Attr { base, name } => own(base) && attributes.contains(&name),
            _ => false,
        };
        self.inside(function).filter(|&(_, e, _)| names(e)).map(|(.., at)| at).collect()
    }
}
