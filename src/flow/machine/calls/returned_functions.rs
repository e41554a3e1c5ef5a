//! Functions that entry points give back.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::entry::run::Found;

impl Interp<'_> {
    /// The functions that an entry point has defined and returns: who gets them calls them, with something of their own.
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
            // What is called here as well has been seen with what it is given.
            if !own || self.program.sites(module).by_name.contains_key(&func) {
                continue;
            }
            let def = self.names.def_paths.get(&(module, func)).copied().unwrap_or(TRUE);
            // What was asked of the parameters of the function around it still holds.
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
