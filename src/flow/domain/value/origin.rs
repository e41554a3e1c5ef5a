//! Origins: why a value is on its device.

use super::OriginId;
use crate::span::Place;

/// One reason why a value is on its device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Origin {
    /// Where the device was decided.
    pub place: Place,
    /// How it was decided.
    pub reason: Reason,
    /// The previous origin: that of the value before this step, or of the value that it was taken from.
    pub from: OriginId,
}

/// How a device was decided.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// No reason: the entry for "no reason known".
    None,
    /// A factory without `device=`.
    Default,
    /// A factory or constructor with an explicit device.
    Made,
    /// `from_numpy`, a legacy constructor: always on the CPU.
    Host,
    /// `torch.Tensor(…)`: on the CPU, unless the program sets another default tensor type. Ignores the default device.
    Typed,
    /// `.to()`, `.cuda()`, `.cpu()`.
    Moved,
    /// A device literal.
    Literal,
    /// A parameter or another outside value decides it.
    Given,
    /// A batch of a data loader.
    Batch,
    /// A module's constructor.
    Module,
    /// `torch.load`.
    Loaded,
    /// Put into pinned memory.
    Pinned,
    /// Copied to the host with a non-blocking copy.
    Unwaited,
    /// A module's constructor keeps it where `.to()` does not find it: in a plain attribute or a list.
    Kept,
    /// Another method of a module keeps it in an attribute, on the CPU: a cache that outlives the call.
    Stored,
    /// The device is the default of a parameter that this call omits.
    Defaulted,
    /// Computed from tensors on different devices, which is already reported. Not shown as a step.
    Refused,
    /// Converted to a string: `device.type`, `str(device)`. Not shown as a step.
    Text,
    /// Converted to a number, -1 for the CPU: `x.get_device()`. Not shown as a step.
    Number,
}
