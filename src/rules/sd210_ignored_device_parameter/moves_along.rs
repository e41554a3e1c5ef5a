//! SD210 ignored-device-parameter: what is made for a module, or written into a tensor that is there: wherever it is made, it ends up where that is.

use super::File;
use crate::flow::is_module_class;
use crate::ir::{Call, Expr, ExprId, Function, Stmt, Var};
use crate::link::{ClassKey, Resolved};
use crate::span::Span;

impl File<'_> {
    /// Is what is made here, under whatever name, registered with a module, so that it moves with that, or copied into the
    /// items of a tensor?
    pub(super) fn is_taken_along(&self, function: &Function, made: Span) -> bool {
        let named = self.names_of_result(function, made);
        let is_it = |e: ExprId| match self.ir.expr(e) {
            Expr::Var(Var::Local(s)) if named.contains(&s) => true,
            _ => self.ir.span(e).contains(made),
        };
        let registered = self.inside(function).any(|(_, e, at)| {
            let Expr::Call(c) = e else { return false };
            let call = self.ir.call(c);
            at.end >= made.end
                && self.ir.last_name(call.func).is_some_and(|name| {
                    matches!(name.as_str(), "register_buffer" | "register_parameter" | "Parameter" | "Buffer")
                })
                && call.args.iter().any(|a| is_it(a.value))
        });
        let body = self.ir.stmts_of(function);
        registered
            || self.ir.stmts[body].iter().any(|s| match *s {
                Stmt::Assign { targets, value } => {
                    let into = |&t: &ExprId| matches!(self.ir.expr(t), Expr::Index { .. });
                    self.ir.span(value) == made && self.ir.list(targets).iter().any(into)
                }
                _ => false,
            })
    }

    /// `self.body = Body(…)` in a method that moves its own module afterwards: `self.to(device)` takes its parts along.
    pub(super) fn moves_with_owner(&self, function: &Function, call: Call<'_>, made: Span) -> bool {
        let Some(receiver) = function.params.first().map(|p| Expr::Var(Var::Local(p.slot))) else {
            return false;
        };
        let moves = |e: Expr| {
            let Expr::Call(c) = e else { return false };
            matches!(self.ir.expr(self.ir.call(c).func), Expr::Attr { base, name }
                if name.as_str() == "to" && self.ir.expr(base) == receiver)
        };
        self.becomes_part(function, call, made).is_some()
            && self.inside(function).any(|(_, e, at)| at.start > made.end && moves(e))
    }

    /// `self.body = Body(…)`: the class of the module that becomes a part of the function's object.
    fn becomes_part(&self, function: &Function, call: Call<'_>, made: Span) -> Option<ClassKey> {
        let receiver = Expr::Var(Var::Local(function.params.first()?.slot));
        let Some(Resolved::Class(key)) = self.cx.program.resolve_expr(self.module, call.func) else {
            return None;
        };
        let own = |&t: &ExprId| matches!(self.ir.expr(t), Expr::Attr { base, .. } if self.ir.expr(base) == receiver);
        let kept = self.ir.stmts[self.ir.stmts_of(function)].iter().any(|s| {
            matches!(*s, Stmt::Assign { targets, value }
                if self.ir.span(value) == made && self.ir.list(targets).iter().any(own))
        });
        (kept && is_module_class(self.cx.program, key)).then_some(key)
    }

    /// The variables of the function that are given what a call gives.
    pub(super) fn names_of_result(&self, function: &Function, call: Span) -> Vec<u16> {
        let mut named = Vec::new();
        for (s, &at) in self.ir.stmts.iter().zip(&self.ir.stmt_spans) {
            if let Stmt::Assign { targets, .. } = s
                && at.contains(call)
                && function.span.contains(at)
            {
                named.extend(self.ir.list(*targets).iter().flat_map(|&t| self.names_in(t)));
            }
        }
        named
    }
}
