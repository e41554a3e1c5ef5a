//! Functions that entry points return.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::entry::run::Found;

impl Interp<'_> {
    /// Interprets the functions that an entry point defines and returns. Their callers are unknown and pass arguments
    /// of their own.
    pub(crate) fn run_returned(
        &mut self,
        result: Value,
        start: crate::flow::domain::diagram::Cond,
        frames: usize,
        out: &mut Found,
    ) {
        for v in self.values_of(result) {
            let Value::Closure(id) = v else { continue };
            let crate::flow::domain::value::Closure { module, func, frame } = *self.t.closures.get(id.0);
            let own = module == self.entry && frame.is_some_and(|f| f.0 as usize >= frames);
            // A function that the file also calls is interpreted with the real arguments.
            if !own || self.program.sites(module).by_name.contains_key(&func) {
                continue;
            }
            let def = self.names.def_paths.get(&(module, func)).copied().unwrap_or(TRUE);
            // The tests on the parameters of the enclosing function still hold.
            let def = self.gone_well(def);
            self.path = self.d.and(start, def);
            if self.path == FALSE {
                continue;
            }
            self.calls.callers.entry = Some(func);
            self.run(module, func, frame, None, None, None, None, false);
            self.collect(out);
        }
    }
}
