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

/// What observers remember until they can tell whether it is an event.
#[derive(Default)]
pub(crate) struct Observed {
    /// The condition under which gradients are switched off until somebody switches them on.
    pub(crate) gradless: Cell,
    /// Modules in evaluation mode, with where they were put into it.
    pub(crate) evaluated: FxHashMap<Value, Place>,
    /// Moves of what may be there already, by place; nothing for those that some round or call needs.
    pub(crate) needless: FxHashMap<Place, Option<Pending>>,
    /// Moves that some entry point needs, whatever others do.
    pub(crate) needed: FxHashSet<Place>,
    /// Copies to the host that nobody has waited for, with the number of waits before it.
    pub(crate) unwaited: FxHashMap<Place, u32>,
    /// How often the program has waited for the GPU so far.
    pub(crate) waits: u32,
    /// How many cells there were before the loop that is looked at.
    pub(crate) cells_then: usize,
    /// Modules whose constructors have moved them before there was anything to move: where, and by which method.
    pub(crate) empty_moves: Vec<(ObjId, Place, Sym)>,
    /// Copies of leaves that nobody else holds, by where they were made.
    pub(crate) fresh_copies: Vec<Place>,
    /// What is compared with a device's name, and may be a string in some world or for some caller.
    pub(crate) texts: FxHashSet<Place>,
    /// Classes whose instances were moved to an accelerator in sight; true if that may have been CUDA.
    pub(crate) accelerated: FxHashMap<ClassKey, bool>,
    /// Which files import a clock.
    pub(crate) clocks: FxHashMap<ModIdx, bool>,
    /// Classes of modules of which it has been asked whether they have weights.
    pub(crate) weighty: RefCell<FxHashMap<ClassKey, bool>>,
    /// Which files are plainly written for CUDA alone, as far as that was asked.
    pub(crate) cuda_only: FxHashMap<ModIdx, bool>,
}

impl Observed {
    /// Forgets objects from this number on.
    pub(crate) fn rewind(&mut self, objects: usize) {
        let old = |id: ObjId| (id.0 as usize) < objects;
        self.empty_moves.retain(|&(id, ..)| old(id));
        self.evaluated.retain(|&v, _| matches!(v, Value::Object(id) if old(id)));
    }
}
