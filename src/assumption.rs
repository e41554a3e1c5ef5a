//! Assumptions: what must be true for a finding, in addition to the code of its own file. The project's other files may refute it.

use crate::ir::FuncId;
use crate::span::{FileId, Place};

/// An assumption of a finding. One or more passes over the project refute each kind (`analysis.rs` has the list).
///
/// A finding may have several of a kind, one for each path to it. Then a pass removes the finding only if it refutes all of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Assumption {
    /// A machine without CUDA takes this path. Refuted if earlier code or the callers stop on such a machine
    /// (`analysis::refuters::reached_without_cuda`), or if only processes of NCCL groups reach the place (`only_in_groups`).
    CudaMissing(Way),
    /// A caller may pass a value on another device for this parameter. Refuted by calls in other files (`analysis::given`).
    ParameterVaries(Parameter),
    /// Functions create tensors and modules on the CPU unless a call specifies a device. Refuted if the programs that reach the place set
    /// another default (`analysis::refuters::made_by_default`), or if other code moves the new object (`analysis::makers`).
    DefaultDevice(ByDefault),
    /// A program moves the module whose method contains this place. Refuted if the project leaves the module on the CPU, or if the place
    /// only runs while the module is constructed (`analysis::refuters::on_moved_modules`).
    ModuleMoved(Spot),
    /// The process group uses NCCL, although its creation is not visible. Refuted if the project creates another kind of group
    /// (`analysis::groups`).
    GroupIsNccl,
    /// The function may be called where the device is MPS. Refuted if the project only calls it for other devices
    /// (`analysis::callers::off_mps`), or only in NCCL groups (`analysis::refuters::only_in_groups`).
    RunsOnMps,
    /// The copy is made repeatedly. Refuted if a program makes it once (`analysis::refuters::copied_once`).
    RunsOften,
    /// A caller omits the argument, so the function creates the tensor that it copies. Refuted if all callers pass one
    /// (`analysis::callers::copied_instead`).
    LeftToDefault,
    /// The file was saved from a GPU. Refuted if the project saved it from the CPU (`analysis::saved`).
    SavedFromGpu,
    /// A caller has not switched gradients off. Refuted if all callers have (`analysis::refuters::seen_to_by_callers`).
    GradientsOn,
    /// Processes other than the first reach this place. Refuted if it, or all its callers, let only the first process pass
    /// (`analysis::refuters::seen_to_by_callers`).
    SeveralProcesses,
    /// No caller has chosen a GPU for the process. Refuted if all callers have (`analysis::refuters::seen_to_by_callers`).
    NoGpuChosen,
}

impl Assumption {
    /// Are the two of the same kind?
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Why a finding with this assumption is not certain, as a clause without a full stop. `None` if other code words the reason.
    pub const fn doubt(&self) -> Option<&'static str> {
        match self {
            Self::DefaultDevice(ByDefault::Device) => Some("no program calls `torch.set_default_device`"),
            Self::DefaultDevice(ByDefault::Type) => Some("no program calls `torch.set_default_tensor_type`"),
            Self::ModuleMoved(_) => Some("a program moves the module to another device"),
            Self::GroupIsNccl => Some("the process group uses NCCL"),
            _ => None,
        }
    }
}

/// Merges the assumptions of two findings with one cause into `into`. A kind is kept only if both findings have it, because a path without
/// the assumption is enough. Of a kind that both have, all assumptions are kept: the cause is only refuted if all are.
pub fn merge(into: &mut Vec<Assumption>, other: Vec<Assumption>) {
    into.retain(|a| other.iter().any(|b| a.is_like(b)));
    for assumption in other {
        if into.iter().any(|a| a.is_like(&assumption)) && !into.contains(&assumption) {
            into.push(assumption);
        }
    }
}

/// A place in a function, or in the body of a file (function 0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spot {
    /// The file.
    pub file: FileId,
    /// The entry point that was interpreted.
    pub entry: FuncId,
    /// The position, in bytes from the beginning of the file.
    pub at: u32,
}

/// The path to a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// Its start: the call in the entry point that leads there, or the place itself.
    pub spot: Spot,
    /// The calls, the outermost first, and then the place.
    pub places: Box<[Place]>,
}

/// A parameter of an entry point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The function's file.
    pub file: FileId,
    /// The function.
    pub func: FuncId,
    /// Its position in the signature, from zero.
    pub index: u16,
    /// Whether the function moves other values to the device of this parameter. Such a function is written for any device, so its calls
    /// cannot refute the finding. Only proof that the function always works on the CPU can.
    pub followed: bool,
}

/// The setting of a program that changes where objects without an explicit device are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByDefault {
    /// Either the default device or the default tensor type.
    Device,
    /// Only the default tensor type: `torch.Tensor(…)` ignores the default device.
    Type,
}

impl ByDefault {
    /// The setting that changes the device of both.
    pub fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Type }
    }
}

#[cfg(test)]
mod tests {
    use super::{Assumption, ByDefault, merge};

    fn merged(mut a: Vec<Assumption>, b: Vec<Assumption>) -> Vec<Assumption> {
        merge(&mut a, b);
        a
    }

    #[test]
    fn what_one_way_does_without_is_not_assumed() {
        let both = vec![Assumption::RunsOften, Assumption::GroupIsNccl];
        assert_eq!(merged(both, vec![Assumption::RunsOften]), [Assumption::RunsOften]);
        assert_eq!(merged(Vec::new(), vec![Assumption::RunsOften]), []);
    }

    #[test]
    fn what_both_assume_must_be_wrong_for_both() {
        let [device, by_type] = [ByDefault::Device, ByDefault::Type].map(Assumption::DefaultDevice);
        assert_eq!(merged(vec![device.clone()], vec![by_type.clone()]), [device.clone(), by_type]);
        assert_eq!(merged(vec![device.clone()], vec![device.clone()]), [device]);
    }
}
