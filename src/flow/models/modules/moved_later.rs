//! Modules that another function moves. When the engine interprets a function on its own, such a module may be where the program made it,
//! or may already have moved.

use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::query::relevance::moved_by_others::{Move, What, may_be_of};
use crate::ir::{FuncId, Slot};
use crate::link::{ClassKey, ModIdx};

impl<'p> Interp<'p> {
    /// The engine is about to interpret a function on its own. Forgets the devices of what other functions of its file move.
    pub(crate) fn forget_moved(&mut self, module: ModIdx, func: FuncId, object: Option<(ClassKey, ObjId)>) {
        for m in self.moves_of(module) {
            if let (What::Global(slot), Some(within)) = (m.what, m.within)
                && within != func
            {
                let base = self.global_cell(module, 0);
                let held = self.store.get(Cell(base.0 + u32::from(slot)));
                self.perhaps_moved(held);
            }
        }
        let program = self.program;
        if let Some((key, id)) = object.filter(|&(key, _)| !self.is_module_class(key)) {
            for &k in &program.class(key).mro {
                self.forget_moved_parts(key, id, k.module, func);
            }
        }
    }

    /// The same for the attributes of the object, as far as this file shows.
    fn forget_moved_parts(&mut self, key: ClassKey, id: ObjId, module: ModIdx, func: FuncId) {
        for m in self.moves_of(module) {
            let What::Attribute(name, _) = m.what else { continue };
            let itself = module == key.module && m.within == Some(func);
            let held = self.get_field(id, name);
            if !itself && matches!(held, Value::Object(_)) && may_be_of(self.program, key, module, *m) {
                self.perhaps_moved(held);
            }
        }
    }

    /// The program read a global variable of another file. Forgets its module's device if functions of that file move it.
    pub(crate) fn forget_moved_global(&mut self, module: ModIdx, slot: Slot, held: Value) {
        let moved = |m: &Move| matches!(m.what, What::Global(s) if s == slot) && m.within.is_some();
        if matches!(held, Value::Object(_)) && self.moves_of(module).iter().any(moved) {
            self.perhaps_moved(held);
        }
    }

    fn perhaps_moved(&mut self, held: Value) {
        let Value::Object(id) = held else { return };
        // A module that is no longer on the CPU has already moved.
        if !self.is_module_object(id) {
            return;
        }
        let now = self.module_device(id, 0);
        if self.is_cpu(now) {
            let unknown = self.unknown_device();
            self.move_module(id, unknown);
        }
    }

    fn moves_of(&self, module: ModIdx) -> &'p [Move] {
        self.relevance.moves(self.program, module)
    }
}
