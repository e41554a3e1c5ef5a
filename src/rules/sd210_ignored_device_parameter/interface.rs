//! SD210 ignored-device-parameter: methods whose parameters an interface prescribes, so that they need not use them.

use crate::ir::{Expr, ExprId, Function, Var};
use crate::link::{ClassKey, Resolved};
use crate::rules::shared::file::File;
use crate::sym::Sym;

impl File<'_> {
    /// Does something else prescribe the parameters, such as a base, a decorator or a framework?
    pub(super) fn is_interface(&self, function: &Function) -> bool {
        if function.decorators.len > 0 && self.ir.list(function.decorators).iter().any(|&d| self.overrides(d))
        {
            return true;
        }
        let Some(class) = function.class else { return false };
        let key = ClassKey { module: self.module, class };
        let info = self.cx.program.class(key);
        let plain = info.mro.len() == 1
            && !info.unknown_base
            && info
                .externals
                .iter()
                .all(|p| p.as_str() == "torch.nn.Module" || p.as_str().starts_with("builtins."));
        !plain
    }

    /// Does a base prescribe the parameters of the method, as far as is known? An override may not need a parameter that another class
    /// needs.
    pub(super) fn is_from_base(&self, function: &Function) -> bool {
        let Some(class) = function.class.filter(|_| self.is_interface(function)) else {
            return self.is_interface(function);
        };
        let (program, key) = (self.cx.program, ClassKey { module: self.module, class });
        let info = program.class(key);
        let known = |p: &Sym| p.as_str() == "torch.nn.Module" || p.as_str().starts_with("builtins.");
        let decorated = self.ir.list(function.decorators).iter().any(|&d| self.overrides(d));
        decorated
            || info.unknown_base
            || !info.externals.iter().all(known)
            || info.mro.iter().any(|&base| base != key && program.own_method(base, function.name).is_some())
    }

    fn overrides(&self, decorator: ExprId) -> bool {
        let name = match self.ir.expr(decorator) {
            Expr::Attr { name, .. } | Expr::Var(Var::Unbound(name)) => Some(name),
            // `@torch.no_grad()`
            Expr::Call(c) => match self.cx.program.resolve_expr(self.module, self.ir.call(c).func) {
                Some(Resolved::External(p)) => Some(p),
                _ => return true,
            },
            Expr::Var(_) => match self.cx.program.resolve_expr(self.module, decorator) {
                Some(Resolved::External(p)) => Some(p),
                _ => return true,
            },
            _ => return true,
        };
        name.is_none_or(|n| !n.as_str().ends_with("no_grad") && !n.as_str().ends_with("staticmethod"))
    }
}
