//! Programs that start all of their processes themselves: these are on one machine, and the global rank is the local one.

use super::nodes::{Node, Target, named};
use crate::ir::{ArgKind, Block, Call, CmpOp, Expr, ExprId, Module, Stmt, StmtId, UnaryOp, Var, Whole};
use crate::link::{ModIdx, Program};
use crate::sym::Sym;
use crate::torch::STARTERS;

/// Who starts processes on several machines names these by one of them.
const MACHINES: &[&str] = &["machine", "node"];

/// Does the file start processes, one for each of some numbers?
pub(super) fn starts_processes(ir: &Module) -> bool {
    ir.attributes.iter().any(|name| STARTERS.contains(&name.as_str()))
        || ir.calls().any(|call| {
            let process = ir.last_name(call.func).is_some_and(|name| name.as_str() == "Process");
            let work = |kind: ArgKind| matches!(kind, ArgKind::Keyword(k) if k.as_str() == "target");
            process && call.args.iter().any(|a| work(a.kind)) && is_looped(ir, call.func)
        })
}

/// So many GPUs are on one machine.
const ON_ONE: u64 = 8;

/// Does the file make sure that the whole group is no larger than what this machine has GPUs? `world_size=device_count()`,
/// `assert device_count() >= get_world_size()`, `if world_size > 8: raise …`
pub(super) fn fits_one_machine(ir: &Module) -> bool {
    let sized = |call: Call<'_>| {
        let size = |kind: ArgKind| matches!(kind, ArgKind::Keyword(k) if k.as_str() == "world_size");
        call.args.iter().any(|a| size(a.kind) && is_called(ir, a.value, "device_count"))
    };
    let compared = |s: &Stmt| match *s {
        Stmt::Assert { test, .. } => bounds(ir, test, true),
        Stmt::If { test, then, .. } => leaves(ir, then) && bounds(ir, test, false),
        _ => false,
    };
    ir.calls().any(sized) || ir.stmts.iter().any(compared)
}

fn is_called(ir: &Module, e: ExprId, name: &str) -> bool {
    match ir.expr(e) {
        Expr::Call(c) => ir.last_name(ir.call(c).func).is_some_and(|n| n.as_str() == name),
        _ => false,
    }
}

/// Does nobody go on after the block?
fn leaves(ir: &Module, block: Block) -> bool {
    ir.block(block).last().is_some_and(|&last| match *ir.stmt(last) {
        Stmt::Raise { .. } => true,
        Stmt::Expr(e) => is_called(ir, e, "exit"),
        _ => false,
    })
}

/// Is the size of the group no larger than a machine if the test comes out so?
fn bounds(ir: &Module, test: ExprId, outcome: bool) -> bool {
    let any = |list| ir.list(list).iter().any(|&e| bounds(ir, e, outcome));
    match ir.expr(test) {
        Expr::Unary { op: UnaryOp::Not, operand } => bounds(ir, operand, !outcome),
        Expr::And(list) if outcome => any(list),
        Expr::Or(list) if !outcome => any(list),
        Expr::Compare { op, left, right } => match (op, outcome) {
            (CmpOp::LtE | CmpOp::Lt | CmpOp::Eq | CmpOp::In, true)
            | (CmpOp::Gt | CmpOp::GtE | CmpOp::NotEq | CmpOp::NotIn, false) => {
                is_size(ir, left) && is_few(ir, right)
                    || matches!(op, CmpOp::Eq | CmpOp::NotEq) && is_size(ir, right) && is_few(ir, left)
            }
            (CmpOp::GtE | CmpOp::Gt, true) | (CmpOp::Lt | CmpOp::LtE, false) => {
                is_size(ir, right) && is_few(ir, left)
            }
            _ => false,
        },
        _ => false,
    }
}

/// `get_world_size()`, `int(os.environ["WORLD_SIZE"])`, or a variable that is one of these wherever it is set
fn is_size(ir: &Module, e: ExprId) -> bool {
    let size = |e: ExprId| is_called(ir, e, "get_world_size") || is_set_size(ir, e);
    size(e) || is_only(ir, e, &size)
}

