//! Variables that only some paths bind: on the others, reading one raises.
//!
//! `if use_cuda: target = y.cuda()` and then `target.mean()`: whoever comes past that line has used CUDA.

use crate::flow::domain::atom::{Atom, AtomId};
use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::ir::{FuncId, Var};

/// A condition with more paths than this is left alone: what it adds to the path is not worth the room.
const FEW_PATHS: u32 = 4;

impl Interp<'_> {
    /// A variable is about to be given a value: on this path it is bound.
    pub(crate) fn note_bound(&mut self, var: Var, cell: Cell, value: Value) {
        let before = self.names.bound.get(&cell).copied();
        let here = match before {
            Some(TRUE) | None if value == Value::Absent => return,
            Some(TRUE) => return,
            // What a function binds for all the file is bound whenever it has run.
            _ if matches!(var, Var::Global(_)) && self.here().func != FuncId(0) => TRUE,
            // Outside of all branches: whoever comes further comes past here.
            Some(_) if self.here().branches == 0 => TRUE,
            Some(before) => {
                let here = self.d.given(self.path, self.here().entry);
                self.d.ite(before, TRUE, here).unwrap_or(TRUE)
            }
            None if self.store.get(cell) != Value::Absent || self.here().branches == 0 => return,
            // What held when the function was called holds for all its lines.
            None => self.d.given(self.path, self.here().entry),
        };
        self.names.bound.insert(cell, here);
    }

    /// A variable of the present activation is read: where nothing has bound it, the path ends here.
    pub(crate) fn needs_bound(&mut self, cell: Cell) {
        let Some(&bound) = self.names.bound.get(&cell) else { return };
        let (atoms, left_out) = (&self.atoms, &self.tests.left_out);
        // What else decides than these and `if x is None:`, of what is given from outside, a path has no room for.
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
