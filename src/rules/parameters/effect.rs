//! Whether it matters what a function is given for a parameter.

use crate::ir::{ArgKind, Expr, Function, Param, Var};
use crate::link::{ModIdx, Program, Resolved};

/// A function that is handed on so many times is taken to be used.
const MAX_HANDS: u32 = 3;

/// Does anything hang on the parameter? Not if the function never reads it, or only hands it on to functions of the project in
/// which nothing hangs on it.
pub(super) fn has_effect(program: &Program, (m, f): (ModIdx, crate::ir::FuncId), param: &Param) -> bool {
    matters(program, m, program.get(m).ir.function(f), param, MAX_HANDS)
}

fn matters(program: &Program, m: ModIdx, function: &Function, param: &Param, hands: u32) -> bool {
    let ir = &program.get(m).ir;
    let body = function.exprs.start as usize..function.exprs.end as usize;
    let reads = |e: &Expr| match *e {
        Expr::Var(Var::Local(slot) | Var::Enclosing { slot, .. }) => slot == param.slot,
        Expr::Var(Var::Unbound(name)) => matches!(name.as_str(), "locals" | "super" | "__class__"),
        _ => false,
    };
    let all = ir.exprs[body.clone()].iter().filter(|e| reads(e)).count();
    if all == 0 || hands == 0 {
        return all > 0;
    }
    let harmless = ir.exprs[body].iter().filter_map(|e| match *e {
        Expr::Call(call) => Some(ir.call(call)),
        _ => None,
    });
    let handed = harmless.flat_map(|call| {
        let target = program.resolve_expr(m, call.func);
        let positions = call.args.iter().enumerate();
        positions.filter(|(_, a)| reads(&ir.expr(a.value))).map(move |(n, a)| (target, n, a.kind))
    });
    let idle = handed.filter(|&(target, n, kind)| {
        let Some(Resolved::Function(other, f)) = target else { return false };
        let callee = program.get(other).ir.function(f);
        let param = match kind {
            ArgKind::Positional => callee.params.get(n),
            ArgKind::Keyword(name) => callee.params.iter().find(|p| p.name == name),
            ArgKind::Star | ArgKind::DoubleStar => None,
        };
        param.is_some_and(|p| !matters(program, other, callee, p, hands - 1))
    });
    idle.count() < all
}
