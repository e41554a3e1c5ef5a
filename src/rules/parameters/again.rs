//! SD210: a method is called again that was told a device before, and is not told it this time.

use super::super::file::File;
use crate::finding::Finding;
use crate::ir::{Expr, ExprId, FuncId, FuncKind, Function, Stmt, Var};
use crate::link::{ClassKey, ModIdx};
use crate::span::Span;
use crate::sym::Sym;

/// `if not self.hooks: return`, and then `self.offload()`, where only `def offload(self, device="cuda")` sets `self.hooks`: it was
/// told where, perhaps, and now goes to its default.
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
        let callee = file.own_method(function, call)?;
        let (name, default) = file.left_to_default(function, call, device)?;
        let accelerated = default.as_str().starts_with("cuda");
        let told = accelerated && asked_before(file, function, at).any(|a| only_set_by(file, key, a, callee));
        told.then_some((at, name, default))
    })?;
    let message = format!(
        "`{name}` has run before, on the device that it was told, and is left to its default now, `{default}`"
    );
    let given = (function.name_span, "only where it has run before");
    let found = file.device_finding(at, message, "the device is not the same again", given);
    Some(found.help("remember the device that it is told, and pass that on"))
}

/// The attributes that the tests around a place ask for, and those that end the function before it.
fn asked_before(file: &File<'_>, function: &Function, at: Span) -> impl Iterator<Item = Sym> {
    let ir = file.ir;
    let ends = |block| {
        ir.block(block).last().is_some_and(|&s| matches!(ir.stmt(s), Stmt::Return(_) | Stmt::Raise { .. }))
    };
    let body: Vec<_> = ir.block(function.body).to_vec();
    let tests =
        ir.stmts[ir.stmts_of(function)].iter().zip(ir.stmts_of(function)).filter_map(move |(s, n)| {
            let Stmt::If { test, then, .. } = *s else { return None };
            let span = ir.stmt_spans[n];
            let within = ir.block(then).iter().any(|&s| ir.stmt_span(s).contains(at));
            let first = body.iter().any(|&s| s.0 as usize == n) && span.end <= at.start && ends(then);
            (within || first).then_some(test)
        });
    let tests: Vec<ExprId> = tests.collect();
    tests.into_iter().flat_map(|test| {
        ir.exprs_in(test).filter_map(|n| own_attribute(file, ir.exprs[n])).collect::<Vec<_>>()
    })
}

/// The name in `self.name` and in `hasattr(self, "name")`.
fn own_attribute(file: &File<'_>, e: Expr) -> Option<Sym> {
    let own = |e: ExprId| file.ir.expr(e) == Expr::Var(Var::Local(0));
    match e {
        Expr::Attr { base, name } if own(base) => Some(name),
        Expr::Call(id) => {
            let call = file.ir.call(id);
            let [object, name, ..] = call.args else { return None };
            let asks = ["hasattr", "getattr"].iter().any(|f| file.ir.is_builtin(call.func, f));
            match file.ir.expr(name.value) {
                Expr::Str(name) if asks && own(object.value) => Some(name),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Does only this method give the attribute something, apart from what says that there is nothing?
fn only_set_by(file: &File<'_>, key: ClassKey, name: Sym, callee: (ModIdx, FuncId)) -> bool {
    let program = file.cx.program;
    let mut sets = false;
    for k in &program.class(key).mro {
        let ir = &program.get(k.module).ir;
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
                    matches!(ir.expr(t), Expr::Attr { base, name: n } if n == name && ir.expr(base) == Expr::Var(Var::Local(0)))
                });
                let nothing = matches!(ir.expr(value), Expr::None | Expr::False);
                if named && it {
                    sets = true;
                } else if named && !nothing {
                    return false;
                }
            }
        }
    }
    sets
}