/// `int(os.environ["WORLD_SIZE"])`, `os.environ.get("WORLD_SIZE", 1)`: the number as it is, and nothing that is computed from it.
fn is_set_size(ir: &Module, e: ExprId) -> bool {
    let named = |e: ExprId| matches!(ir.expr(e), Expr::Str(s) if s.as_str() == "WORLD_SIZE");
    match ir.expr(e) {
        Expr::Index { index, .. } => named(index),
        Expr::Call(c) => {
            let call = ir.call(c);
            let Some(first) = call.args.first() else { return false };
            match ir.last_name(call.func).map(|name| name.as_str()) {
                Some("int") => is_set_size(ir, first.value),
                Some("get" | "getenv") => named(first.value),
                _ => false,
            }
        }
        _ => false,
    }
}

/// As many as there are GPUs, or a number of them that one machine has.
fn is_few(ir: &Module, e: ExprId) -> bool {
    let few = |e: ExprId| match ir.expr(e) {
        Expr::Int(Whole(n)) => u64::try_from(n).is_ok_and(|n| n <= ON_ONE),
        _ => is_called(ir, e, "device_count"),
    };
    match ir.expr(e) {
        Expr::Tuple(list) | Expr::List(list) | Expr::Set(list) => ir.list(list).iter().all(|&e| few(e)),
        _ => few(e) || is_only(ir, e, &few),
    }
}

/// Is it a variable that is set, and to nothing but such values?
fn is_only(ir: &Module, e: ExprId, value: &dyn Fn(ExprId) -> bool) -> bool {
    if !matches!(ir.expr(e), Expr::Var(Var::Local(_)) | Expr::Attr { .. }) {
        return false;
    }
    let function = ir.function_around(e);
    let local = matches!(ir.expr(e), Expr::Var(_));
    let mut values = ir.stmts.iter().filter_map(|s| match *s {
        Stmt::Assign { targets, value } => {
            let set = |&t: &ExprId| ir.names_the_same(t, e) && (!local || ir.function_around(t) == function);
            ir.list(targets).iter().any(set).then_some(value)
        }
        _ => None,
    });
    let mut values = values.by_ref().peekable();
    values.peek().is_some() && values.all(value)
}

/// Is one of these functions handed to code of the project that starts processes?
pub(super) fn is_handed_to_processes(program: &Program, file: ModIdx, functions: &[Target]) -> bool {
    let ir = &program.get(file).ir;
    ir.calls().any(|call| {
        let starter = match named(program, file, call.func) {
            Some(Node::Function(m, _)) => m,
            Some(Node::Class(key)) => key.module,
            None => return false,
        };
        let handed = |e: ExprId| {
            matches!(named(program, file, e), Some(Node::Function(m, f)) if functions.contains(&(m, f)))
        };
        call.args.iter().any(|a| handed(a.value)) && starts_all(&program.get(starter).ir)
    })
}

/// Does the file start processes, and on this machine only?
fn starts_all(ir: &Module) -> bool {
    let machines = |name: Sym| MACHINES.iter().any(|word| name.as_str().to_ascii_lowercase().contains(word));
    starts_processes(ir)
        && !ir.functions.iter().flat_map(|f| &f.params).any(|p| machines(p.name))
        && !ir.attributes.iter().any(|&name| machines(name))
}

/// Is it in a loop or a comprehension of its function?
fn is_looped(ir: &Module, e: ExprId) -> bool {
    let at = ir.span(e);
    let comprehended =
        ir.exprs.iter().zip(&ir.expr_spans).any(|(e, s)| matches!(e, Expr::Comp(_)) && s.contains(at));
    comprehended
        || ir.stmts.iter().enumerate().any(|(n, s)| {
            matches!(s, Stmt::For { .. } | Stmt::While { .. })
                && ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX))).contains(at)
        })
}
