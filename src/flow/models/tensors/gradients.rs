//! Gradients that a program supplies itself: they must be on the device of their tensor.

use crate::flow::domain::event::Meeting;
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::observers::mismatch::meet::Rule;
use crate::ir::ExprId;
use crate::sym::Sym;

impl Interp<'_> {
    /// `x.backward(gradient)`: the gradient must be on the device of `x`, unless it is a number
    /// (torch/csrc/autograd/engine.cpp, `validate_outputs`).
    pub(crate) fn check_gradient_given(&mut self, x: Value, args: &Args, e: ExprId, base: ExprId) {
        if !self.certain(x) || args.positional.is_empty() && args.keyword("gradient").is_none() {
            return;
        }
        let Some(op) = crate::torch::method(Sym::new("backward")) else { return };
        let parties = self.parties(op, Some((x, base)), args);
        self.check_parties(op, "`.backward()`", e, &parties);
    }

    /// `x.grad = gradient`: the gradient must be on the device of `x`, even if it is a number
    /// (torch/csrc/autograd/python_variable.cpp, `THPVariable_set_grad`).
    pub(crate) fn assign_gradient(&mut self, x: Value, gradient: Value, at: ExprId) {
        if !self.certain(x) || !matches!(gradient, Value::Tensor(_)) {
            return;
        }
        let parties: Vec<_> =
            [x, gradient].into_iter().filter_map(|v| self.party(v, at, Rule::STRICT)).collect();
        self.meet(Meeting::Function, "`.grad =`", at, &parties);
    }
}
