//! A function that is given a device, builds a model, and gives it back where it was made.

use super::super::file::File;
use crate::finding::Finding;
use crate::flow::is_module_class;
use crate::ir::{Expr, ExprId, Function, Param, Stmt, Var};
use crate::link::{ModIdx, Resolved};
use crate::sym::Sym;
use crate::torch::{self, State};

/// Names by which a model comes to another device, or is left to somebody who moves it.
const MOVES: &[&str] = &["to", "cuda", "cpu", "to_empty", "to_device", "prepare", "DataParallel"];

/// SD210 for `def load_model(config, device): model = build(config); …; return model`.
pub(super) fn left_where_made(file: &File<'_>, function: &Function, param: &Param) -> Option<Finding> {
    let named = |e: &Expr| match *e {
        Expr::Attr { name, .. } => MOVES.contains(&name.as_str()),
        _ => false,
    };
    let private = function.name.as_str().starts_with('_');
    if param.name.as_str() != "device"
        || private
        || is_handed_over(file, function)
        || file.inside(function).any(|(_, e, _)| named(&e))
    {
        return None;
    }
    let given_back = file.ir.stmts[file.ir.stmts_of(function)].iter().filter_map(|s| match *s {
        Stmt::Return(Some(e)) => Some(e),
        _ => None,
    });
    let made = given_back.map(|e| made(file, function, e)).collect::<Option<Vec<_>>>()?;
    let &[at] = &*made else { return None };
    let message = format!(
        "`{}` is given `{}` and never looks at it: this is made on the CPU",
        function.name, param.name
    );
    let at = file.ir.span(at);
    Some(file.parameter_finding(at, message, "not where the caller wants it", function.name_span))
}

/// Is the function itself a value somewhere in its file, as in `register("add", build_add)`? Then its parameters are those of
/// all that are registered.
fn is_handed_over(file: &File<'_>, function: &Function) -> bool {
    let ir = file.ir;
    let called: Vec<ExprId> = ir.calls().map(|call| call.func).collect();
    let named = ir.exprs.iter().enumerate().filter(|(_, e)| matches!(e, Expr::Var(_) | Expr::Str(_)));
    named.map(|(n, _)| ExprId(u32::try_from(n).unwrap_or(u32::MAX))).any(|e| match ir.expr(e) {
        Expr::Str(text) => text == function.name,
        _ => {
            ir.variable_of(e) == Some(function.name)
                && !called.contains(&e)
                && matches!(file.cx.program.resolve_expr(file.module, e), Some(Resolved::Function(..)))
        }
    })
}

/// The call that makes the module that this is.
fn made(file: &File<'_>, function: &Function, e: ExprId) -> Option<ExprId> {
    let call = match file.ir.expr(e) {
        Expr::Var(Var::Local(slot)) => match &*file.assignments(function, slot) {
            &[(_, value)] => value,
            _ => return None,
        },
        // `model.eval()`
        Expr::Call(id) => match file.ir.expr(file.ir.call(id).func) {
            Expr::Attr { base, name } if matches!(name.as_str(), "eval" | "train" | "requires_grad_") => {
                return made(file, function, base);
            }
            _ => e,
        },
        _ => e,
    };
    builds(file, file.module, call, 0).then_some(call)
}

/// Is it a call that makes a module with weights: its class's, or that of a function which does nothing else?
fn builds(file: &File<'_>, m: ModIdx, e: ExprId, depth: u32) -> bool {
    let program = file.cx.program;
    let ir = &program.get(m).ir;
    let Expr::Call(id) = ir.expr(e) else { return false };
    match program.resolve_expr(m, ir.call(id).func) {
        Some(Resolved::Class(key)) => {
            let info = program.class(key);
            let moved = |&path: &Sym| torch::base_class(path).is_some_and(|b| b.moves_for_user);
            !info.unknown_base && is_module_class(program, key) && !info.externals.iter().any(moved)
        }
        Some(Resolved::External(path)) => {
            torch::module(path).is_some_and(|op| op.state != State::No) && !ir.call(id).args.is_empty()
        }
        Some(Resolved::Function(m, f)) if depth == 0 => {
            let body = program.get(m).ir.block(program.get(m).ir.function(f).body);
            body.last().is_some_and(|&s| match *program.get(m).ir.stmt(s) {
                Stmt::Return(Some(e)) => builds(file, m, e, depth + 1),
                _ => false,
            })
        }
        _ => false,
    }
}
