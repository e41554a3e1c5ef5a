//! The machine's state besides frames, objects and the path, by what it belongs to.

use crate::flow::domain::atom::AtomId;
use crate::flow::domain::diagram::{Cond, Literal};
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{FrameId, OuterId};
use crate::flow::machine::Test;
use crate::ir::{ClassId, ExprId, FuncId};
use crate::link::{ClassKey, ModIdx};
use crate::sym::Sym;
use rustc_hash::{FxHashMap, FxHashSet};

/// The entry point that is interpreted, and how far that has come.
#[derive(Default)]
pub(crate) struct Run {
    /// Counts passes of loops, so that one expression's results differ from pass to pass.
    pub(crate) pass: u32,
    /// How many interpreted calls are around.
    pub(crate) depth: u32,
    /// The entry point has used up its budget.
    pub(crate) exhausted: bool,
    /// While positive, observers emit no events: the engine interprets code only for its value, for example the default of a parameter.
    /// A counter, because such code can be nested.
    pub(crate) muted: u32,
    /// While positive, what runs is to raise some error.
    pub(crate) awaiting: u32,
    /// Counts uses of devices that are there, for handlers around them.
    pub(crate) work: u32,
    /// The class of which the constructor is interpreted for itself.
    pub(crate) constructed: Option<ClassId>,
    /// What has a lower number was made before the entry point began.
    pub(crate) made_before: usize,
    /// Does other code of the file visibly call the function that is interpreted for itself?
    pub(crate) speculative: bool,
    /// May that code have asked whether an accelerator is there?
    pub(crate) asked_before: bool,
    /// Are the parameters of the entry point symbols?
    pub(crate) symbolic: bool,
    /// Functions of the entry's file that its own body has called.
    pub(crate) interpreted: FxHashSet<FuncId>,
    /// The file's body ends before its end.
    pub(crate) ends_early: bool,
    /// The call that is tried out, if that is all that is interpreted.
    pub(crate) trial: Option<crate::flow::machine::entry::import_calls::Trial>,
    /// The expression whose value nobody looks at, with its activation.
    pub(crate) unused_value: Option<(FrameId, ExprId)>,
}

/// Variables of files and attributes of classes.
#[derive(Default)]
pub(crate) struct Names {
    /// Module-level variables: the first cell of each file that has been looked at.
    pub(crate) globals: FxHashMap<ModIdx, Cell>,
    /// Attributes of classes that are set, or that hold lists and dicts.
    pub(crate) class_cells: FxHashMap<(ClassKey, Sym), Cell>,
    /// Module-level variables that are being evaluated or have been.
    pub(crate) evaluated: FxHashSet<(ModIdx, u16)>,
    /// Files of which all names are known that their code may read.
    pub(crate) closed: FxHashMap<ModIdx, bool>,
    /// When a `def` is reached, by file and function.
    pub(crate) def_paths: FxHashMap<(ModIdx, FuncId), Cond>,
    /// When variables are bound that only some paths bind.
    pub(crate) bound: FxHashMap<Cell, Cond>,
}

/// Truth tests whose outcome is not known, and what has been assumed of them.
#[derive(Default)]
pub(crate) struct Tests {
    /// The atom of each test.
    pub(crate) atoms: FxHashMap<Test, AtomId>,
    /// Those of the tests that ask whether something from outside is `None`.
    pub(crate) left_out: FxHashSet<AtomId>,
    /// What is asked of an outside thing.
    pub(crate) questions: FxHashMap<AtomId, (OuterId, Test)>,
    /// "This is a tensor", asked of something of which nobody here knows what it is, and which is not whatever a caller
    /// gives.
    pub(crate) tensor_or_not: FxHashSet<AtomId>,
    /// Where the body of a `try` leads past it, by the atom of its handler.
    pub(crate) unraised: FxHashMap<AtomId, Cond>,
    /// What decides about the device whose use is being looked at.
    pub(crate) deciders: Vec<AtomId>,
    /// Chances by which alternatives are told apart that are looked at one by one just now.
    pub(crate) split: Vec<AtomId>,
    /// What holds where the alternatives are that are looked at one by one just now, be there room for it in the path or not.
    pub(crate) taken: Vec<Literal>,
    /// `hasattr(torch, "npu")` and the like.
    pub(crate) plugin_atoms: FxHashMap<crate::world::Backend, AtomId>,
    /// Imports in functions of files that need CUDA: what is done in their shadow.
    pub(crate) kernels_imported: FxHashSet<AtomId>,
    /// That inputs of `forward` are on the CPU, where the program has asked, by the module that they live with.
    pub(crate) asked_on_cpu: FxHashMap<OuterId, Vec<AtomId>>,
    /// What decides whether two things are in one place, where somebody has asked.
    pub(crate) places_asked: FxHashSet<AtomId>,
}
