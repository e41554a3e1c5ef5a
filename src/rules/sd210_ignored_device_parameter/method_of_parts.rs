//! SD210 ignored-device-parameter: a method takes a device, and calls the same method of its object's attributes without it.

use super::IGNORES_CALLER;
use crate::finding::Finding;
use crate::ir::{ClassId, Expr, ExprId, FuncKind, Function, Module};
use crate::link::{ClassKey, Resolved};
use crate::rules::shared::file::{File, given_to_own, is_self};
use crate::rules::shared::naming::is_short;
use crate::sym::Sym;
use crate::words::Words;

static NAMES: Words = Words::of("names of device parameters");

/// `def offload(self, gpu_id=0): self.encoder.offload()`, where the method of `encoder` also takes `gpu_id`.
pub(super) fn without_it(file: &File<'_>, function: &Function) -> Option<Finding> {
    let class = function.class?;
    let given = function.params.iter().find(|p| NAMES.has(p.name.as_str()))?;
    if file.mentions(function, given.slot) {
        return None;
    }
    let key = ClassKey { module: file.module, class };
    let at = file.inside(function).find_map(|(_, e, at)| {
        let Expr::Call(id) = e else { return None };
        let call = file.ir.call(id);
        let Expr::Attr { base, name } = file.ir.expr(call.func) else { return None };
        let Expr::Attr { base: of, name: part } = file.ir.expr(base) else { return None };
        let same = name == function.name && call.args.is_empty() && is_self(file.ir, of);
        (same && takes_it(file, key, part, name, given.name)).then_some(at)
    })?;
    let (name, what) = (function.name, given.name);
    let call = Some(file.text_of(at)).filter(|text| is_short(text));
    let call = call.map_or_else(|| format!("the `{name}` of its parts"), |text| format!("`{text}`"));
    let message = format!("`{name}` takes `{what}`, but does not pass it on to {call}");
    let found = file.parameter_finding(at, message, IGNORES_CALLER, function.name_span);
    Some(found.help(file.pass_on(at, what)))
}

/// Does a method of the object assign the attribute an instance of a class whose method takes a parameter with this name?
fn takes_it(file: &File<'_>, key: ClassKey, part: Sym, method: Sym, wanted: Sym) -> bool {
    let program = file.cx.program;
    made_as(file.ir, key.class, part).into_iter().any(|made| {
        let Some(Resolved::Class(class)) = program.resolve_expr(file.module, made) else { return false };
        program.find_method(class, method).is_some_and(|(m, f)| {
            let callee = program.get(m).ir.function(f);
            callee.kind == FuncKind::Function && callee.params.iter().any(|p| p.name == wanted)
        })
    })
}

/// The callees of `self.part = Encoder(…)` in the methods of a class.
fn made_as(ir: &Module, class: ClassId, part: Sym) -> Vec<ExprId> {
    let methods = ir.class(class).methods.iter().map(|&(_, f)| ir.function(f));
    let given = methods.flat_map(|method| given_to_own(ir, method, part));
    given
        .filter_map(|e| if let Expr::Call(id) = ir.expr(e) { Some(ir.call(id).func) } else { None })
        .collect()
}
