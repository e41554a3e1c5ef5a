//! Modules that another function moves: who runs for itself finds such a module where it was made, or where it has been moved by
//! then.

use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::query::relevance::moved_by_others::{Move, What, may_be_of};
use crate::ir::{FuncId, Slot};
use crate::link::{ClassKey, ModIdx};

impl<'p> Interp<'p> {
    /// A function of the entry's file is about to run for itself: what others move may have moved before.
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

    /// The same of what the object keeps, as far as this file says.
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

    /// A variable of another file has been evaluated, of which that file's functions may move what it holds.
    pub(crate) fn forget_moved_global(&mut self, module: ModIdx, slot: Slot, held: Value) {
        let moved = |m: &Move| matches!(m.what, What::Global(s) if s == slot) && m.within.is_some();
        if matches!(held, Value::Object(_)) && self.moves_of(module).iter().any(moved) {
            self.perhaps_moved(held);
        }
    }

    fn perhaps_moved(&mut self, held: Value) {
        let Value::Object(id) = held else { return };
        // What has been moved before any of that is where it is.
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
