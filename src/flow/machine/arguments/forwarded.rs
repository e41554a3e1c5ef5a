//! Calls that pass on the entry point's own arguments.
//!
//! Example: `super()._init_weights(module)`. The callee is in another file, gets only symbols like its own as a
//! symbolic function, and its result is unused. Its events are reported when it is an entry point itself.

use crate::flow::domain::value::{OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{ExprId, FuncId};
use crate::link::ModIdx;

impl Interp<'_> {
    /// Evaluates an expression whose value is unused.
    pub(crate) fn eval_unused(&mut self, e: ExprId) -> Value {
        let around = self.run.unused_value.replace((self.frame, e));
        let v = self.eval(e);
        self.run.unused_value = around;
        v
    }

    /// Whether the call only passes its function's own arguments to a function of another file that stores none of
    /// them.
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
                // A module that the entry point gets as an argument.
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
