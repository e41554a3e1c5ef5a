//! Objects and activations: the interpreted entities with identity and state.

use crate::flow::domain::diagram::Cond;
use crate::flow::domain::store::{Cell, Changes, Mark};
use crate::flow::domain::value::{FrameId, ObjId, OuterId, Value};
use crate::ir::{ExprId, FuncId, StmtId};
use crate::link::{ClassKey, ModIdx};
use crate::span::Place;
use crate::sym::Sym;
use crate::torch::ModuleOp;

/// The kind of an object.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum ObjKind {
    /// An instance of a project class that is no module.
    Instance,
    /// An instance of a project class that is an `nn.Module`.
    Module,
    /// A module of `torch.nn` (with its model) or of another library (without).
    ForeignModule(Option<&'static ModuleOp>),
    /// A list; its content is in `own`. Also `ModuleList`, `Sequential` and similar containers, which are modules.
    List { module: bool },
    /// A dict; its content is in `own`: a `Seq` of alternating keys and values, or `Many`.
    Dict { module: bool },
    /// `DataLoader`; `own` is a batch.
    Loader,
    /// `Dataset` of known tensors; `own` is an item.
    Items,
    /// `argparse.ArgumentParser`.
    Parser,
    /// The result of `parse_args()`; `own` is the parser.
    Namespace,
    /// `functools.partial(…)`; `own` has the function, positional arguments and keywords.
    Partial,
    /// `namedtuple(…)`; `own` has the field names.
    TupleClass,
    /// `torch.Generator`; `own` is its device.
    Generator,
    /// A distribution; `own` is a tensor with the device of its samples.
    Distribution(&'static crate::torch::Op),
    /// An optimizer, a scheduler or another object that does not move tensors.
    Inert,
}

/// An abstract object.
pub(crate) struct Object {
    pub(crate) kind: ObjKind,
    pub(crate) class: Option<ClassKey>,
    /// A module's own device; a container's content; see [`ObjKind`].
    pub(crate) own: Cell,
    pub(crate) attrs: Vec<(Sym, Cell)>,
    /// Names that `register_buffer(name, None)` has reserved: a tensor assigned to such a name is a buffer.
    pub(crate) reserved: Vec<Sym>,
    /// The outside value whose device it shares. Set for the receiver of a symbolic method.
    pub(crate) outer: Option<OuterId>,
}

/// A function's activation.
pub(crate) struct Frame {
    pub(crate) module: ModIdx,
    pub(crate) func: FuncId,
    pub(crate) base: Cell,
    /// The activation of the enclosing function.
    pub(crate) parent: Option<FrameId>,
    /// The caller's activation.
    pub(crate) caller: Option<FrameId>,
    /// The class of the method, for `super()`.
    pub(crate) class: Option<ClassKey>,
    pub(crate) receiver: Value,
    /// The result so far, and the condition under which the function has returned.
    pub(crate) result: Value,
    pub(crate) returned: Cond,
    /// The path at the call. The function's result is relative to it.
    pub(crate) entry: Cond,
    /// The store at each `return` inside a branch.
    pub(crate) exits: Vec<(Cond, Changes)>,
    pub(crate) start: Mark,
    /// The number of open branches. A `return` outside of all of them ends the function.
    pub(crate) branches: u32,
    pub(crate) loops: Vec<LoopFrame>,
    /// The values that a generator yields.
    pub(crate) yields: Value,
    /// The place of the call.
    pub(crate) site: Option<Place>,
    /// Whether that is a call of a module.
    pub(crate) module_call: bool,
    /// The open `try` statements, the innermost last.
    pub(crate) tries: Vec<TryFrame>,
    /// Whether it is a context manager that a `with` enters.
    pub(crate) manager: bool,
    /// The statements of such a manager after its `yield`, which run at its exit.
    pub(crate) rest: Option<Vec<StmtId>>,
}

#[derive(Default)]
pub(crate) struct LoopFrame {
    /// The states at `continue`.
    pub(crate) continues: Vec<(Cond, Changes)>,
    /// The states at `break`.
    pub(crate) breaks: Vec<(Cond, Changes)>,
    pub(crate) start: Option<Mark>,
    /// The state before the first round, and the number of cells then.
    pub(crate) entered: Option<Mark>,
    pub(crate) cells: usize,
    /// The number of objects before the current round.
    pub(crate) objects: usize,
    /// The number of the current round.
    pub(crate) rounds: u32,
    pub(crate) branches: u32,
    /// Whether the rounds are interpreted one by one.
    pub(crate) exact: bool,
    /// Whether the number of rounds is unknown.
    pub(crate) open: bool,
    /// The values that the first round stores in containers whose elements are not kept separately, by assignment
    /// target.
    pub(crate) put: Vec<(ExprId, ObjId, Value)>,
}

/// A `try` whose body is being interpreted.
pub(crate) struct TryFrame {
    /// The condition under which nothing has raised so far.
    pub(crate) survived: Cond,
    /// The condition under which all imports in the body succeed.
    pub(crate) imported: Cond,
    /// The path at the `try`.
    pub(crate) start: Cond,
    /// The store at the start of the body.
    pub(crate) mark: Mark,
    /// The paths and changes of branches that did not reach their end. The handlers see them if these branches raised.
    pub(crate) left: Vec<(Cond, Changes)>,
    /// The paths and changes at points that certainly raise.
    pub(crate) raised: Vec<(Cond, Changes)>,
    pub(crate) catches_cuda: bool,
    pub(crate) catches_oom: bool,
    pub(crate) catches_missing: bool,
}
