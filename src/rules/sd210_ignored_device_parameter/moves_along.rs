//! SD210 ignored-device-parameter: objects that become part of a module, or that are written into a tensor. They end up on the device of
//! that module or tensor.

use super::File;
use crate::flow::is_module_class;
use crate::ir::{Call, Expr, ExprId, Function, Stmt, Var};
use crate::link::{ClassKey, Resolved};
use crate::span::Span;
use crate::words::Words;

static REGISTERED: Words = Words::of("make a tensor move along");

impl File<'_> {
    /// Is the new object, under any name, registered with a module, so that it moves with it, or copied into the elements of a tensor?
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
                && self.ir.last_name(call.func).is_some_and(|name| REGISTERED.has(name.as_str()))
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

    /// `self.body = Body(…)` in a method that later moves its own module: `self.to(device)` also moves its parts.
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

    /// `self.body = Body(…)`: the class of the module, if it becomes an attribute of the function's object.
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

    /// The variables to which the function assigns the call's result.
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
