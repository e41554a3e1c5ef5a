//! Functions that a caller may give, and that make tensors unless somebody gives another one: `window_fn=torch.hann_window`.

use crate::flow::domain::value::{OuterId, OuterKey, Value};
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::{Interp, Test};
use crate::ir::ExprId;
use crate::link::Resolved;
use crate::sym::Sym;
use crate::torch::Kind;

impl Interp<'_> {
    /// The call of a parameter whose default makes tensors: what that gives for whoever leaves it out.
    pub(crate) fn call_given_maker(&mut self, f: OuterId, args: &Args, e: ExprId) -> Option<Value> {
        let maker = self.default_function(f)?;
        if crate::torch::function(maker).is_none_or(|op| op.kind != Kind::Factory) {
            return None;
        }
        let left_out = self.outer_equal(f, Value::External(maker), e);
        Some(self.branch(left_out, &mut |i| i.call_external(maker, args, e), &mut |i| {
            i.unknown_call(Value::Outer(f), args, e)
        }))
    }

    /// Does it ask whether the parameter is the function of PyTorch that it is when nobody gives another?
    pub(crate) fn asks_for_default_function(&self, test: Test, outer: OuterId) -> bool {
        matches!(test, Test::Compare(0, _, Value::External(f)) if self.default_function(outer) == Some(f))
    }

    fn default_function(&self, outer: OuterId) -> Option<Sym> {
        let OuterKey::Param { module, func, index } = self.t.get_outer(outer).key else { return None };
        let param = self.program.get(module).ir.function(func).params.get(usize::from(index))?;
        match self.program.resolve_expr(module, param.default?) {
            Some(Resolved::External(path)) => Some(path),
            _ => None,
        }
    }
}
