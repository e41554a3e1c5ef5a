//! Local variables that only some paths bind: on the others, a read raises.
//!
//! Example: `if use_cuda: target = y.cuda()` and then `target.mean()`. Code after that line runs only if CUDA was used.

use crate::flow::domain::atom::{Atom, AtomId};
use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::ir::{FuncId, Var};

/// The maximum number of paths of such a condition. A larger one would take too much of the path condition.
const FEW_PATHS: u32 = 4;

impl Interp<'_> {
    /// Records that a variable is bound on this path.
    pub(crate) fn note_bound(&mut self, var: Var, cell: Cell, value: Value) {
        let before = self.names.bound.get(&cell).copied();
        let here = match before {
            Some(TRUE) | None if value == Value::Absent => return,
            Some(TRUE) => return,
            // A module-level variable that a function binds counts as always bound.
            _ if matches!(var, Var::Global(_)) && self.here().func != FuncId(0) => TRUE,
            // Outside of all branches: all later code comes past this point.
            Some(_) if self.here().branches == 0 => TRUE,
            Some(before) => {
                let here = self.d.given(self.path, self.here().entry);
                self.d.ite(before, TRUE, here).unwrap_or(TRUE)
            }
            None if self.store.get(cell) != Value::Absent || self.here().branches == 0 => return,
            // The condition at the call holds for the whole function.
            None => self.d.given(self.path, self.here().entry),
        };
        self.names.bound.insert(cell, here);
    }

    /// Handles a read of a variable of the current activation. The path ends where the variable is unbound.
    pub(crate) fn needs_bound(&mut self, cell: Cell) {
        let Some(&bound) = self.names.bound.get(&cell) else { return };
        let (atoms, left_out) = (&self.atoms, &self.tests.left_out);
        // Only atoms about devices and tests like `if x is None:` on outside values are kept. The path condition has no
        // room for others.
        let about_devices = |atom: AtomId| {
            atom.is_hardware()
                || matches!(atoms.get(atom), Atom::Flag { about_devices: true, .. })
                || left_out.contains(&atom)
        };
        let bound = self.d.forget(bound, &about_devices);
        if bound == TRUE || self.d.paths(bound) > FEW_PATHS {
            return;
        }
        if let Some(path) = self.d.ite(self.path, bound, FALSE) {
            self.path = path;
        }
    }
}
