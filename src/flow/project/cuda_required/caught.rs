//! Calls that may fail without CUDA because the program handles the error (`try: x = build()`, `except RuntimeError: x = None`), and
//! calls for which a scheduler provides GPUs.

use rustc_hash::FxHashSet;

use super::GPUS;
use super::places::{is_within, outermost};
use crate::flow::machine::catches_missing_device;
use crate::flow::query::reaching_values::blocks;
use crate::ir::{ArgKind, Block, Call, Expr, ExprId, ExprList, Handler, Module, Stmt, StmtId, Whole};
use crate::link::{ModIdx, Program, Resolved};
use crate::span::Span;
use crate::words::Words;

/// Functions that end the program.
static EXITS: Words = Words::of("end the program");

/// The callees in bodies of `try` statements with a handler that continues without the result, in order.
pub(super) fn tried(program: &Program, m: ModIdx) -> Vec<Span> {
    let ir = &program.get(m).ir;
    let tries = |s: &Stmt| matches!(s, Stmt::Try { .. });
    if !ir.stmts.iter().any(tries) {
        return Vec::new();
    }
    let mut outside = FxHashSet::default();
    if let Some(body) = ir.functions.first().map(|f| f.body) {
        walk(ir, body, &mut |s| {
            outside.insert(s);
        });
    }
    let mut bodies = Vec::new();
    for (n, s) in ir.stmts.iter().enumerate() {
        let Stmt::Try { body, handlers, .. } = s else { continue };
        let Some((&first, &last)) = ir.block(*body).first().zip(ir.block(*body).last()) else { continue };
        let catching = ir.handlers(*handlers).iter().find(|h| catches_missing_device(ir, h));
        let in_function = !outside.contains(&StmtId(u32::try_from(n).unwrap_or(u32::MAX)));
        if catching.is_some_and(|h| goes_on(program, m, h, in_function)) {
            bodies.push(Span { start: ir.stmt_span(first).start, end: ir.stmt_span(last).end });
        }
    }
    let bodies = outermost(bodies);
    let called = ir.calls().map(|call| ir.span(call.func)).filter(|&at| is_within(&bodies, at));
    outermost(called.collect())
}

/// Calls `each` for every statement of a block, including nested ones.
fn walk(ir: &Module, block: Block, each: &mut dyn FnMut(StmtId)) {
    for &s in ir.block(block) {
        each(s);
        for inner in blocks(ir, ir.stmt(s)) {
            walk(ir, inner, each);
        }
    }
}

/// Whether the program continues after the handler. In a function, the caller continues. A file's body may end there, unless the handler
/// provides a replacement.
fn goes_on(program: &Program, m: ModIdx, handler: &Handler, in_function: bool) -> bool {
    let ir = &program.get(m).ir;
    let (mut leaves, mut replaces) = (false, in_function);
    walk(ir, handler.body, &mut |s| match *ir.stmt(s) {
        Stmt::Raise { .. } => leaves = true,
        Stmt::Expr(e) => leaves |= exits(program, m, e),
        Stmt::Assign { .. } | Stmt::Continue => replaces = true,
        _ => {}
    });
    replaces && !leaves
}

/// `sys.exit(1)`
pub(super) fn exits(program: &Program, m: ModIdx, e: ExprId) -> bool {
    let ir = &program.get(m).ir;
    let Expr::Call(call) = ir.expr(e) else { return false };
    matches!(program.resolve_expr(m, ir.call(call).func),
        Some(Resolved::External(path)) if EXITS.has(path.as_str()))
}

/// The places for which a scheduler provides GPUs: classes and functions with `@ray.remote(num_gpus=1)`, and the arguments in
/// `ray.remote(Actor).options(num_gpus=n)`.
pub(super) fn given_gpus(program: &Program, m: ModIdx) -> Vec<Span> {
    let ir = &program.get(m).ir;
    let asks = |call: Call<'_>| {
        call.args.iter().any(|a| {
            let some = !matches!(ir.expr(a.value), Expr::Int(Whole(0)) | Expr::None);
            matches!(a.kind, ArgKind::Keyword(name) if name.as_str() == GPUS) && some
        })
    };
    if !ir.calls().any(asks) {
        return Vec::new();
    }
    let decorated = |decorators: ExprList| {
        ir.list(decorators).iter().any(|&d| matches!(ir.expr(d), Expr::Call(id) if asks(ir.call(id))))
    };
    // The class is an argument inside `call.func`. The arguments of `options` itself are evaluated in this process.
    let handed = |call: &Call<'_>| {
        matches!(ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "options") && asks(*call)
    };
    let functions = ir.functions.iter().filter(|f| decorated(f.decorators)).map(|f| f.span);
    let classes = ir.classes.iter().filter(|c| decorated(c.decorators)).map(|c| c.span);
    let options = ir.calls().filter(handed).map(|call| ir.span(call.func));
    outermost(functions.chain(classes).chain(options).collect())
}
