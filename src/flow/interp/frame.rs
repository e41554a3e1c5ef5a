//! What has identity and state while code is interpreted: objects, and the activations of functions.

use super::super::diagram::Cond;
use super::super::store::{Cell, Changes, Mark};
use super::super::value::{FrameId, ObjId, OuterId, Value};
use crate::ir::{ExprId, FuncId, StmtId};
use crate::link::{ClassKey, ModIdx};
use crate::span::Place;
use crate::sym::Sym;
use crate::torch::ModuleOp;

/// What an object is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum ObjKind {
    /// An instance of a project class that is no module.
    Instance,
    /// An instance of a project class that is an `nn.Module`.
    Module,
    /// A module of `torch.nn` (with its facts) or of another library (without).
    ForeignModule(Option<&'static ModuleOp>),
    /// A list; its content is in `own`. Also `ModuleList`, `Sequential` and the like, which are modules.
    List { module: bool },
    /// A dict; its content is in `own`: a `Seq` of alternating keys and values, or `Many`.
    Dict { module: bool },
    /// `DataLoader`; `own` is what a batch is.
    Loader,
    /// `Dataset` made of known tensors; `own` is what an item is.
    Items,
    /// `argparse.ArgumentParser`.
    Parser,
    /// What `parse_args()` gives; `own` is the parser.
    Namespace,
    /// `functools.partial(…)`; `own` is the function, positional arguments, keywords.
    Partial,
    /// `namedtuple(…)`; `own` is its fields' names.
    TupleClass,
    /// `torch.Generator`; `own` is its device.
    Generator,
    /// A distribution; `own` is a tensor like its samples.
    Distribution(&'static crate::torch::Op),
    /// An optimizer, scheduler or another object that leaves tensors alone.
    Inert,
}

/// Something with identity and state.
pub(super) struct Object {
    pub(super) kind: ObjKind,
    pub(super) class: Option<ClassKey>,
    /// A module's own device; a container's content; see [`ObjKind`].
    pub(super) own: Cell,
    pub(super) attrs: Vec<(Sym, Cell)>,
    /// Names that `register_buffer(name, None)` has reserved: a tensor assigned to one is a buffer.
    pub(super) reserved: Vec<Sym>,
    /// Set for the receiver of a method that is interpreted for itself: what it lives with.
    pub(super) outer: Option<OuterId>,
}

/// A function's activation.
pub(super) struct Frame {
    pub(super) module: ModIdx,
    pub(super) func: FuncId,
    pub(super) base: Cell,
    /// The activation of the function around it.
    pub(super) parent: Option<FrameId>,
    /// The activation that called it.
    pub(super) caller: Option<FrameId>,
    /// The class whose method it is, for `super()`.
    pub(super) class: Option<ClassKey>,
    pub(super) receiver: Value,
    /// What has been returned so far, and when.
    pub(super) result: Value,
    pub(super) returned: Cond,
    /// When it was called. What it returns is told relative to that.
    pub(super) entry: Cond,
    /// The heap at each `return` inside a branch.
    pub(super) exits: Vec<(Cond, Changes)>,
    pub(super) start: Mark,
    /// Branches that are open; a `return` outside of all of them ends the function for good.
    pub(super) branches: u32,
    pub(super) loops: Vec<LoopFrame>,
    /// What a generator yields.
    pub(super) yields: Value,
    /// The call that made it.
    pub(super) site: Option<Place>,
    /// Is that the call of a module?
    pub(super) module_call: bool,
    /// Handlers around: conditions under which the `try` bodies so far went well.
    pub(super) tries: Vec<TryFrame>,
    /// Is it a context manager that a `with` has entered?
    pub(super) manager: bool,
    /// What such a manager does once the block has ended, from its `yield` on.
    pub(super) rest: Option<Vec<StmtId>>,
}

#[derive(Default)]
pub(super) struct LoopFrame {
    /// States at `continue`.
    pub(super) continues: Vec<(Cond, Changes)>,
    /// States at `break`.
    pub(super) breaks: Vec<(Cond, Changes)>,
    pub(super) start: Option<Mark>,
    /// The state before the first round, and how many cells there were.
    pub(super) entered: Option<Mark>,
    pub(super) cells: usize,
    /// How many objects there were before the present round.
    pub(super) objects: usize,
    /// Which round it is.
    pub(super) rounds: u32,
    pub(super) branches: u32,
    /// Its rounds are interpreted one by one.
    pub(super) exact: bool,
    /// It goes over something of which nobody knows how much it is.
    pub(super) open: bool,
    /// What its first round has put into containers whose elements are not told apart, by the target of the assignment.
    pub(super) put: Vec<(ExprId, ObjId, Value)>,
}

/// A `try` whose body is being interpreted.
pub(super) struct TryFrame {
    /// What must hold if nothing has been raised so far.
    pub(super) survived: Cond,
    /// What is there if all imports in it have succeeded.
    pub(super) imported: Cond,
    /// When the `try` is reached.
    pub(super) start: Cond,
    /// The store when the body begins.
    pub(super) mark: Mark,
    /// What arms of branches have done that were left, and when: it counts where they have raised, before or after it.
    pub(super) left: Vec<(Cond, Changes)>,
    /// What had been done where something was raised for certain, and when that is.
    pub(super) raised: Vec<(Cond, Changes)>,
    pub(super) catches_cuda: bool,
    pub(super) catches_oom: bool,
    pub(super) catches_missing: bool,
}
