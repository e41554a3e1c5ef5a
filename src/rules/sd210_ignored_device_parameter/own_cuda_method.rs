//! SD210 ignored-device-parameter: a module's own `cuda()` takes a device, and calls the base's without it.

use super::IGNORES_CALLER;
use crate::finding::Finding;
use crate::flow::is_module_class;
use crate::ir::{Expr, Function, ParamKind, Var};
use crate::link::ClassKey;
use crate::rules::shared::file::File;
use crate::world::{Backend, World};

/// `def cuda(self, *args, **kwargs): …; return super().cuda()`
pub(super) fn to_current_gpu(file: &File<'_>, function: &Function) -> Option<Finding> {
    let name = function.name;
    if name.as_str() != "cuda" && Backend::from_name(name.as_str()).is_none() {
        return None;
    }
    let key = ClassKey { module: file.module, class: function.class? };
    if !is_module_class(file.cx.program, key) {
        return None;
    }
    let (_, given) = function.params.split_first()?;
    let device = given.iter().find(|p| p.name.as_str() == "device" || p.kind == ParamKind::Star)?;
    let looked_at = file.inside(function).any(|(_, e, _)| match e {
        Expr::Var(Var::Local(slot) | Var::Enclosing { slot, .. }) => given.iter().any(|p| p.slot == slot),
        Expr::Var(Var::Unbound(name)) => name.as_str() == "locals",
        _ => false,
    });
    if looked_at {
        return None;
    }
    let at = file.inside(function).find_map(|(_, e, at)| {
        let Expr::Call(c) = e else { return None };
        let call = file.ir.call(c);
        let Expr::Attr { base, name: called } = file.ir.expr(call.func) else { return None };
        let of_base =
            matches!(file.ir.expr(base), Expr::Call(c) if file.ir.is_builtin(file.ir.call(c).func, "super"));
        (called == name && of_base && call.args.is_empty()).then_some(at)
    })?;
    let star = device.kind == ParamKind::Star;
    let (what, help) = if star { ("*", "*args, **kwargs") } else { ("", device.name.as_str()) };
    let message = format!(
        "`{name}` does not use its parameter `{what}{}`: this moves the module to the current device",
        device.name
    );
    let mut found = file.parameter_finding(at, message, IGNORES_CALLER, function.name_span);
    if let Some(backend) = Backend::from_name(name.as_str()) {
        found.world = World::With(backend);
    }
    Some(found.help(format!("pass it on: `super().{name}({help})`")))
}
