//! The interpreter's state apart from frames, objects and the path, grouped by topic.

use crate::flow::domain::atom::AtomId;
use crate::flow::domain::diagram::{Cond, Literal};
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{FrameId, OuterId};
use crate::flow::machine::Test;
use crate::ir::{ClassId, ExprId, FuncId};
use crate::link::{ClassKey, ModIdx};
use crate::sym::Sym;
use rustc_hash::{FxHashMap, FxHashSet};

/// The current entry point and its progress.
#[derive(Default)]
pub(crate) struct Run {
    /// Counts passes of loops, so that one expression's results differ from pass to pass.
    pub(crate) pass: u32,
    /// The number of interpreted calls around the current point.
    pub(crate) depth: u32,
    /// Whether the entry point has exceeded its budget.
    pub(crate) exhausted: bool,
    /// While positive, no events are reported.
    pub(crate) muted: u32,
    /// While positive, the program expects the current code to raise.
    pub(crate) awaiting: u32,
    /// Counts uses of existing devices, for the handlers around them.
    pub(crate) work: u32,
    /// The class whose constructor is the entry point.
    pub(crate) constructed: Option<ClassId>,
    /// Objects with a lower number existed before the entry point.
    pub(crate) made_before: usize,
    /// Whether other code of the file visibly calls the symbolic function.
    pub(crate) speculative: bool,
    /// Whether that code may have tested for an accelerator.
    pub(crate) asked_before: bool,
    /// Whether the entry point is symbolic.
    pub(crate) symbolic: bool,
    /// Functions of the entry's file that its body has called.
    pub(crate) interpreted: FxHashSet<FuncId>,
    /// Whether the file's body never reaches its end.
    pub(crate) ends_early: bool,
    /// The trial call, if this interpreter is only for a trial.
    pub(crate) trial: Option<crate::flow::machine::entry::import_calls::Trial>,
    /// The expression whose value is unused, with its activation.
    pub(crate) unused_value: Option<(FrameId, ExprId)>,
}

/// Variables of files and attributes of classes.
#[derive(Default)]
pub(crate) struct Names {
    /// Module-level variables: the first cell of each file with evaluated variables.
    pub(crate) globals: FxHashMap<ModIdx, Cell>,
    /// Attributes of classes that the program sets, or that hold lists and dicts.
    pub(crate) class_cells: FxHashMap<(ClassKey, Sym), Cell>,
    /// Module-level variables whose evaluation has started.
    pub(crate) evaluated: FxHashSet<(ModIdx, u16)>,
    /// Whether all names that a file's code may read are known.
    pub(crate) closed: FxHashMap<ModIdx, bool>,
    /// The path of a `def`, by file and function.
    pub(crate) def_paths: FxHashMap<(ModIdx, FuncId), Cond>,
    /// The condition under which a variable is bound, for variables that only some paths bind.
    pub(crate) bound: FxHashMap<Cell, Cond>,
}

/// Truth tests with unknown outcomes, and the assumptions about them.
#[derive(Default)]
pub(crate) struct Tests {
    /// The atom of each test.
    pub(crate) atoms: FxHashMap<Test, AtomId>,
    /// The atoms of tests whether an outside value is `None`.
    pub(crate) left_out: FxHashSet<AtomId>,
    /// The test of an atom about an outside value.
    pub(crate) questions: FxHashMap<AtomId, (OuterId, Test)>,
    /// The tests whether an unknown value is a tensor, except for values of the caller's choice.
    pub(crate) tensor_or_not: FxHashSet<AtomId>,
    /// The path on which the body of a `try` completes, by the atom of its handler.
    pub(crate) unraised: FxHashMap<AtomId, Cond>,
    /// The atoms that decide the device of the current use.
    pub(crate) deciders: Vec<AtomId>,
    /// Non-hardware atoms that separate the alternatives currently interpreted one by one.
    pub(crate) split: Vec<AtomId>,
    /// The literals of the alternatives currently interpreted one by one, even if the path condition has no room for
    /// them.
    pub(crate) taken: Vec<Literal>,
    /// Tests such as `hasattr(torch, "npu")`.
    pub(crate) plugin_atoms: FxHashMap<crate::world::Backend, AtomId>,
    /// Imports in functions of files that need CUDA. They hide later uses.
    pub(crate) kernels_imported: FxHashSet<AtomId>,
    /// The program's tests whether an input of `forward` is on the CPU, by the module whose device it shares.
    pub(crate) asked_on_cpu: FxHashMap<OuterId, Vec<AtomId>>,
    /// The atoms that decide whether two values are on the same device, where the program tests that.
    pub(crate) places_asked: FxHashSet<AtomId>,
}
