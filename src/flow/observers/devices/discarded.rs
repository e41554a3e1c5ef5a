//! Results of transfers that the program discards, and availability checks without a call.

use crate::flow::domain::diagram::Cond;
use crate::flow::domain::event::{Bite, Kind};
use crate::flow::domain::value::{Role, Value};
use crate::flow::machine::Interp;
use crate::flow::summary::loop_rounds::goes_round;
use crate::ir::{Expr, ExprId};
use crate::link::Resolved;
use crate::sym::Sym;
use crate::torch::{self, Accelerator, Without};
use crate::words::Words;

/// Methods that move a tensor.
static MOVES: Words = Words::of("move a tensor");

impl Interp<'_> {
    /// `if torch.cuda.is_available:`. Returns the condition that the author meant, so that no rule reports the guarded code, too.
    pub(crate) fn check_uncalled(&mut self, e: ExprId, v: Value) -> Option<Cond> {
        let Value::External(path) = v else { return None };
        let fact = torch::call(path).and_then(|f| f.accelerator)?;
        if fact.without != Without::Availability {
            return None;
        }
        let backend = match fact.accelerator {
            Accelerator::Cuda => None,
            Accelerator::Backend(b) => Some(b),
            Accelerator::Any => return None,
        };
        let there = self.available(backend);
        let absent = self.d.not(there);
        if let Some(bite) = self.bite(absent, false) {
            let place = self.place(e);
            self.emit(Kind::UncalledCheck { function: path.to_string() }, place, bite, Vec::new());
        }
        Some(there)
    }

    /// Reports `x.to(device)` as a statement.
    pub(crate) fn check_discarded(&mut self, e: ExprId, v: Value) {
        if !matches!(v, Value::Tensor(_) | Value::Choice(_)) {
            return;
        }
        let ir = &self.linked().ir;
        let Expr::Call(call) = ir.expr(e) else { return };
        if ir.shown.contains(&ir.span(e)) {
            return;
        }
        let Some((base, name)) = self.method_called(ir.call(call).func) else { return };
        if !MOVES.has(name.as_str()) {
            return;
        }
        if name.as_str() == "to" && !self.names_target(ir.call(call)) {
            return;
        }
        // `torch.zeros(1).cuda()`, `step(x).cpu()`: no variable holds the tensor that is copied. Such code tests whether the device works,
        // or waits until the work is done.
        if let Expr::Call(made_by) = ir.expr(base) {
            let callee = ir.call(made_by).func;
            let external =
                matches!(self.program.resolve_expr(self.here().module, callee), Some(Resolved::External(_)));
            let made = external || matches!(ir.expr(callee), Expr::Var(_));
            if made && self.attribute_asked_for(ir.call(made_by)).is_none() {
                return;
            }
        }
        let receiver = ir.span(base);
        if self.has_own_fields(base) || goes_round(ir, e, base) {
            return;
        }
        if self.comes_of_no_tensor(base) {
            return;
        }
        // The receiver itself must be a tensor, because `.to()` moves modules and some batches in place.
        let Some(mut needs) = (if self.certain(v) { Some(Vec::new()) } else { self.discarded_proof(base) })
        else {
            return;
        };
        needs.extend(self.makers_of(base));
        let bite = Bite::in_world(crate::world::World::Always);
        if self.run.muted > 0 || self.run.exhausted {
            return;
        }
        let place = self.place(e);
        let drawn = self.drawn_in(base);
        let parameter = self.holds_parameter(base);
        self.emit(Kind::Discarded { receiver, method: name.to_string(), parameter }, place, bite, needs);
        if let Some(event) = self.events.last_mut() {
            event.about.extend(drawn);
        }
    }

    /// Is every possible value of the expression a module's parameter?
    fn holds_parameter(&mut self, base: ExprId) -> bool {
        self.run.muted += 1;
        let v = self.eval(base);
        self.run.muted -= 1;
        self.values_of(v).into_iter().all(|v| match v {
            Value::Tensor(t) => self.get_tensor(t).role == Role::Parameter,
            _ => false,
        })
    }

    /// Does code set attributes on the value, as on a batch object?
    fn has_own_fields(&mut self, base: ExprId) -> bool {
        if self.modules.with_fields.is_empty() {
            return false;
        }
        self.run.muted += 1;
        let v = self.eval(base);
        self.run.muted -= 1;
        self.values_of(v).into_iter().any(|v| self.modules.with_fields.contains(&v))
    }

    /// `batch.detach()`, where `batch` also has an attribute `source`: it is no tensor, and its methods may work in place.
    fn comes_of_no_tensor(&mut self, base: ExprId) -> bool {
        self.run.muted += 1;
        let v = self.eval(base);
        self.run.muted -= 1;
        self.values_of(v).into_iter().any(|v| match v {
            Value::Outer(o) => self.has_what_no_tensor_has(o),
            Value::Tensor(t) => self
                .made_by_own_method(self.get_tensor(t).device)
                .is_some_and(|o| self.has_what_no_tensor_has(o)),
            _ => false,
        })
    }

    /// The outside values whose own methods made the expression's value. Classes other than `torch.Tensor` have methods of the same names:
    /// `graph.clone().to(device)` moves the copy in place.
    fn makers_of(&mut self, base: ExprId) -> Vec<crate::flow::domain::value::OuterId> {
        self.run.muted += 1;
        let v = self.eval(base);
        self.run.muted -= 1;
        let maker = |v| match v {
            Value::Tensor(t) => self.made_by_own_method(self.get_tensor(t).device),
            _ => None,
        };
        self.values_of(v).into_iter().filter_map(maker).collect()
    }

    /// The possible values of the expression that are batches from a loop. A batch may have attributes and its own method to move.
    fn drawn_in(&mut self, base: ExprId) -> Vec<crate::flow::domain::value::OuterId> {
        self.run.muted += 1;
        let v = self.eval(base);
        self.run.muted -= 1;
        let drawn = |v| match v {
            Value::Outer(o) if self.is_of_batch_outside(o) => Some(o),
            _ => None,
        };
        self.values_of(v).into_iter().filter_map(drawn).collect()
    }

    /// Does this call of `.to(…)` name a device, and not only a dtype?
    pub(crate) fn names_target(&mut self, call: crate::ir::Call<'_>) -> bool {
        self.run.muted += 1;
        let args = self.arguments(call);
        let e = call.func;
        let target = self.target_of_to(&args, e);
        self.run.muted -= 1;
        target.is_some()
    }

    /// The outside values that must be tensors for the receiver to be one. `None` if the receiver may be something else.
    fn discarded_proof(&mut self, base: ExprId) -> Option<Vec<crate::flow::domain::value::OuterId>> {
        self.run.muted += 1;
        let v = self.eval(base);
        self.run.muted -= 1;
        let mut needs = Vec::new();
        for v in self.values_but_none(v) {
            match v {
                Value::Outer(o) if self.is_asked_otherwise(o) => return None,
                Value::Outer(o) if self.is_of_batch_outside(o) && self.batches_may_move() => return None,
                Value::Outer(o) if self.is_of_batch_outside(o) => {}
                Value::Outer(o) => needs.push(o),
                v if self.certain(v) => {}
                _ => return None,
            }
        }
        Some(needs)
    }

    /// The possible values of `v` where it has the attribute that the code reads. That excludes `None`, both as a value and as an
    /// outside value that a test found to be `None`.
    fn values_but_none(&mut self, v: Value) -> Vec<Value> {
        let Value::Choice(d) = v else { return vec![v] };
        let mut leaves = Vec::new();
        self.d.leaves(d, &mut leaves);
        let mut values = Vec::new();
        for leaf in leaves {
            let v = *self.t.values.get(leaf);
            let asked = match v {
                Value::Outer(_) => {
                    self.tests.atoms.get(&crate::flow::machine::Test::Compare(0, v, Value::None)).copied()
                }
                _ => None,
            };
            let missing = asked.is_some_and(|none| {
                let there = self.d.where_leaf(d, &mut |p| p == leaf);
                let none = self.d.atom(none);
                let other = self.d.not(none);
                let there = self.d.and(there, self.path);
                self.d.and(there, other) == crate::flow::domain::diagram::FALSE
            });
            if v != Value::None && !missing {
                values.push(v);
            }
        }
        values
    }

    /// Does the file import PyTorch Geometric? `.to()` moves its batches in place (torch_geometric/data/data.py, `apply`).
    pub(crate) fn batches_may_move(&self) -> bool {
        let of = |module: Sym| module.as_str().split('.').next() == Some("torch_geometric");
        self.linked().ir.imports.iter().any(|import| of(import.module))
    }
}
