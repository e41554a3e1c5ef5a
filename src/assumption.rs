//! What a finding still needs to be true, besides what its own file shows. The project's other files may refute it.

use crate::ir::FuncId;
use crate::span::{FileId, Place};

/// What a finding takes for granted. Each kind is refuted by one pass or more over the project (`analysis.rs` has the list).
///
/// A finding may have several of a kind, one for each way that leads to it: then a pass refutes the kind only if it refutes all of
/// these.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Assumption {
    /// A machine without CUDA comes this way. Refuted where what comes before, or who calls, only goes on where CUDA is
    /// (`analysis::project::reached_without_cuda`), or where only the processes of NCCL groups come (`only_in_groups`).
    CudaMissing(Way),
    /// Whoever calls the function may give something on another device for this parameter. Refuted where calls in other files say
    /// what is given (`analysis::given`).
    ParameterVaries(Parameter),
    /// Functions make their tensors and modules on the CPU unless they are told a device. Refuted where the programs that come here
    /// have set another default (`analysis::project::made_by_default`), or somebody else moves what was made (`analysis::makers`).
    DefaultDevice(ByDefault),
    /// Somebody moves the module whose method this place is in. Refuted where the project leaves the module on the CPU, or is still
    /// making it (`analysis::project::on_moved_modules`).
    ModuleMoved(Spot),
    /// The group of processes is one of NCCL, although nobody has seen it made. Refuted where the project makes another one
    /// (`analysis::groups`).
    GroupIsNccl,
    /// The function may be called where the device is MPS. Refuted where the project only calls it on other devices
    /// (`analysis::callers::off_mps`), or in NCCL groups (`analysis::project::only_in_groups`).
    RunsOnMps,
    /// The copy is made again and again. Refuted where a program makes it once (`analysis::project::copied_once`).
    RunsOften,
    /// Some caller leaves it to the function to make the tensor that is copied. Refuted where all give one
    /// (`analysis::callers::copied_instead`).
    LeftToDefault,
    /// The file was saved from a GPU. Refuted where the project has saved it from the CPU (`analysis::saved`).
    SavedFromGpu,
    /// Some caller has not switched gradients off. Refuted where all have (`analysis::project::seen_to_by_callers`).
    GradientsOn,
    /// No caller has chosen a GPU for the process before. Refuted where all have (`analysis::project::seen_to_by_callers`).
    NoGpuChosen,
}

impl Assumption {
    /// Is the other one of the same kind, whatever it is about?
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Why a finding with it is not certain, as a clause without a full stop; nothing where that is said in other words.
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

/// What two findings of one cause take for granted together. A kind that one of them does without is none: one way there that does
/// not depend on it is enough. Of a kind that both have, all must be wrong for the cause to be none.
pub fn merge(into: &mut Vec<Assumption>, other: Vec<Assumption>) {
    into.retain(|a| other.iter().any(|b| a.is_like(b)));
    for assumption in other {
        if into.iter().any(|a| a.is_like(&assumption)) && !into.contains(&assumption) {
            into.push(assumption);
        }
    }
}

/// A place in a function of a file (in its body: function 0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spot {
    /// The file.
    pub file: FileId,
    /// The function that was interpreted for itself.
    pub entry: FuncId,
    /// Where in it, in bytes from the beginning of the file.
    pub at: u32,
}

/// How a place was reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// Where it began: the call in that function which led there, or the place itself.
    pub spot: Spot,
    /// The calls, outermost first, and the place.
    pub places: Box<[Place]>,
}

/// A parameter of a function that was interpreted for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The function's file.
    pub file: FileId,
    /// The function.
    pub func: FuncId,
    /// The position in the signature, from zero.
    pub index: u16,
    /// Does the function put other things where this parameter is? Then it counts on any place, whoever calls it, and only
    /// what it works for can say that there is but one.
    pub followed: bool,
}

/// What a program can set so that what says nothing of its device is made elsewhere than on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByDefault {
    /// The default device, or the default tensor type.
    Device,
    /// The default tensor type alone: `torch.Tensor(…)` does not look at the default device.
    Type,
}

impl ByDefault {
    /// What must be set so that both are made elsewhere.
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
