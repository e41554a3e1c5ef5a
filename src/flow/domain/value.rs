//! Abstract values, and the tables that give them identity.
//!
//! Values are small and `Copy`. Larger data is interned, so that equal data has equal numbers and a comparison of two states compares
//! words.

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
    /// A value from outside the interpreted code.
    OuterId;
    /// The description of a tensor.
    TensorId;
    /// An object on the heap.
    ObjId;
    /// An immutable sequence.
    SeqId;
    /// A function together with the frame in which it was defined.
    ClosureId;
    /// A method with its receiver.
    BoundId;
    /// The reason why a value is on its device; 0 means "no reason known".
    OriginId;
    /// An activation of a function.
    FrameId;
}

/// The origin for "no reason known".
pub const NO_ORIGIN: OriginId = OriginId(0);

/// Where a tensor is, in one world.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Device {
    /// Host memory.
    Cpu,
    /// A CUDA device; without an index, the current one.
    Cuda(Option<u32>),
    /// A CUDA device with an unknown index.
    CudaSome,
    /// No storage at all.
    Meta,
    /// Another accelerator.
    Other(Backend),
    /// The device that this outside value names (a `device` parameter, `args.device`).
    Named(OuterId),
    /// The device on which this outside value is (a tensor parameter, the module `self`).
    Of(OuterId),
    /// Unknown.
    Unknown,
}

impl Device {
    /// Whether the device is certainly an accelerator.
    pub fn is_accelerator(self) -> bool {
        matches!(self, Self::Cuda(_) | Self::CudaSome | Self::Other(_))
    }
}

/// The kind of a host value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Host {
    Number,
    /// The global rank: the number of a process among the processes on all machines.
    Rank,
    /// A GPU number that ignores `CUDA_VISIBLE_DEVICES`.
    PhysicalGpu,
    Text,
    Array,
    /// An array that is certainly 64-bit floating point, or one of its elements.
    Doubles,
    /// A number or an array: the result of a NumPy operation whose operands may be either.
    Numbers,
    /// The index of the current CUDA device.
    CurrentGpu,
    /// An amount of device memory, as measured on the machine.
    Memory,
    Other,
}

/// An abstract value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Value {
    /// Unbound: a variable before its assignment, or a missing attribute.
    Absent,
    /// Unknown.
    Unknown,
    /// `None`
    None,
    /// A truth value.
    Bool(Cond),
    /// A known integer.
    Int(i64),
    /// A known string. The origin says where it was written, if it looks like a device.
    Str(Sym, OriginId),
    /// A host value that is not a tensor: a number, a string, a NumPy array.
    Host(Host),
    /// A slice object.
    Slice,
    /// A value from outside, with identity.
    Outer(OuterId),
    /// A dotted name outside the project: `torch.nn.functional.relu`.
    External(Sym),
    /// A `torch.device`, or a string that names a device that depends on the world.
    Device(Dd),
    /// A tensor.
    Tensor(TensorId),
    /// An object with identity and state.
    Object(ObjId),
    /// A tuple, or the current content of a list.
    Seq(SeqId),
    /// Any number of values like the given one (interned).
    Many(u32),
    /// A function of the project.
    Closure(ClosureId),
    /// A method with its receiver.
    Bound(BoundId),
    /// A class of the project.
    Class(ClassKey),
    /// A module of the project.
    Module(ModIdx),
    /// One of several values, depending on conditions.
    Choice(Dd),
}

/// The role of a tensor in a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Role {
    Plain,
    Parameter,
    Buffer,
    /// A tensor with `requires_grad` set.
    Leaf,
    /// A tensor with `requires_grad` cleared.
    Constant,
    /// A parameter or leaf after a move to another device. It is no longer a leaf.
    Copy,
    /// An unknown value that was moved as a whole. Its attributes may be anything.
    Whole,
}

impl Role {
    /// Whether `.to()` of the module moves it.
    pub fn registered(self) -> bool {
        matches!(self, Self::Parameter | Self::Buffer)
    }
}

/// The known facts about a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tensor {
    /// Its device.
    pub device: Dd,
    /// Its number of dimensions.
    pub dims: Dims,
    /// Its role in the module that holds it.
    pub role: Role,
    /// Whether it is certainly a tensor. Otherwise it may be, for example, a module from outside.
    pub certain: bool,
    /// Its size in bytes, if the source determines it.
    pub bytes: Option<u64>,
    /// The condition under which its elements are certainly 64-bit floating point.
    pub double: Cond,
}

/// A function of the project, with the frame in which it was defined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Closure {
    /// The file.
    pub module: ModIdx,
    /// The function.
    pub func: FuncId,
    /// For nested functions: the frame of the enclosing function.
    pub frame: Option<FrameId>,
}

/// A method with its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bound {
    /// The receiver.
    pub receiver: Value,
    /// The function, if it is in the project.
    pub function: Option<ClosureId>,
    /// The name of the method.
    pub name: Sym,
}
