//! Calls: of functions, classes and methods of the project, and what binds their arguments.

pub(crate) mod activation;
pub(crate) mod call;
pub(crate) mod decorators;
pub(crate) mod escape;
pub(crate) mod function_values;
pub(crate) mod generator_managers;
pub(crate) mod returned_functions;
pub(crate) mod wrappers;

use crate::flow::domain::diagram::Cond;
use crate::flow::domain::value::{ObjId, Value};
use crate::ir::{ExprId, FuncId};
use crate::link::ModIdx;
use crate::sym::Sym;
use rustc_hash::{FxHashMap, FxHashSet};

/// What is remembered of calls: which callees are followed, and what surrounds the one that is interpreted.
#[derive(Default)]
pub(crate) struct Calls {
    /// Methods that return tuples or dicts.
    pub(crate) several: FxHashMap<(ModIdx, FuncId), bool>,
    /// What functions give that are not followed.
    pub(crate) summaries: FxHashMap<(ModIdx, FuncId), crate::flow::summary::returns::Gives>,
    /// Callees that took more steps than a call may.
    pub(crate) heavy: FxHashSet<(ModIdx, FuncId)>,
    /// The same, with less than that left: only the entry point that is interpreted does without them.
    pub(crate) heavy_here: FxHashSet<(ModIdx, FuncId)>,
    /// The last call took more steps than it had.
    pub(crate) gave_up: bool,
    /// Context managers that have been entered and not left.
    pub(crate) suspended: Vec<crate::flow::machine::calls::generator_managers::Suspended>,
    /// What defaults of parameters were where a loop has come to the function.
    pub(crate) captured: FxHashMap<(ModIdx, FuncId, Sym), Value>,
    /// Functions whose wrappers are being interpreted, innermost last.
    pub(crate) wrapped: Vec<crate::flow::machine::calls::wrappers::Wrapped>,
    /// Is something that a decorator is given set again further down?
    pub(crate) set_again: FxHashMap<(ModIdx, ExprId), bool>,
    /// When a function is reached through the project's own decorators.
    pub(crate) wrappers: FxHashMap<(ModIdx, FuncId), Cond>,
    /// When the function was called that a decorator was given.
    pub(crate) probed: Cond,
    /// While positive, modules are made without running their constructors.
    pub(crate) shallow: u32,
    /// What those would have been given.
    pub(crate) unbuilt: FxHashMap<ObjId, crate::flow::machine::arguments::args::Args>,
    /// When functions are handed to something that calls them.
    pub(crate) handed: FxHashMap<(ModIdx, FuncId), Cond>,
    /// What the calls in sight say of the functions they call.
    pub(crate) callers: crate::flow::machine::arguments::callers::Callers,
    /// Objects whose constructors were given up.
    pub(crate) half_made: FxHashSet<ObjId>,
}

impl Calls {
    /// Forgets objects from this number on.
    pub(crate) fn rewind(&mut self, objects: usize) {
        let old = |id: ObjId| (id.0 as usize) < objects;
        self.unbuilt.retain(|&id, _| old(id));
        self.half_made.retain(|&id| old(id));
    }
}
