//! SD210: a device that is given by position, and comes to another parameter than the one for devices.

use super::super::file::File;
use super::left::Callee;
use crate::finding::Finding;
use crate::ir::{ArgKind, Expr, Function, Param, ParamKind, Var};

/// `Metric(name, as_loss, device)` of `def __init__(self, name, as_loss, weight=None, device=None)`: the device is the weight now.
pub(super) fn to_another(file: &File<'_>, function: &Function, param: &Param) -> Option<Finding> {
    if !file.assignments(function, param.slot).is_empty() {
        return None;
    }
    file.inside(function).find_map(|(_, e, at)| {
        let Expr::Call(id) = e else { return None };
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
        let callee = file.cx.program.get(module).ir.function(func);
        let taken = callee.params.get(n + usize::from(bound)).filter(|p| p.kind == ParamKind::Normal)?;
        let meant = callee.params.iter().find(|p| p.name == param.name && p.default.is_some())?;
        let speaks = taken.name.as_str().contains(param.name.as_str());
        if speaks || taken.slot == meant.slot || taken.default.is_none() {
            return None;
        }
        let message = format!(
            "`{}` is given for `{}` here, and not for the parameter of its own name",
            param.name, taken.name
        );
        let found =
            file.parameter_finding(at, message, "by its position, it is something else", function.name_span);
        Some(found.help(format!("give it by its name: `{0}={0}`", param.name)))
    })
}
