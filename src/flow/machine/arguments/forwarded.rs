//! Calls that hand on what the entry point itself was given.
//!
//! `super()._init_weights(module)`: the callee stands in another file, is given nothing but the symbols that it has for its
//! parameters when it is interpreted for itself, and nobody looks at what it gives. Whatever it tells, it tells there.

use crate::flow::domain::value::{OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{ExprId, FuncId};
use crate::link::ModIdx;

impl Interp<'_> {
    /// Evaluates an expression whose value nobody looks at.
    pub(crate) fn eval_unused(&mut self, e: ExprId) -> Value {
        let around = self.run.unused_value.replace((self.frame, e));
        let v = self.eval(e);
        self.run.unused_value = around;
        v
    }

    /// Does the call only hand on what its function was given, to a function of another file that keeps none of it?
    pub(crate) fn only_hands_on(
        &self,
        module: ModIdx,
        func: FuncId,
        receiver: Option<Value>,
        args: &Args,
        e: ExprId,
    ) -> bool {
        if module == self.entry || !self.run.symbolic || self.run.unused_value != Some((self.frame, e)) {
            return false;
        }
        let here = self.here();
        let entry = here.site.is_none() && self.calls.callers.entry == Some(here.func);
        let given = |v: Value| {
            let symbol = match v {
                Value::Outer(o) => Some(o),
                // A module that it is given.
                Value::Object(id) => self.obj(id).outer,
                _ => None,
            };
            let key = symbol.map(|o| &self.t.get_outer(o).key);
            matches!(key, Some(&OuterKey::Param { module, func, .. }) if (module, func) == (here.module, here.func))
        };
        entry
            && receiver == Some(here.receiver)
            && args.values().all(|(v, _)| given(v))
            && self.program.get(module).ir.function(func).name != self.known.init
            && self.relevance.assigned.to_self(module, func).is_empty()
    }
}
