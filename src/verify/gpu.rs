//! The part of the document that is about the visible GPUs.

use serde::{Deserialize, Serialize};

use super::machine::Version;

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Device {
    /// Its number in PyTorch: `cuda:INDEX`.
    pub index: u32,
    /// Its number where nothing is hidden.
    pub physical_index: Option<u32>,
    /// Its name.
    pub name: String,
    /// Its UUID; only if asked for, as it identifies the machine.
    pub uuid: Option<String>,
    /// Its compute capability.
    pub capability: Option<Version>,
    /// All of its memory that programs can have, in bytes: what `torch.cuda` calls `total_memory`.
    pub total_bytes: Option<u64>,
    /// All of its memory as `nvidia-smi` counts it, in bytes, to the MiB: what the driver keeps for itself, too.
    pub nvidia_smi_total_bytes: Option<u64>,
    /// What is free of it, in bytes: after a context was made, if the depth is `run`; else as `nvidia-smi` says.
    pub free_bytes: Option<u64>,
    /// Who may use it.
    pub compute_mode: Option<ComputeMode>,
    /// Is it divided into instances?
    pub mig: Option<bool>,
    /// Does it share the host's memory?
    pub integrated: Option<bool>,
    /// Its address on the PCI bus.
    pub pci: Option<String>,
    /// Number formats that the hardware computes with.
    pub dtypes: Option<Dtypes>,
    /// Has the installed PyTorch code for it?
    pub in_build: Option<bool>,
    /// Who holds its memory, as far as `nvidia-smi` tells.
    pub processes: Vec<Process>,
    /// What came of using it: only with `run`.
    pub checks: Vec<Check>,
    /// Allocations that were tried: only with `--memory`.
    pub allocations: Vec<Allocation>,
}

/// Who may use a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ComputeMode {
    /// Everybody.
    Default,
    /// Nobody.
    Prohibited,
    /// One process at a time.
    ExclusiveProcess,
}

/// Number formats that a device computes with. From the compute capability, by NVIDIA's table "Arithmetic
/// instructions" in the CUDA C++ Programming Guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Dtypes {
    /// `torch.float64`.
    pub float64: bool,
    /// `torch.float16`.
    pub float16: bool,
    /// `torch.bfloat16` in hardware; PyTorch emulates it on older devices.
    pub bfloat16: bool,
    /// `torch.float8_e4m3fn` and `torch.float8_e5m2` in matrix products.
    pub float8: bool,
}

impl Dtypes {
    /// Of a device with this compute capability.
    pub fn of(capability: Version) -> Self {
        Self {
            float64: capability >= Version::new(1, 3),
            float16: capability >= Version::new(5, 3),
            bfloat16: capability >= Version::new(8, 0),
            float8: capability >= Version::new(8, 9),
        }
    }
}

/// A process on a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its program.
    pub name: String,
    /// The memory that it holds, in bytes.
    pub used_bytes: Option<u64>,
}

/// Something that was tried on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Check {
    /// `context`, `allocation`, `copy`, `kernel`, `peer-copy`.
    pub name: String,
    /// Did it work?
    pub ok: bool,
    /// The driver's error code.
    pub code: Option<i32>,
    /// What was seen.
    pub detail: String,
}

/// An allocation that was tried and given back at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Allocation {
    /// Its size.
    pub bytes: u64,
    /// Did it succeed?
    pub ok: bool,
    /// Why not.
    pub detail: String,
}

/// May one device read another's memory?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Peer {
    /// The one that reads.
    pub from: u32,
    /// The other.
    pub to: u32,
    /// May it?
    pub direct: bool,
}
