//! Why something is where it is.

use super::OriginId;
use crate::span::Place;

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
