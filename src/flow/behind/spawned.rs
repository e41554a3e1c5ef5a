//! Functions that only run in processes of which there is one for each GPU: `spawn(work, nprocs=torch.cuda.device_count())` starts
//! none where there is no GPU.

use crate::flow::site::argument;
use crate::ir::{ArgKind, Call, Expr, ExprId, FuncId, Module, Stmt, Var};
use crate::link::{ModIdx, Program, Resolved};
use crate::sym::Sym;
use crate::torch::STARTERS;

/// How many functions may hand on what is started.
const MAX_HANDS: u32 = 3;

/// Is the function that is mentioned here only started so?
pub(super) fn is_spawned(program: &Program, m: ModIdx, mention: ExprId) -> bool {
    let ir = &program.get(m).ir;
    ir.call_given(mention).is_some_and(|call| starts(program, m, ir.call(call), mention, MAX_HANDS))
}

/// Does the call start it in one process for each GPU, or hand it on to where that is all that happens?
fn starts(program: &Program, m: ModIdx, call: Call<'_>, e: ExprId, hands: u32) -> bool {
    match program.resolve_expr(m, call.func) {
        Some(Resolved::External(path)) => {
            let starter = path.as_str().strip_prefix("torch.multiprocessing.");
            starter.is_some_and(|name| STARTERS.contains(&name))
                && argument(call, 0, Sym::new("fn")) == Some(e)
                && argument(call, 2, Sym::new("nprocs")).is_some_and(|n| counts_gpus(program, m, n))
        }
        Some(Resolved::Function(m, f)) => {
            let Some(hands) = hands.checked_sub(1) else { return false };
            parameter(call, e, &program.get(m).ir, f)
                .is_some_and(|var| only_starts(program, m, f, var, hands))
        }
        _ => false,
    }
}

/// The parameter of a function for which the call gives the expression.
fn parameter(call: Call<'_>, e: ExprId, callee: &Module, f: FuncId) -> Option<Var> {
    let params = &callee.function(f).params;
    let given = call.args.iter().position(|a| a.value == e)?;
    let before = &call.args[..given];
    let param = match call.args[given].kind {
        ArgKind::Keyword(name) => params.iter().find(|p| p.name == name),
        ArgKind::Positional if before.iter().all(|a| a.kind == ArgKind::Positional) => params.get(given),
        _ => None,
    }?;
    Some(Var::Local(param.slot))
}

/// Does the function do nothing with what it is given but start it?
fn only_starts(program: &Program, m: ModIdx, f: FuncId, given: Var, hands: u32) -> bool {
    let ir = &program.get(m).ir;
    let number = |n: usize| ExprId(u32::try_from(n).unwrap_or(u32::MAX));
    let mut uses =
        ir.exprs_of(ir.function(f)).map(number).filter(|&e| ir.expr(e) == Expr::Var(given)).peekable();
    uses.peek().is_some()
        && uses.all(|e| ir.call_given(e).is_some_and(|call| starts(program, m, ir.call(call), e, hands)))
}

/// `torch.cuda.device_count()`, or a variable that is nothing else.
fn counts_gpus(program: &Program, m: ModIdx, e: ExprId) -> bool {
    let ir = &program.get(m).ir;
    match ir.expr(e) {
        Expr::Call(call) => matches!(program.resolve_expr(m, ir.call(call).func),
            Some(Resolved::External(path)) if path.as_str() == "torch.cuda.device_count"),
        Expr::Var(var @ Var::Local(_)) => {
            let function = ir.function(ir.function_around(e));
            let param = function.params.iter().any(|p| Var::Local(p.slot) == var);
            let mut set = ir.stmts[ir.stmts_of(function)].iter().filter_map(|s| match *s {
                Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| ir.binds(t, var)) => {
                    Some(value)
                }
                Stmt::AugAssign { target, .. } | Stmt::For { target, .. } if ir.binds(target, var) => {
                    Some(target)
                }
                _ => None,
            });
            !param
                && matches!((set.next(), set.next()), (Some(value), None)
                    if matches!(ir.expr(value), Expr::Call(_)) && counts_gpus(program, m, value))
        }
        _ => false,
    }
}
