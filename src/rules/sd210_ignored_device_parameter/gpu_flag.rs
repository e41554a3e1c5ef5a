//! SD210 ignored-device-parameter: a function takes a flag that moves tensors to the GPU, and does not pass it on.

use super::IGNORES_CALLER;
use crate::finding::Finding;
use crate::ir::{ArgKind, Call, Expr, ExprId, FuncId, Function, IfElse, Module, Stmt, Var};
use crate::link::{ModIdx, Resolved};
use crate::rules::shared::file::File;
use crate::span::Span;
use crate::sym::Sym;

/// `def each(data, on_gpu=False): return batch(data)`, where `batch` also takes the flag.
pub(super) fn not_handed_on(file: &File<'_>, function: &Function) -> Option<Finding> {
    let flags = function.params.iter().filter(|p| p.default.is_some_and(|d| is_flag(file.ir, d)));
    let ignored = |slot| !file.mentions(function, slot) && !file.is_interface(function);
    let (flag, (at, callee)) = flags.filter(|p| ignored(p.slot)).find_map(|p| {
        let call = file.inside(function).find_map(|(_, e, at)| {
            let Expr::Call(c) = e else { return None };
            Some((at, left_out(file, file.ir.call(c), p.name)?))
        });
        Some((p.name, call?))
    })?;
    let message = format!(
        "`{}` does not use its parameter `{flag}`: this call leaves the `{flag}` of `{callee}` at its default",
        function.name
    );
    let given = (function.name_span, "takes a flag for the GPU");
    let finding = file.device_finding(at, message, IGNORES_CALLER, given);
    Some(finding.help(file.pass_on(at, flag)))
}

fn is_flag(ir: &Module, default: ExprId) -> bool {
    matches!(ir.expr(default), Expr::True | Expr::False)
}

/// The name of a function that takes this flag and moves tensors to the GPU by it, if the call omits the flag.
fn left_out(file: &File<'_>, call: Call<'_>, flag: Sym) -> Option<Sym> {
    let Some(Resolved::Function(m, f)) = file.cx.program.resolve_expr(file.module, call.func) else {
        return None;
    };
    let ir = &file.cx.program.get(m).ir;
    let callee = ir.function(f);
    let (n, param) = callee.params.iter().enumerate().find(|(_, p)| p.name == flag)?;
    let spread = call.args.iter().any(|a| matches!(a.kind, ArgKind::Star | ArgKind::DoubleStar));
    let named = call.args.iter().any(|a| matches!(a.kind, ArgKind::Keyword(k) if k == flag));
    let before = call.args.iter().filter(|a| a.kind == ArgKind::Positional).count();
    let given = spread || named || before > n;
    let flags = param.default.is_some_and(|d| is_flag(ir, d));
    (!given && flags && sends_by(file, (m, f), param.slot)).then_some(callee.name)
}

/// Does the function move something to the GPU if the flag is set: `x.cuda() if on_gpu else x`?
fn sends_by(file: &File<'_>, (m, f): (ModIdx, FuncId), slot: u16) -> bool {
    let ir = &file.cx.program.get(m).ir;
    let function = ir.function(f);
    let flag = Expr::Var(Var::Local(slot));
    let asked = |test: ExprId| ir.expr(test) == flag;
    let sends = |span: Span| {
        let inside = function.exprs.start as usize..function.exprs.end as usize;
        ir.exprs[inside.clone()].iter().zip(&ir.expr_spans[inside]).any(|(e, &at)| {
            let there = match *e {
                Expr::Attr { name, .. } => name.as_str() == "cuda",
                Expr::Str(s) => s.as_str() == "cuda",
                _ => false,
            };
            there && span.contains(at)
        })
    };
    let chosen = (function.exprs.start..function.exprs.end).any(|n| match ir.expr(ExprId(n)) {
        Expr::IfElse(id) => {
            let IfElse { test, then, .. } = ir.if_else(id);
            asked(test) && sends(ir.span(then))
        }
        _ => false,
    });
    chosen
        || ir.stmts[ir.stmts_of(function)].iter().any(|s| match *s {
            Stmt::If { test, then, .. } => {
                asked(test) && ir.block(then).iter().any(|&s| sends(ir.stmt_span(s)))
            }
            _ => false,
        })
}
