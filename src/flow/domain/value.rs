//! Abstract values, and the tables that give them identity.
//!
//! Values are small and `Copy`; what does not fit is interned, so that equal things are equal numbers and
//! comparing two states is comparing words.

use std::hash::Hash;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::flow::domain::diagram::{Cond, Dd};
use crate::flow::domain::dims::Dims;
use crate::ir::{ExprId, FuncId};
use crate::link::{ClassKey, ModIdx};
use crate::span::Place;
use crate::sym::Sym;
use crate::world::Backend;

/// An append-only table that gives equal things equal numbers.
pub struct Interner<T> {
    items: Vec<T>,
    ids: FxHashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        // Enough for most files.
        const USUAL: usize = 56;
        Self {
            items: Vec::with_capacity(USUAL),
            ids: FxHashMap::with_capacity_and_hasher(USUAL, FxBuildHasher),
        }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// The number of the thing.
    pub fn add(&mut self, item: T) -> u32 {
        if let Some(&id) = self.ids.get(&item) {
            return id;
        }
        let id = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        self.items.push(item.clone());
        self.ids.insert(item, id);
        id
    }

    /// The thing with this number.
    pub fn get(&self, id: u32) -> &T {
        &self.items[id as usize]
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);
    )* };
}

ids! {
    /// Something that came from outside what is interpreted.
    OuterId;
    /// A tensor's description.
    TensorId;
    /// An object on the heap.
    ObjId;
    /// An immutable sequence.
    SeqId;
    /// A function with the frame it was made in.
    ClosureId;
    /// A method with its receiver.
    BoundId;
    /// Why something is where it is; 0 means "no reason known".
    OriginId;
    /// A function's activation.
    FrameId;
}

/// No reason known.
pub const NO_ORIGIN: OriginId = OriginId(0);

/// A place for tensors, in one world.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Device {
    /// Host memory.
    Cpu,
    /// A CUDA device; without an index the current one.
    Cuda(Option<u32>),
    /// A CUDA device whose index is not known.
    CudaSome,
    /// No storage at all.
    Meta,
    /// Another accelerator.
    Other(Backend),
    /// The device that this outside thing names (a `device` parameter, `args.device`).
    Named(OuterId),
    /// The device on which this outside thing lives (a tensor parameter, the module `self`).
    Of(OuterId),
    /// Not known.
    Unknown,
}

impl Device {
    /// Is it certainly not host memory?
    pub fn is_accelerator(self) -> bool {
        matches!(self, Self::Cuda(_) | Self::CudaSome | Self::Other(_))
    }
}

/// What kind of host value it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Host {
    Number,
    /// The number of a process among those of all machines.
    Rank,
    /// A GPU by the number it has outside of `CUDA_VISIBLE_DEVICES`.
    PhysicalGpu,
    Text,
    Array,
    /// An array that is certainly of 64-bit floating point, or a number out of one.
    Doubles,
    /// A number, or an array of them: what NumPy makes of something of which nobody knows which it is.
    Numbers,
    /// The number of the CUDA device in use.
    CurrentGpu,
    /// An amount of device memory, as the machine has it.
    Memory,
    Other,
}

/// An abstract value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Value {
    /// Not bound (a variable before its assignment, an attribute that is not there).
    Absent,
    /// Nothing is known.
    Unknown,
    /// `None`
    None,
    /// A truth value.
    Bool(Cond),
    /// A known integer.
    Int(i64),
    /// A known string, with where it was written if it looks like a device.
    Str(Sym, OriginId),
    /// Something of the host that is no tensor: a number, a text, a NumPy array.
    Host(Host),
    /// A slice object.
    Slice,
    /// Something from outside, with an identity.
    Outer(OuterId),
    /// A dotted name outside the project: `torch.nn.functional.relu`.
    External(Sym),
    /// A `torch.device`, or a string that names one of several.
    Device(Dd),
    /// A tensor.
    Tensor(TensorId),
    /// Something with identity and state.
    Object(ObjId),
    /// A tuple, or the current content of a list.
    Seq(SeqId),
    /// Any number of values like this one (interned).
    Many(u32),
    /// A function of the project.
    Closure(ClosureId),
    /// A method with its receiver.
    Bound(BoundId),
    /// A class of the project.
    Class(ClassKey),
    /// A module of the project.
    Module(ModIdx),
    /// One of several values, by condition.
    Choice(Dd),
}

