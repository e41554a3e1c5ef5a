//! SD210 ignored-device-parameter: a method is called again without the device that an earlier call passed.

use crate::finding::Finding;
use crate::flow::conditions;
use crate::ir::{CmpOp, Expr, ExprId, FuncId, FuncKind, Function, Module, Stmt, UnaryOp};
use crate::link::{ClassKey, ModIdx};
use crate::rules::shared::file::{File, is_self};
use crate::sym::Sym;

/// What a test says about an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    /// It is true.
    True,
    /// It is not `None`.
    NotNone,
    /// It exists.
    Exists,
}

/// `if not self.hooks: return`, followed by `self.offload()`, where only `def offload(self, device="cuda")` sets `self.hooks`. The first
/// call may have passed a device, and this one uses the default.
pub(super) fn without_its_device(file: &File<'_>, function: &Function, device: Sym) -> Option<Finding> {
    let (Some(class), false) = (function.class, function.params.iter().any(|p| p.name == device)) else {
        return None;
    };
    if function.name.as_str() == "__init__" {
        return None;
    }
    let key = ClassKey { module: file.module, class };
    let (at, name, default) = file.inside(function).find_map(|(_, e, at)| {
        let Expr::Call(id) = e else { return None };
        let call = file.ir.call(id);
        let Expr::Attr { base, name } = file.ir.expr(call.func) else { return None };
        // Few methods take a device. Only for these, the tests around the call are searched.
        if !is_self(file.ir, base)
            || !file.may_leave_out(key, name, device)
            || !is_own(file.ir, function, base)
        {
            return None;
        }
        let tests = conditions(file.ir, at).into_iter();
        let known: Vec<_> =
            tests.flat_map(|(test, outcome)| said(file.ir, function, test, outcome)).collect();
        if known.is_empty() {
            return None;
        }
        let callee = file.own_method(function, call)?;
        let (name, default) = file.left_to_default(function, call, device)?;
        let accelerated = default.as_str().starts_with("cuda");
        let told = accelerated && known.into_iter().any(|known| only_set_by(file, key, known, callee));
        told.then_some((at, name, default))
    })?;
    let message = format!(
        "`{name}` ran before with a device from its caller, but this call uses the default, `{default}`"
    );
    let given = (function.name_span, format!("runs only after `{name}`"));
    let found = file.device_finding(at, message, "may be another device than before", given);
    Some(
        found
            .help(format!("keep the device of the first call in an attribute, and pass it to `{name}` here")),
    )
}

/// What a test with this outcome says about the object's attributes.
fn said(ir: &Module, function: &Function, test: ExprId, outcome: bool) -> Vec<(Sym, Says)> {
    let all = |list, part_outcome| {
        let parts = ir.list(list).iter();
        parts.flat_map(|&e| said(ir, function, e, part_outcome)).collect()
    };
    match ir.expr(test) {
        Expr::Unary { op: UnaryOp::Not, operand } => said(ir, function, operand, !outcome),
        Expr::And(list) if outcome => all(list, true),
        Expr::Or(list) if !outcome => all(list, false),
        Expr::Compare { op, left, right } if ir.expr(right) == Expr::None => {
            let is_something = match op {
                CmpOp::Is | CmpOp::Eq => !outcome,
                CmpOp::IsNot | CmpOp::NotEq => outcome,
                _ => false,
            };
            let name = is_something.then(|| own_attribute(ir, function, left)).flatten();
            name.map(|name| (name, Says::NotNone)).into_iter().collect()
        }
        _ if !outcome => Vec::new(),
        Expr::Call(id) if ir.is_builtin(ir.call(id).func, "hasattr") => {
            asked_by_name(ir, function, test).map(|name| (name, Says::Exists)).into_iter().collect()
        }
        _ => own_attribute(ir, function, test).map(|name| (name, Says::True)).into_iter().collect(),
    }
}

/// The name in `self.name` and in `getattr(self, "name", None)`.
fn own_attribute(ir: &Module, function: &Function, e: ExprId) -> Option<Sym> {
    match ir.expr(e) {
        Expr::Attr { base, name } if is_own(ir, function, base) => Some(name),
        Expr::Call(id) if ir.is_builtin(ir.call(id).func, "getattr") => {
            let without = ir.call(id).args.get(2).is_none_or(|a| ir.expr(a.value) == Expr::None);
            without.then(|| asked_by_name(ir, function, e))?
        }
        _ => None,
    }
}

/// The name in a call with `(self, "name", …)`.
fn asked_by_name(ir: &Module, function: &Function, e: ExprId) -> Option<Sym> {
    let Expr::Call(id) = ir.expr(e) else { return None };
    let [object, name, ..] = ir.call(id).args else { return None };
    match ir.expr(name.value) {
        Expr::Str(name) if is_own(ir, function, object.value) => Some(name),
        _ => None,
    }
}

/// Is it the object of this method? In a nested function, the first variable is another one.
fn is_own(ir: &Module, function: &Function, e: ExprId) -> bool {
    is_self(ir, e) && ir.function(ir.function_around(e)).span == function.span
}

/// Is this method the only one that can have set the attribute so?
fn only_set_by(file: &File<'_>, key: ClassKey, (name, says): (Sym, Says), callee: (ModIdx, FuncId)) -> bool {
    let program = file.cx.program;
    let mut sets = false;
    for k in &program.class(key).mro {
        let ir = &program.get(k.module).ir;
        // An attribute of the class exists on every object.
        if ir.function(ir.class(k.class).body).slots.contains(&name) {
            return false;
        }
        for (n, f) in ir.functions.iter().enumerate() {
            if f.class != Some(k.class) || f.kind != FuncKind::Function {
                continue;
            }
            let it = callee.0 == k.module && callee.1.0 as usize == n;
            for s in &ir.stmts[ir.stmts_of(f)] {
                let (targets, value) = match *s {
                    Stmt::Assign { targets, value } => (ir.list(targets).to_vec(), value),
                    Stmt::AnnAssign { target, value: Some(value), .. } => (vec![target], value),
                    _ => continue,
                };
                let named = targets.iter().any(|&t| {
                    matches!(ir.expr(t), Expr::Attr { base, name: n } if n == name && is_own(ir, f, base))
                });
                let nothing = match ir.expr(value) {
                    Expr::None => says != Says::Exists,
                    Expr::False => says == Says::True,
                    _ => false,
                };
                if named && !nothing {
                    if !it {
                        return false;
                    }
                    sets = true;
                }
            }
        }
    }
    sets
}
