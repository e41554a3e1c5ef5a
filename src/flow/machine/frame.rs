//! What has identity and state while code is interpreted: objects, and the activations of functions.

use crate::flow::domain::diagram::Cond;
use crate::flow::domain::store::{Cell, Changes, Mark};
use crate::flow::domain::value::{FrameId, ObjId, OuterId, Value};
use crate::ir::{ExprId, FuncId, StmtId};
use crate::link::{ClassKey, ModIdx};
use crate::span::Place;
use crate::sym::Sym;
use crate::torch::ModuleOp;

/// What an object is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum ObjKind {
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
pub(crate) struct Object {
    pub(crate) kind: ObjKind,
    pub(crate) class: Option<ClassKey>,
    /// A module's own device; a container's content; see [`ObjKind`].
    pub(crate) own: Cell,
    pub(crate) attrs: Vec<(Sym, Cell)>,
    /// Names that `register_buffer(name, None)` has reserved: a tensor assigned to one is a buffer.
    pub(crate) reserved: Vec<Sym>,
    /// Set for the receiver of a method that is interpreted for itself: what it lives with.
    pub(crate) outer: Option<OuterId>,
}

/// A function's activation.
pub(crate) struct Frame {
    pub(crate) module: ModIdx,
    pub(crate) func: FuncId,
    pub(crate) base: Cell,
    /// The activation of the function around it.
    pub(crate) parent: Option<FrameId>,
    /// The activation that called it.
    pub(crate) caller: Option<FrameId>,
    /// The class whose method it is, for `super()`.
    pub(crate) class: Option<ClassKey>,
    pub(crate) receiver: Value,
    /// What has been returned so far, and when.
    pub(crate) result: Value,
    pub(crate) returned: Cond,
    /// When it was called. What it returns is told relative to that.
    pub(crate) entry: Cond,
    /// The heap at each `return` inside a branch.
    pub(crate) exits: Vec<(Cond, Changes)>,
    pub(crate) start: Mark,
    /// Branches that are open; a `return` outside of all of them ends the function for good.
    pub(crate) branches: u32,
    pub(crate) loops: Vec<LoopFrame>,
    /// What a generator yields.
    pub(crate) yields: Value,
    /// The call that made it.
    pub(crate) site: Option<Place>,
    /// Is that the call of a module?
    pub(crate) module_call: bool,
    /// Handlers around: conditions under which the `try` bodies so far went well.
    pub(crate) tries: Vec<TryFrame>,
    /// Is it a context manager that a `with` has entered?
    pub(crate) manager: bool,
    /// What such a manager does once the block has ended, from its `yield` on.
    pub(crate) rest: Option<Vec<StmtId>>,
}

#[derive(Default)]
pub(crate) struct LoopFrame {
    /// States at `continue`.
    pub(crate) continues: Vec<(Cond, Changes)>,
    /// States at `break`.
    pub(crate) breaks: Vec<(Cond, Changes)>,
    pub(crate) start: Option<Mark>,
    /// The state before the first round, and how many cells there were.
    pub(crate) entered: Option<Mark>,
    pub(crate) cells: usize,
    /// How many objects there were before the present round.
    pub(crate) objects: usize,
    /// Which round it is.
    pub(crate) rounds: u32,
    pub(crate) branches: u32,
    /// Its rounds are interpreted one by one.
    pub(crate) exact: bool,
    /// It goes over something of which nobody knows how much it is.
    pub(crate) open: bool,
    /// What its first round has put into containers whose elements are not told apart, by the target of the assignment.
    pub(crate) put: Vec<(ExprId, ObjId, Value)>,
}

/// A `try` whose body is being interpreted.
pub(crate) struct TryFrame {
    /// What must hold if nothing has been raised so far.
    pub(crate) survived: Cond,
    /// What is there if all imports in it have succeeded.
    pub(crate) imported: Cond,
    /// When the `try` is reached.
    pub(crate) start: Cond,
    /// The store when the body begins.
    pub(crate) mark: Mark,
    /// What arms of branches have done that were left, and when: it counts where they have raised, before or after it.
    pub(crate) left: Vec<(Cond, Changes)>,
    /// What had been done where something was raised for certain, and when that is.
    pub(crate) raised: Vec<(Cond, Changes)>,
    pub(crate) catches_cuda: bool,
    pub(crate) catches_oom: bool,
    pub(crate) catches_missing: bool,
}