/// What a tensor is to a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Role {
    Plain,
    Parameter,
    Buffer,
    /// It was told to keep gradients.
    Leaf,
    /// It was told to keep none.
    Constant,
    /// A parameter or leaf after a move to another device: no leaf any more.
    Copy,
    /// Something that was moved in one piece, of which nobody knows what it is: its attributes may be anything.
    Whole,
}

impl Role {
    /// Does a module move it?
    pub fn registered(self) -> bool {
        matches!(self, Self::Parameter | Self::Buffer)
    }
}

/// What is known of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tensor {
    /// Where it lives.
    pub device: Dd,
    /// How many dimensions it has.
    pub dims: Dims,
    /// What it is to a module that holds it.
    pub role: Role,
    /// Is it certainly a tensor (and not, say, a module that came from outside)?
    pub certain: bool,
    /// Number of bytes, when the source says it.
    pub bytes: Option<u64>,
    /// When its numbers are certainly of 64-bit floating point.
    pub double: Cond,
}

/// What an outside thing is, by how it was reached.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OuterKey {
    /// A parameter of a function that is interpreted for itself.
    Param {
        /// The file.
        module: ModIdx,
        /// The function.
        func: FuncId,
        /// Which parameter.
        index: u16,
    },
    /// The instance that a method belongs to.
    Receiver {
        /// Its class.
        class: ClassKey,
    },
    /// `base.name`
    Attr {
        /// The object.
        base: OuterId,
        /// The attribute.
        name: Sym,
    },
    /// `base[key]`, for a key that is known; otherwise one of its elements.
    Item {
        /// The container.
        base: OuterId,
        /// The key.
        key: Option<Value>,
    },
    /// The result of an unknown call, by activation and pass.
    Result {
        /// The file.
        module: ModIdx,
        /// The expression.
        expr: ExprId,
        /// The activation.
        frame: FrameId,
        /// The pass of the loops around it.
        pass: u32,
    },
    /// One of several outside things, of which there are too many to be kept apart.
    Joined {
        /// The condition.
        cond: Cond,
        /// Where it holds.
        then: Dd,
        /// Where it does not.
        orelse: Dd,
    },
    /// An attribute of an object of the project that nobody here has seen set.
    Field {
        /// The object.
        object: ObjId,
        /// The attribute.
        name: Sym,
    },
    /// An external name's attribute or value, such as `os.environ`.
    External(Sym),
    /// A command-line argument (its parser, its destination). All parsers made in one place parse the one command line.
    Argument {
        /// Where the parser was made.
        parser: Place,
        /// Where it was given a list of its own to parse instead.
        list: Option<Place>,
        /// The destination.
        name: Sym,
    },
}

/// What is known of an outside thing.
#[derive(Clone, Debug)]
pub struct Outer {
    /// How it was reached.
    pub key: OuterKey,
    /// As the source has it, for messages.
    pub text: String,
    /// The parameter's annotation or the method's role says: a tensor.
    pub tensor: bool,
    /// Its name or annotation says that it is a device.
    pub device: bool,
    /// It is given by whoever calls the function, so it is wherever they want it: a parameter, a part of one,
    /// the receiver.
    pub varies: bool,
    /// It lives with the module that the method belongs to (an input of `forward`).
    pub with: Option<OuterId>,
    /// The value that a command-line option has unless the user says otherwise.
    pub default: Option<Value>,
}

