//! Indices of GPUs that say no more than what has been said before.

use super::super::diagram::Cond;
use super::super::event::Kind;
use super::super::value::{OuterId, Value};
use super::{Interp, Test};
use crate::finding::Code;
use crate::ir::{Call, Expr, ExprId, Module, Var};
use crate::span::Place;

impl Interp<'_> {
    /// `torch.cuda.set_device(rank)`: whoever comes further has that many GPUs.
    pub(super) fn has_as_many(&mut self, number: Value) {
        if let (Value::Outer(o), 0) = (number, self.muted)
            && !self.caught_around()
        {
            self.watch.gpus_there.push((o, self.path));
        }
    }

    /// `if rank == 0: …`, `else: x.to("cuda:1")` where the GPU of that rank is there: so is this one.
    pub(super) fn is_index_there(&mut self, index: u32) -> bool {
        let there: Vec<(OuterId, Cond)> = self.watch.gpus_there.clone();
        there
            .into_iter()
            .any(|(o, when)| self.d.implies(self.path, when) && self.is_at_least(o, i64::from(index)))
    }

    /// Does the path say that the number is so large?
    fn is_at_least(&mut self, number: OuterId, index: i64) -> bool {
        let equals = |test: &Test| match *test {
            Test::Compare(0, Value::Outer(o), Value::Int(n)) if o == number => Some(n),
            _ => None,
        };
        let asked: Vec<_> =
            self.tests.iter().filter_map(|(test, &atom)| Some((equals(test)?, atom))).collect();
        let path = self.path;
        asked.into_iter().any(|(n, atom)| {
            n >= index && self.implied(path, atom, true)
                || n == 0 && index == 1 && self.implied(path, atom, false)
        })
    }

    /// Where the function has used this index before, by the same variable: `rows.to(other)`, then `table.to(other)`.
    pub(super) fn index_used_before(&self, index: u32, e: ExprId) -> Option<Place> {
        let ir = &self.linked().ir;
        let variable = variables_in(ir, e);
        let (file, around) = (ir.file, ir.function_around(e));
        let calls = |place: Place| {
            let call = (0..ir.exprs.len())
                .find(|&n| matches!(ir.exprs[n], Expr::Call(_)) && ir.expr_spans[n] == place.span);
            call.map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX)))
        };
        let mut told = self.events.iter().map(|pending| &pending.event).filter(|event| {
            event.place.file == file
                && event.place.span != ir.span(e)
                && matches!(event.kind, Kind::Use { index: Some(i), .. } if i == index)
                && !self.is_silenced_on(&[Code(401)], event.place, &event.stack)
        });
        let first = told.find(|event| {
            calls(event.place).is_some_and(|call| {
                ir.function_around(call) == around
                    && variables_in(ir, call).iter().any(|v| variable.contains(v))
            })
        });
        first.map(|event| event.place)
    }
}

/// The variables among the arguments of a call.
fn variables_in(ir: &Module, e: ExprId) -> Vec<Var> {
    let arguments = |call: Call<'_>| {
        let variable = |e: ExprId| if let Expr::Var(var) = ir.expr(e) { Some(var) } else { None };
        call.args.iter().filter_map(|a| variable(a.value)).collect()
    };
    if let Expr::Call(id) = ir.expr(e) { arguments(ir.call(id)) } else { Vec::new() }
}
