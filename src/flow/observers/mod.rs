//! Observers: they watch what the machine does and emit events for the rules.

pub(crate) mod devices;
pub(crate) mod events;
pub(crate) mod mismatch;
pub(crate) mod modules;
pub(crate) mod transfers;
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Pending;
use crate::link::{ClassKey, ModIdx};
use crate::span::Place;
use crate::sym::Sym;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;

/// What observers store while they interpret, until they can decide whether to emit an event.
#[derive(Default)]
pub(crate) struct Observed {
    /// The condition under which gradients are switched off until the program switches them on.
    pub(crate) gradless: Cell,
    /// Modules in evaluation mode, with the place of the call that put them into it.
    pub(crate) evaluated: FxHashMap<Value, Place>,
    /// Moves of tensors that may already be on the target device, by place. `None` if some round or call needs the move.
    pub(crate) needless: FxHashMap<Place, Option<Pending>>,
    /// Moves that at least one entry point needs, whatever the other entry points do.
    pub(crate) needed: FxHashSet<Place>,
    /// Copies to the host that the program has not waited for, with the number of waits before the copy.
    pub(crate) unwaited: FxHashMap<Place, u32>,
    /// The number of times that the program has waited for the GPU.
    pub(crate) waits: u32,
    /// The number of cells that existed before the loop that is being interpreted.
    pub(crate) cells_then: usize,
    /// Modules whose constructor moves them before they have anything to move: the place, and the method.
    pub(crate) empty_moves: Vec<(ObjId, Place, Sym)>,
    /// Places of copies of leaves to which no other variable or attribute refers.
    pub(crate) fresh_copies: Vec<Place>,
    /// Expressions that the program compares with a device's name and that may be strings in some world or for some caller.
    pub(crate) texts: FxHashSet<Place>,
    /// Classes whose instances the analysed files move to an accelerator. True if that accelerator may be CUDA.
    pub(crate) accelerated: FxHashMap<ClassKey, bool>,
    /// Whether each file imports a clock. Filled on demand.
    pub(crate) clocks: FxHashMap<ModIdx, bool>,
    /// Whether each class of modules has weights. Filled on demand.
    pub(crate) weighty: RefCell<FxHashMap<ClassKey, bool>>,
    /// Whether each file is written for CUDA only. Filled on demand.
    pub(crate) cuda_only: FxHashMap<ModIdx, bool>,
}

impl Observed {
    /// Forgets all objects whose number is `objects` or higher.
    pub(crate) fn rewind(&mut self, objects: usize) {
        let old = |id: ObjId| (id.0 as usize) < objects;
        self.empty_moves.retain(|&(id, ..)| old(id));
        self.evaluated.retain(|&v, _| matches!(v, Value::Object(id) if old(id)));
    }
}