impl Outer {
    /// Something of which only this is known: how it was reached, and its text for messages.
    pub fn new(key: OuterKey, text: impl Into<String>) -> Self {
        let (text, with, default) = (text.into(), None, None);
        Self { key, text, tensor: false, device: false, varies: false, with, default }
    }
}

/// A function of the project, with the frame that it was made in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Closure {
    /// The file.
    pub module: ModIdx,
    /// The function.
    pub func: FuncId,
    /// The frame of the function around it, for nested functions.
    pub frame: Option<FrameId>,
}

/// A method with its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bound {
    /// The receiver.
    pub receiver: Value,
    /// The function, if the project has it.
    pub function: Option<ClosureId>,
    /// The name.
    pub name: Sym,
}

/// Why something is where it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Origin {
    /// Where that was decided.
    pub place: Place,
    /// How.
    pub reason: Reason,
    /// What it was before, or the value it was taken from.
    pub from: OriginId,
}

/// How a device was decided.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// Nothing: the entry for "no reason known".
    None,
    /// A factory without `device=`.
    Default,
    /// A factory or constructor with an explicit device.
    Made,
    /// `from_numpy`, a legacy constructor: always on the CPU.
    Host,
    /// `torch.Tensor(…)`: on the CPU unless the default tensor type is another, whatever the default device is.
    Typed,
    /// `.to()`, `.cuda()`, `.cpu()`.
    Moved,
    /// A device literal.
    Literal,
    /// A parameter or another outside value.
    Given,
    /// A batch of a data loader.
    Batch,
    /// A module's constructor.
    Module,
    /// `torch.load`.
    Loaded,
    /// Put into pinned memory.
    Pinned,
    /// Copied to the host without waiting.
    Unwaited,
    /// Kept by a module's constructor where `.to()` does not see it: a plain attribute, a list.
    Kept,
    /// Kept in an attribute by another method of a module, on the CPU then: a cache that outlives the call.
    Stored,
    /// The device is the default of a parameter that this call leaves out.
    Defaulted,
    /// Made of tensors that do not go together, where that has been told. No step of its own.
    Refused,
    /// Made a text: `device.type`, `str(device)`. No step of its own.
    Text,
    /// Made a number, -1 for the CPU: `x.get_device()`. No step of its own.
    Number,
}

/// All tables of a run of the interpreter.
#[derive(Default)]
pub struct Tables {
    /// Tensors.
    pub tensors: Interner<Tensor>,
    /// Sequences.
    pub seqs: Interner<Box<[Value]>>,
    /// Values behind diagrams' leaves and [`Value::Many`].
    pub values: Interner<Value>,
    /// Devices behind diagrams' leaves, with their origins.
    pub places: Interner<(Device, OriginId)>,
    /// Closures.
    pub closures: Interner<Closure>,
    /// Bound methods.
    pub bounds: Interner<Bound>,
    /// Origins. Number 0 is "no reason known".
    pub origins: Interner<Origin>,
    /// Outside things.
    pub outers: Vec<Outer>,
    /// Their numbers.
    pub outer_ids: FxHashMap<OuterKey, OuterId>,
}

impl Tables {
    /// The outside thing with this key, made by `new` when it is met for the first time.
    pub fn outer(&mut self, key: OuterKey, new: impl FnOnce() -> Outer) -> OuterId {
        if let Some(&id) = self.outer_ids.get(&key) {
            return id;
        }
        let id = OuterId(u32::try_from(self.outers.len()).unwrap_or(u32::MAX));
        self.outers.push(new());
        self.outer_ids.insert(key, id);
        id
    }

    /// The one with this key, if there is one.
    pub fn known_outer(&self, key: &OuterKey) -> Option<OuterId> {
        self.outer_ids.get(key).copied()
    }

    /// What is known of it.
    pub fn get_outer(&self, id: OuterId) -> &Outer {
        &self.outers[id.0 as usize]
    }

    /// An interned sequence.
    pub fn seq(&mut self, items: &[Value]) -> SeqId {
        SeqId(self.seqs.add(items.into()))
    }
}
