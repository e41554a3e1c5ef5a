//! SD210 ignored-device-parameter: whether the argument for a parameter has an effect.

use super::WITHOUT_NAMES;
use crate::ir::{
    ArgKind, Call, CmpOp, Expr, ExprId, FuncId, Function, IfElse, Module, Param, Slot, Stmt, UnaryOp, Var,
};
use crate::link::{ModIdx, Program, Resolved};
use crate::span::Span;

/// How many calls a parameter is followed through. After that, it counts as used.
const MAX_HANDS: u32 = 3;

/// A call, with its file. `bound`: the callee's first parameter is its object, for which the call has no argument.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) ir: &'a Module,
    pub(super) call: Call<'a>,
    pub(super) bound: bool,
}

/// Does the parameter have an effect in this call? It has none if the function never reads it with these other arguments. It also has none
/// if the function only passes it on to functions of the project in which it has none.
pub(super) fn has_effect(
    program: &Program,
    (m, f): (ModIdx, FuncId),
    param: &Param,
    given: Given<'_>,
) -> bool {
    matters(program, m, f, param, given, MAX_HANDS)
}

fn matters(program: &Program, m: ModIdx, f: FuncId, param: &Param, given: Given<'_>, hands: u32) -> bool {
    let ir = &program.get(m).ir;
    let function = ir.function(f);
    let body = function.exprs.start..function.exprs.end;
    let reads = |e: Expr| match e {
        Expr::Var(Var::Local(slot) | Var::Enclosing { slot, .. }) => slot == param.slot,
        Expr::Var(Var::Unbound(name)) => WITHOUT_NAMES.has(name.as_str()),
        _ => false,
    };
    let tests = Tests { ir, function, given };
    let all: Vec<ExprId> =
        body.clone().map(ExprId).filter(|&e| reads(ir.expr(e)) && tests.may_reach(ir.span(e))).collect();
    if all.is_empty() || hands == 0 {
        return !all.is_empty();
    }
    let calls = body.filter_map(|n| match ir.expr(ExprId(n)) {
        Expr::Call(call) => Some(ir.call(call)),
        _ => None,
    });
    let handed = calls.flat_map(|call| {
        let target = program.resolve_expr(m, call.func);
        let positions = call.args.iter().enumerate();
        positions.filter(|(_, a)| all.contains(&a.value)).map(move |(n, a)| (target, call, n, a.kind))
    });
    let idle = handed.filter(|&(target, call, n, kind)| {
        let Some(Resolved::Function(other, f)) = target else { return false };
        let callee = program.get(other).ir.function(f);
        let param = match kind {
            ArgKind::Positional => callee.params.get(n),
            ArgKind::Keyword(name) => callee.params.iter().find(|p| p.name == name),
            ArgKind::Star | ArgKind::DoubleStar => None,
        };
        let given = Given { ir, call, bound: false };
        param.is_some_and(|p| !matters(program, other, f, p, given, hands - 1))
    });
    idle.count() < all.len()
}

/// Evaluates the tests of a function in one call of it.
struct Tests<'a> {
    ir: &'a Module,
    function: &'a Function,
    given: Given<'a>,
}

impl Tests<'_> {
    /// Can the function reach the place, as far as its `if` statements decide?
    fn may_reach(&self, at: Span) -> bool {
        let ir = self.ir;
        let statements = ir.stmts[ir.stmts_of(self.function)].iter().filter_map(|s| match *s {
            Stmt::If { test, then, orelse } => {
                let within = |block| ir.block(block).iter().any(|&s| ir.stmt_span(s).contains(at));
                Some((test, within(then), within(orelse)))
            }
            _ => None,
        });
        let body = self.function.exprs.start as usize..self.function.exprs.end as usize;
        let expressions = ir.exprs[body].iter().filter_map(|e| match *e {
            Expr::IfElse(id) => {
                let IfElse { test, then, orelse } = ir.if_else(id);
                Some((test, ir.span(then).contains(at), ir.span(orelse).contains(at)))
            }
            _ => None,
        });
        !statements.chain(expressions).any(|(test, then, orelse)| match self.outcome(test) {
            Some(true) => orelse && !then,
            Some(false) => then && !orelse,
            None => false,
        })
    }

    /// The outcome of a test, if the call's arguments decide it.
    fn outcome(&self, test: ExprId) -> Option<bool> {
        let ir = self.ir;
        match ir.expr(test) {
            Expr::Unary { op: UnaryOp::Not, operand } => Some(!self.outcome(operand)?),
            Expr::Compare { op, left, right } => {
                let (a, b) = (self.literal(left)?, self.literal(right)?);
                match op {
                    CmpOp::Is | CmpOp::Eq => Some(a == b),
                    CmpOp::IsNot | CmpOp::NotEq => Some(a != b),
                    _ => None,
                }
            }
            Expr::And(list) => {
                let parts: Vec<_> = ir.list(list).iter().map(|&e| self.outcome(e)).collect();
                let all = || parts.iter().all(Option::is_some).then_some(true);
                if parts.contains(&Some(false)) { Some(false) } else { all() }
            }
            Expr::Or(list) => {
                let parts: Vec<_> = ir.list(list).iter().map(|&e| self.outcome(e)).collect();
                let none = || parts.iter().all(Option::is_some).then_some(false);
                if parts.contains(&Some(true)) { Some(true) } else { none() }
            }
            _ => match self.literal(test)? {
                Expr::True => Some(true),
                Expr::False | Expr::None => Some(false),
                Expr::Str(s) => Some(!s.as_str().is_empty()),
                _ => None,
            },
        }
    }

    /// The literal that an expression is, or that the call passes for the parameter in the expression.
    fn literal(&self, e: ExprId) -> Option<Expr> {
        let written = |e: Expr| matches!(e, Expr::True | Expr::False | Expr::None | Expr::Str(_));
        match self.ir.expr(e) {
            Expr::Var(Var::Local(slot)) => self.given_for(slot).filter(|&e| written(e)),
            e => written(e).then_some(e),
        }
    }

    /// The argument that the call passes for a parameter that the function never assigns.
    fn given_for(&self, slot: Slot) -> Option<Expr> {
        let ir = self.ir;
        let (n, param) = self.function.params.iter().enumerate().find(|(_, p)| p.slot == slot)?;
        let sets = |&t: &ExprId| ir.binds(t, Var::Local(slot));
        let set = ir.stmts[ir.stmts_of(self.function)].iter().any(|s| match *s {
            Stmt::Assign { targets, .. } => ir.list(targets).iter().any(sets),
            Stmt::AugAssign { target, .. } | Stmt::AnnAssign { target, .. } | Stmt::For { target, .. } => {
                sets(&target)
            }
            Stmt::With { ref items, .. } => items.iter().any(|(_, target)| target.as_ref().is_some_and(sets)),
            _ => false,
        });
        if set {
            return None;
        }
        let Given { ir: outer, call, bound } = self.given;
        let open = |kind| matches!(kind, ArgKind::Star | ArgKind::DoubleStar);
        if call.args.iter().any(|a| open(a.kind)) {
            return None;
        }
        let keyword = call.args.iter().find(|a| a.kind == ArgKind::Keyword(param.name));
        let place = n.checked_sub(usize::from(bound));
        let positional = || place.and_then(|n| call.args.get(n)).filter(|a| a.kind == ArgKind::Positional);
        match keyword.or_else(positional) {
            Some(arg) => Some(outer.expr(arg.value)),
            None => Some(ir.expr(param.default?)),
        }
    }
}
