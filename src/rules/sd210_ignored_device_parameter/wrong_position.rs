//! SD210 ignored-device-parameter: a device is passed by position, for another parameter than the callee's device.

use super::callee_default::Callee;
use crate::finding::Finding;
use crate::ir::{ArgKind, Expr, ExprId, Function, Param, ParamKind, Var};
use crate::link::Resolved;
use crate::rules::shared::file::File;

/// `Metric(name, as_loss, device)` of `def __init__(self, name, as_loss, weight=None, device=None)`: the device becomes the weight.
pub(super) fn to_another(file: &File<'_>, function: &Function, param: &Param) -> Option<Finding> {
    if !file.assignments(function, param.slot).is_empty() {
        return None;
    }
    file.inside(function).find_map(|(n, e, at)| {
        let Expr::Call(id) = e else { return None };
        // In a nested function, this number is another variable.
        if !file.is_directly_in(function, n) {
            return None;
        }
        let call = file.ir.call(id);
        let n = call.args.iter().position(|a| {
            a.kind == ArgKind::Positional && file.ir.expr(a.value) == Expr::Var(Var::Local(param.slot))
        })?;
        let open = |kind| matches!(kind, ArgKind::Star | ArgKind::DoubleStar);
        if call.args[..n].iter().any(|a| open(a.kind))
            || call.args.iter().any(|a| a.kind == ArgKind::Keyword(param.name))
        {
            return None;
        }
        let Callee::Function { module, func, bound } = file.callee(function, call)? else { return None };
        let ir = &file.cx.program.get(module).ir;
        let callee = ir.function(func);
        let taken = callee.params.get(n + usize::from(bound)).filter(|p| p.kind == ParamKind::Normal)?;
        let meant = callee.params.iter().find(|p| p.name == param.name && p.default.is_some())?;
        let speaks = taken.name.as_str().contains(param.name.as_str());
        let owner = File::new(file.cx, module, ir);
        if speaks
            || taken.slot == meant.slot
            || taken.default.is_none()
            || owner.is_used_as_device(callee, taken, meant)
        {
            return None;
        }
        let message = format!(
            "this call passes `{0}` by position for the parameter `{1}`, not for the parameter `{0}`",
            param.name, taken.name
        );
        let label = format!("`{}` becomes `{}`", param.name, taken.name);
        let found = file.parameter_finding(at, message, label, function.name_span);
        Some(found.help(format!("pass it by name: `{0}={0}`", param.name)))
    })
}

impl File<'_> {
    /// Is the expression with this number in this function, and not in a nested one?
    fn is_directly_in(&self, function: &Function, n: usize) -> bool {
        u32::try_from(n)
            .is_ok_and(|n| std::ptr::eq(self.ir.function(self.ir.function_around(ExprId(n))), function))
    }

    /// `x.to(taken)`, `device=taken`, `map_location=taken`, `torch.device(taken)`, or `meant = taken or meant`?
    fn is_used_as_device(&self, callee: &Function, taken: &Param, meant: &Param) -> bool {
        let ir = self.ir;
        let mentions: Vec<_> = self
            .inside(callee)
            .filter(|(_, e, _)| matches!(e, Expr::Var(Var::Local(s) | Var::Enclosing { slot: s, .. }) if *s == taken.slot))
            .map(|(.., at)| at)
            .collect();
        let is_in = |e: ExprId| mentions.iter().any(|&m| ir.span(e).contains(m));
        let placed = self.inside(callee).any(|(_, e, _)| {
            let Expr::Call(id) = e else { return false };
            let call = ir.call(id);
            let moves = matches!(ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "to")
                || matches!(self.cx.program.resolve_expr(self.module, call.func),
                    Some(Resolved::External(path)) if path.as_str() == "torch.device");
            call.args.iter().any(|a| {
                let named =
                    matches!(a.kind, ArgKind::Keyword(k) if matches!(k.as_str(), "device" | "map_location"));
                (moves || named) && is_in(a.value)
            })
        });
        placed || self.assignments(callee, meant.slot).iter().any(|&(_, value)| is_in(value))
    }
}
