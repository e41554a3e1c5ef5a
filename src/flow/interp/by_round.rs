//! Comprehensions of which some rounds make one thing and some another: `[x[i] if i < n else zero for i in range(m)]`.
//!
//! Which of the two a round does is a matter of its number, so that both are in the list, side by side.

use super::super::diagram::{FALSE, TRUE};
use super::super::value::Value;
use super::Interp;
use crate::ir::{Comp, CompKind, Expr, ExprId, Generator, IfElse, Var};

impl<'p> Interp<'p> {
    /// What the element is in either kind of round, where it is not known which round it is.
    pub(super) fn either_by_round(&mut self, comp: &'p Comp) -> Option<[Value; 2]> {
        let ir = &self.linked().ir;
        let Expr::IfElse(id) = ir.expr(comp.element) else { return None };
        if !self.goes_by_round(comp) {
            return None;
        }
        let IfElse { test, then, orelse } = ir.if_else(id);
        let cond = self.test(test);
        if cond == TRUE || cond == FALSE {
            return None;
        }
        let (mut a, mut b) = (Value::Absent, Value::Absent);
        self.branch(
            cond,
            &mut |i| {
                a = i.eval(then);
                Value::Absent
            },
            &mut |i| {
                b = i.eval(orelse);
                Value::Absent
            },
        );
        (a != Value::Absent && b != Value::Absent).then_some([a, b])
    }

    /// Does the number of the round decide which of two things an element is?
    pub(super) fn goes_by_round(&self, comp: &Comp) -> bool {
        let ir = &self.linked().ir;
        let (Expr::IfElse(id), CompKind::List | CompKind::Generator) = (ir.expr(comp.element), comp.kind)
        else {
            return false;
        };
        let Expr::Compare { left, right, .. } = ir.expr(ir.if_else(id).test) else { return false };
        let counted = comp.generators.iter().filter_map(|g| counter(ir, g));
        let counted: Vec<Var> = counted.collect();
        [left, right].into_iter().any(|e| computed_from(ir, e, &counted))
    }
}

/// The number of the round: `i` in `for i in range(n)` and in `for i, x in enumerate(xs)`.
fn counter(ir: &crate::ir::Module, generator: &Generator) -> Option<Var> {
    let Expr::Call(call) = ir.expr(generator.iter) else { return None };
    let Expr::Var(Var::Unbound(f)) = ir.expr(ir.call(call).func) else { return None };
    let number = match (f.as_str(), ir.expr(generator.target)) {
        ("enumerate", Expr::Tuple(list)) => *ir.list(list).first()?,
        ("range", _) => generator.target,
        _ => return None,
    };
    match ir.expr(number) {
        Expr::Var(var) => Some(var),
        _ => None,
    }
}

/// Is it one of these numbers, or what arithmetic makes of one?
fn computed_from(ir: &crate::ir::Module, e: ExprId, numbers: &[Var]) -> bool {
    match ir.expr(e) {
        Expr::Var(var) => numbers.contains(&var),
        Expr::Binary { left, right, .. } => {
            computed_from(ir, left, numbers) || computed_from(ir, right, numbers)
        }
        _ => false,
    }
}
