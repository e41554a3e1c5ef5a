//! Abstract values, and the tables that give them identity.
//!
//! Values are small and `Copy`; what does not fit is interned, so that equal things are equal numbers and
//! comparing two states is comparing words.

mod origin;
mod outside;
mod tables;

pub use origin::{Origin, Reason};
pub use outside::{Outer, OuterKey};
pub use tables::{Interner, Tables};

use crate::flow::domain::diagram::{Cond, Dd};
use crate::flow::domain::dims::Dims;
use crate::ir::FuncId;
use crate::link::{ClassKey, ModIdx};
use crate::sym::Sym;
use crate::world::Backend;

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
