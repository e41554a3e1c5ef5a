//! Calls of functions, classes and methods of the project, and the binding of their arguments.

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

/// The state of calls: which callees are interpreted, and what surrounds the current one.
#[derive(Default)]
pub(crate) struct Calls {
    /// Whether a method returns a tuple or dict.
    pub(crate) several: FxHashMap<(ModIdx, FuncId), bool>,
    /// The results of functions that are not interpreted.
    pub(crate) summaries: FxHashMap<(ModIdx, FuncId), crate::flow::summary::returns::Gives>,
    /// Callees that took more steps than a call may take.
    pub(crate) heavy: FxHashSet<(ModIdx, FuncId)>,
    /// Callees that took more steps than were left. They are skipped for the current entry point only.
    pub(crate) heavy_here: FxHashSet<(ModIdx, FuncId)>,
    /// Whether the last call took more steps than allowed.
    pub(crate) gave_up: bool,
    /// Context managers that have been entered and not exited.
    pub(crate) suspended: Vec<crate::flow::machine::calls::generator_managers::Suspended>,
    /// The values of parameter defaults at the definition of a function in a loop.
    pub(crate) captured: FxHashMap<(ModIdx, FuncId, Sym), Value>,
    /// Functions whose wrappers are being interpreted, the innermost last.
    pub(crate) wrapped: Vec<crate::flow::machine::calls::wrappers::Wrapped>,
    /// Whether a later statement assigns a variable that the decorator uses.
    pub(crate) set_again: FxHashMap<(ModIdx, ExprId), bool>,
    /// The condition under which the project's own decorators let a function run.
    pub(crate) wrappers: FxHashMap<(ModIdx, FuncId), Cond>,
    /// The condition under which a decorator has called the function that it got.
    pub(crate) probed: Cond,
    /// While positive, modules are made without interpreting their constructors.
    pub(crate) shallow: u32,
    /// The constructor arguments of such modules.
    pub(crate) unbuilt: FxHashMap<ObjId, crate::flow::machine::arguments::args::Args>,
    /// The condition under which a function is passed to code that calls it.
    pub(crate) handed: FxHashMap<(ModIdx, FuncId), Cond>,
    /// What the visible calls show about the functions that they call.
    pub(crate) callers: crate::flow::machine::arguments::callers::Callers,
    /// Objects whose constructors were given up.
    pub(crate) half_made: FxHashSet<ObjId>,
}

impl Calls {
    /// Removes the objects from this number on.
    pub(crate) fn rewind(&mut self, objects: usize) {
        let old = |id: ObjId| (id.0 as usize) < objects;
        self.unbuilt.retain(|&id, _| old(id));
        self.half_made.retain(|&id| old(id));
    }
}
