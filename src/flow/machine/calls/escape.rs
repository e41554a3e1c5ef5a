//! Calls of unknown functions: the state that they may change, and their result.

use crate::flow::MAX_CHOSEN;
use crate::flow::domain::diagram::Dd;
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::query::flag_words::speaks_of_devices;
use crate::ir::{Expr, ExprId, FuncId};
use crate::link::ModIdx;
use crate::sym::Sym;
use crate::words::Words;

static CASTS: Words = Words::of("cast a comparison");

impl Interp<'_> {
    /// Handles `(x > 0).float()`: the comparison gives a tensor, so its operands include a tensor.
    pub(crate) fn compared_tensor(&mut self, test: Value, base: ExprId, name: Sym, args: &Args) -> Value {
        let Expr::Compare { left, right, .. } = self.linked().ir.expr(base) else { return test };
        // A comparison does not give a module. A value with one of these methods that is no module is a tensor.
        let casts = CASTS.has(name.as_str());
        let shows = casts
            || crate::flow::evidence::tensor_evidence::only_tensors_do(name)
            || crate::flow::evidence::tensor_evidence::only_tensors_take(name, args);
        self.run.muted += 1;
        let (l, r) = (self.eval(left), self.eval(right));
        self.run.muted -= 1;
        let proven = |v: Value| matches!(v, Value::Outer(o) if self.is_tensorish(o));
        if !shows && !(crate::torch::method(name).is_some() && (proven(l) || proven(r))) {
            return test;
        }
        self.each(l, &mut |i, l| i.shown_by_comparison(l, r, test, base))
    }

    /// Records that the outside operand of a comparison is a tensor, if the other operand is a number.
    fn shown_by_comparison(&mut self, l: Value, r: Value, test: Value, base: ExprId) -> Value {
        let host = |v| matches!(v, Value::Int(_) | Value::Host(_) | Value::Bool(_));
        match (l, r) {
            (Value::Outer(o), v) | (v, Value::Outer(o)) if host(v) || v == Value::Unknown => {
                self.evidence.tensor_proofs.insert(o);
                self.tensor_of_outer(o, base)
            }
            _ => test,
        }
    }

    /// Whether the value is an unknown entry of a table with many functions. Their results together are rarely of one
    /// kind.
    pub(crate) fn is_of_many_functions(&self, d: Dd) -> bool {
        let mut leaves = Vec::new();
        self.d.leaves(d, &mut leaves);
        let functions = leaves.iter().filter(|&&leaf| matches!(self.t.values.get(leaf), Value::Closure(_)));
        functions.count() > MAX_CHOSEN
    }

    /// A call of an unknown function, which may have moved its arguments.
    pub(crate) fn unknown_call(&mut self, f: Value, args: &Args, e: ExprId) -> Value {
        if let Value::Outer(callee) = f
            && let Some(tokens) = self.tokens(callee, args, e)
        {
            return tokens;
        }
        if let Value::Outer(_) = f {
            if !self.libraries.loads.is_empty() {
                self.used_as_weights(f);
            }
            self.check_timed_call(args, e);
        }
        if matches!(f, Value::Outer(_) | Value::Tensor(_)) {
            self.check_outer_evaluation(f, args, e);
        }
        for (v, _) in args.values() {
            self.escape(v, 0);
        }
        self.works_for_autocast(f, args, e);
        if let Value::Outer(model) = f
            && let Some(v) = self.call_outside_module(model, args, e)
        {
            return v;
        }
        match f {
            // `model(x)` of an outside model: if the result is a tensor, it is on the model's device.
            Value::Tensor(id) if !self.get_tensor(id).certain => {
                let d = self.call_moved(self.get_tensor(id).device, args, e);
                let t = crate::flow::domain::value::Tensor { certain: false, ..self.get_tensor(id) };
                let (dims, role) =
                    (crate::flow::domain::dims::Dims::ANY, crate::flow::domain::value::Role::Plain);
                self.tensor(crate::flow::domain::value::Tensor { device: d, dims, role, ..t })
            }
            _ => {
                let made = self.result_of(e);
                self.is_made_of(made, args);
                made
            }
        }
    }

    /// Makes the devices of a value unknown that unknown code has access to.
    pub(crate) fn escape(&mut self, v: Value, depth: u32) {
        let Value::Object(id) = v else { return };
        if depth > 2 {
            return;
        }
        match self.obj(id).kind {
            ObjKind::Module | ObjKind::ForeignModule(_) => {
                let d = self.unknown_device();
                self.move_module(id, d);
                self.forget_mode(v);
            }
            ObjKind::Inert => self.optimizer_escapes(id),
            ObjKind::List { .. } | ObjKind::Dict { .. } => {
                self.keys_change(id);
                for content in self.values_of(self.own(id)) {
                    for v in self.exact_elements(content).unwrap_or_default() {
                        self.escape(v, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    /// Handles a method that is not interpreted: it may have assigned other tensors, on other devices, to its object's
    /// attributes.
    pub(crate) fn forget_written(&mut self, module: ModIdx, func: FuncId, receiver: Option<Value>) {
        let Some(Value::Object(id)) = receiver else { return };
        for &name in self.relevance.assigned.to_self(module, func) {
            if matches!(self.get_field(id, name), Value::Tensor(_) | Value::Device(_) | Value::Choice(_)) {
                self.set_field(id, name, Value::Unknown);
            }
        }
    }

    /// Handles a method that is not interpreted and whose name refers to devices: it may have moved its object and the
    /// modules in it.
    pub(crate) fn may_have_moved(&mut self, method: Sym, receiver: Option<Value>) {
        let name = method.as_str();
        let Some(v @ Value::Object(id)) = receiver else { return };
        if !matches!(name, "to" | "_apply") && !speaks_of_devices(name) {
            return;
        }
        self.escape(v, 0);
        if matches!(self.obj(id).kind, ObjKind::Instance) {
            let held: Vec<Value> = self.obj(id).attrs.iter().map(|&(_, cell)| self.store.get(cell)).collect();
            held.into_iter().for_each(|v| self.escape(v, 0));
        }
    }
}
