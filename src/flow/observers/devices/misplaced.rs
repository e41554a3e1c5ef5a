//! Other values where PyTorch wants a device, and devices where PyTorch wants another value. All of them raise.

use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::event::{Compared, Kind, Misplaced};
use crate::flow::domain::value::{Device, Host, OuterId, OuterKey, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::query::type_names::is_misspelt;
use crate::ir::{CmpOp, Expr, ExprId, Var};
use crate::link::Resolved;
use crate::sym::Sym;
use crate::torch::CallFact;

impl Interp<'_> {
    /// The program passes a value where PyTorch wants a device.
    pub(crate) fn check_device_given(&mut self, v: Value, e: ExprId) {
        self.check_device_string(v, e);
        self.check_manager_given(v, e);
        self.check_number_given(v, e);
    }

    /// `x.cuda(True)`: the author took the argument for a switch. PyTorch accepts no Boolean as a device number.
    pub(crate) fn check_truth_given(&mut self, v: Value, at: ExprId) {
        if matches!(v, Value::Bool(TRUE | FALSE)) {
            self.tell_misplaced(Misplaced::Truth, TRUE, Vec::new(), at);
        }
    }

    /// `x.to(torch.cuda.device(0))`: that is a context manager, which switches the current device, and no device. Functions of
    /// `torch.cuda` accept it and use its number (torch/cuda/_utils.py, `_get_device_index`).
    fn check_manager_given(&mut self, v: Value, e: ExprId) {
        let Value::Outer(o) = v else { return };
        let OuterKey::Result { module, expr, .. } = self.t.get_outer(o).key else { return };
        let ir = &self.program.get(module).ir;
        let Expr::Call(call) = ir.expr(expr) else { return };
        let manager = matches!(
            self.program.resolve_expr(module, ir.call(call).func),
            Some(Resolved::External(path)) if matches!(path.as_str(), "torch.cuda.device" | "torch.cuda.device_of")
        );
        if manager {
            self.tell_misplaced(Misplaced::Manager, TRUE, Vec::new(), e);
        }
    }

    /// `y.to(x.get_device())`: on the CPU that is -1, which is no valid device number.
    fn check_number_given(&mut self, v: Value, e: ExprId) {
        let Value::Device(d) = v else { return };
        if !self.is_device_number(d) {
            return;
        }
        let free = |o| self.t.get_outer(o).with.is_none();
        let leaves = self.device_leaves(d);
        // A tensor whose device the caller decides is on the CPU on a machine without an accelerator.
        let somewhere = leaves.iter().any(|&(_, d, _)| matches!(d, Device::Of(o) if free(o)));
        let known = leaves.iter().all(|&(_, d, _)| d != Device::Unknown);
        if !known {
            return;
        }
        let mut bad = self.d.where_leaf(d, &mut |p| self.t.places.get(p).0 == Device::Cpu);
        // Classes other than tensors have a method of that name, too.
        let tensors = if bad == FALSE {
            leaves
                .iter()
                .filter_map(|&(_, d, _)| if let Device::Of(o) = d { Some(o) } else { None })
                .collect()
        } else {
            Vec::new()
        };
        if somewhere {
            let of = self.d.where_leaf(d, &mut |p| matches!(self.t.places.get(p).0, Device::Of(_)));
            let there = self.available(None);
            let without = self.d.not(there);
            let of = self.d.and(of, without);
            bad = self.d.or(bad, of);
        }
        if bad != FALSE {
            self.tell_misplaced(Misplaced::Number, bad, tensors, e);
        }
    }

    /// `torch.autocast(x.device)`: PyTorch wants the device type as a string here, and refuses a `torch.device`.
    pub(crate) fn check_autocast_type(&mut self, path: Sym, args: &Args, e: ExprId) {
        if path.as_str() != "torch.autocast" || self.run.muted > 0 {
            return;
        }
        let Some((v, at)) = args.get(0, "device_type") else { return };
        if self.is_surely_device(v, at) {
            self.tell_misplaced(Misplaced::Autocast, TRUE, Vec::new(), e);
        }
    }

    /// `torch.cuda.set_device(torch.device("cuda"))`: PyTorch wants a device with an index (torch/_utils.py, `_get_device_index`).
    pub(crate) fn check_index_wanted(&mut self, fact: &CallFact, args: &Args) {
        let Some(wanted) = fact.accelerator.filter(|a| a.wants_index).and_then(|a| a.device) else { return };
        let Some((v, at)) = args.get(usize::from(wanted.position), wanted.name.as_str()) else { return };
        let bare = match v {
            Value::Str(s, _) if matches!(s.as_str(), "cuda" | "xpu") => TRUE,
            Value::Device(d) => {
                let (places, origins) = (&self.t.places, &self.t.origins);
                // The device of a tensor has an index, even if the tensor moved there with a bare `cuda`.
                self.d.where_leaf(d, &mut |p| {
                    let (device, origin) = *places.get(p);
                    device == Device::Cuda(None) && origins.get(origin.0).reason == Reason::Literal
                })
            }
            _ => FALSE,
        };
        if bare != FALSE {
            self.tell_misplaced(Misplaced::Unnumbered, bare, Vec::new(), at);
        }
    }

    /// `torch.load(path, map_location=rank)`: PyTorch calls every location that is no device, string or dict
    /// (torch/serialization.py, `_get_restore_location`). A number is not callable.
    pub(crate) fn check_location(&mut self, location: Option<(Value, ExprId)>) {
        let Some((v, at)) = location else { return };
        let number = match v {
            Value::Int(_) | Value::Host(Host::Number | Host::Rank | Host::CurrentGpu) => true,
            Value::Device(d) => self.is_device_number(d),
            _ => false,
        };
        if number {
            self.tell_misplaced(Misplaced::Location, TRUE, Vec::new(), at);
        }
    }

    /// `"cuda" in x.device`: a `torch.device` does not support `in`.
    pub(crate) fn check_looked_in(&mut self, op: CmpOp, left: Value, right: (Value, ExprId), e: ExprId) {
        if !matches!(op, CmpOp::In | CmpOp::NotIn) || self.run.muted > 0 {
            return;
        }
        let Value::Str(text, _) = left else { return };
        if self.is_surely_device(right.0, right.1) {
            self.tell_compared(e, text.to_string(), Compared::Inside, TRUE);
        }
    }

    /// Is it a `torch.device` for every caller and in every world?
    fn is_surely_device(&mut self, v: Value, at: ExprId) -> bool {
        // `settings.device` of an unknown object is often a string.
        !self.may_be_text(v, at)
            && (self.is_device_of_parameter(at) || self.is_known_device(v) || self.is_device_object(at, true))
    }

    /// `next(model.parameters()).device`, for any model: `parameters()` returns tensors. In a file that imports PyTorch,
    /// weights are tensors, too: `layers[i].weight.device`.
    pub(crate) fn is_device_of_parameter(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Attr { base, name } = ir.expr(e) else { return false };
        if let Expr::Attr { name: of, .. } = ir.expr(base) {
            // Weights of other libraries may have a device that is a string.
            let of_torch = |m: &str| m == "torch" || m.starts_with("torch.");
            return name == self.known.device
                && matches!(of.as_str(), "weight" | "bias")
                && ir.imports.iter().any(|i| of_torch(i.module.as_str()));
        }
        let Expr::Call(next) = ir.expr(base) else { return false };
        let next = ir.call(next);
        let [first, ..] = next.args else { return false };
        let Expr::Call(parameters) = ir.expr(first.value) else { return false };
        let Expr::Attr { name: method, .. } = ir.expr(ir.call(parameters).func) else { return false };
        name == self.known.device
            && matches!(method.as_str(), "parameters" | "buffers")
            && matches!(ir.expr(next.func), Expr::Var(Var::Unbound(n)) if n.as_str() == "next")
    }

    /// Reports `x.to("cude:0")` for any `x`: only a device is written that way.
    pub(crate) fn check_misspelt(&mut self, v: Value, e: ExprId) {
        let Value::Str(s, _) = v else { return };
        let Some((kind, index)) = s.as_str().split_once(':') else { return };
        let number = !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit());
        if number && is_misspelt(kind) {
            self.check_device_string(v, e);
        }
    }

    /// Reports a value in the wrong place. `bad` is the condition under which it raises, if all of `tensors` are tensors.
    fn tell_misplaced(
        &mut self,
        what: Misplaced,
        bad: crate::flow::domain::diagram::Cond,
        tensors: Vec<OuterId>,
        e: ExprId,
    ) {
        if self.run.muted > 0 {
            return;
        }
        if let Some(bite) = self.bite(bad, false) {
            let place = self.place(e);
            self.emit(Kind::Misplaced { what }, place, bite, tensors);
        }
    }
}
