//! The document: what is known of a machine. `samedevice verify --output-format json` writes it, `--machine FILE`
//! reads it, and `docs/verify-report.md` describes every field.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use super::family::Family;
pub use super::gpu::{Allocation, Check, ComputeMode, Device, Dtypes, Peer, Process};
pub use super::hardware::{Amd, Flavor, KernelModule, PciGpu};
pub use super::software::{Build, Imported, Python, Torch};

/// The version of the document. It goes up when a field changes its meaning or goes away, not when one comes.
pub const SCHEMA: u32 = 1;

/// Everything that is known of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    /// The version of the document: 1.
    pub schema: u32,
    /// The version of the program that wrote it.
    pub samedevice: String,
    /// How far the probe went.
    pub depth: Depth,
    /// All in all.
    pub status: Status,
    /// What the worlds of findings ask.
    pub worlds: Worlds,
    /// What is wrong, what to do first at the top.
    pub problems: Vec<Problem>,
    /// The operating system.
    pub system: System,
    /// The CUDA driver.
    pub driver: Driver,
    /// Which of the devices can be seen.
    pub visible: Visible,
    /// The visible devices, in CUDA's order.
    pub devices: Vec<Device>,
    /// Which devices reach each other's memory.
    pub peers: Vec<Peer>,
    /// The Python environment.
    pub python: Python,
    /// The PyTorch that `import torch` would take in that environment.
    pub torch: Option<Torch>,
}

/// How far the probe goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Depth {
    /// Questions only: no context is made on a GPU, no running job is disturbed.
    Look,
    /// A context, an allocation, copies and a kernel besides.
    Run,
}

/// The whole in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// PyTorch can use an accelerator here.
    Usable,
    /// It cannot, and it is known why.
    Problem,
    /// It could not be found out.
    Unknown,
}

/// Does something hold on the machine?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// It could not be found out.
    Unknown,
}

/// An answer and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Answer {
    /// The answer.
    pub holds: Holds,
    /// The reason, as a clause.
    pub because: String,
}

impl Answer {
    /// An answer with its reason.
    pub fn new(holds: Holds, because: impl Into<String>) -> Self {
        Self { holds, because: because.into() }
    }
}

/// What the worlds of findings ask of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Worlds {
    /// Would `torch.cuda.is_available()` be true?
    pub cuda: Answer,
    /// What `torch.cuda.device_count()` would be.
    pub gpus: Option<u32>,
    /// The other back ends, by PyTorch's name of the device type.
    pub backends: BTreeMap<String, Answer>,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Gravity {
    /// The GPU cannot be used.
    Error,
    /// It can, but something will go wrong or is not what was meant.
    Warning,
    /// Worth knowing.
    Note,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Problem {
    /// The stable name of the cause; `docs/verify-causes.md` lists them.
    pub id: String,
    /// How bad it is.
    pub gravity: Gravity,
    /// The cause, as a clause.
    pub cause: String,
    /// What was seen that shows it.
    pub evidence: Vec<String>,
    /// The message with which programs end because of it, as people search for it.
    #[serde(default)]
    pub message: Option<String>,
    /// What to do, as a clause in the imperative.
    pub remedy: String,
    /// The command that does it, where one does.
    pub command: Option<String>,
}

/// The operating system and what it shows of NVIDIA's hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct System {
    /// `linux`, `macos`, `windows`.
    pub os: String,
    /// `x86_64`, `aarch64`.
    pub arch: String,
    /// Is it Linux under Windows?
    pub wsl: bool,
    /// The kind of container that this runs in, if it does.
    pub container: Option<String>,
    /// NVIDIA's display controllers on the PCI bus; `null` where there is no list of that bus.
    pub nvidia_pci_devices: Option<u32>,
    /// NVIDIA's device files; in WSL `/dev/dxg`, on a Jetson `/dev/nvmap` besides.
    pub device_nodes: Vec<Node>,
    /// What `nvidia-smi` said if it failed.
    pub nvidia_smi_error: Option<String>,
    /// The distribution, or the version of macOS.
    #[serde(default)]
    pub distribution: Option<String>,
    /// `LD_LIBRARY_PATH`, if it is set.
    #[serde(default)]
    pub library_path: Option<String>,
    /// NVIDIA's display controllers on the PCI bus, by the system's list of such devices, or by their numbers: `10de:2684`.
    #[serde(default)]
    pub gpu_names: Vec<String>,
    /// Where GPUs are had in a particular way: `colab`, `kaggle`, `slurm`, `jetson`, `nixos`.
    #[serde(default)]
    pub surroundings: Vec<String>,
    /// NVIDIA's display controllers on the PCI bus, by address.
    #[serde(default)]
    pub nvidia_gpus: Vec<PciGpu>,
    /// NVIDIA's kernel module.
    #[serde(default)]
    pub kernel_module: KernelModule,
    /// What the kernel shows of AMD's GPUs.
    #[serde(default)]
    pub amd: Amd,
}

/// A device file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Node {
    /// `/dev/nvidiactl`.
    pub path: String,
    /// Can it be opened?
    pub state: NodeState,
}

/// What came of opening a device file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// It opens.
    Usable,
    /// It is not there.
    Missing,
    /// The file's permissions forbid it (EACCES).
    Denied,
    /// The container's device rules forbid it (EPERM).
    Forbidden,
    /// Something else.
    Failed,
}

/// The CUDA driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Driver {
    /// What came of asking it.
    pub outcome: Outcome,
    /// The file that `libcuda.so.1` is.
    pub loaded_from: Option<String>,
    /// Another driver library that programs may find first under another name.
    pub other_library: Option<String>,
    /// Why the library could not be loaded, in the loader's words.
    pub load_error: Option<String>,
    /// The driver's version, such as 550.54.14: that of the kernel module.
    pub version: Option<String>,
    /// The version in the library's file name.
    pub library_version: Option<String>,
    /// The newest CUDA that the driver can run.
    pub cuda: Option<Version>,
}

/// What came of asking the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    /// It answered.
    Answered,
    /// There is no library.
    NoLibrary,
    /// A function of it failed.
    Failed {
        /// The function.
        call: String,
        /// The error code.
        code: i32,
        /// The code's name, without `CUDA_ERROR_`.
        name: String,
    },
    /// The library lacks a function that every driver has.
    MissingFunction {
        /// The function.
        call: String,
    },
    /// It brought its process down.
    Crashed {
        /// What was being done.
        during: String,
        /// How the process ended.
        how: String,
    },
    /// It did not answer in time.
    TimedOut {
        /// What was being done.
        during: String,
        /// The limit in seconds.
        seconds: u64,
    },
    /// The probe itself could not be started.
    NotProbed {
        /// Why.
        reason: String,
    },
}

/// Which of the devices can be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Visible {
    /// `CUDA_VISIBLE_DEVICES`, if it is set.
    pub value: Option<String>,
    /// `CUDA_DEVICE_ORDER`, if it is set.
    pub order: Option<String>,
    /// How many devices CUDA shows.
    pub count: Option<u32>,
    /// How many it shows without the variable.
    pub physical: Option<u32>,
    /// Why the variable hides devices, as a clause, if it does.
    pub because: Option<String>,
}

/// Two numbers: of a CUDA version or a compute capability. In JSON a string, `"12.4"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

impl Version {
    /// Of its two numbers.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

impl FromStr for Version {
    type Err = String;

    /// Takes what follows the second number, too: `12.4.1` is 12.4. `13` is 13.0.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.trim().split('.');
        let major = parts.next().and_then(|part| part.parse().ok());
        match (major, parts.next().map_or(Some(0), |part| part.parse().ok())) {
            (Some(major), Some(minor)) => Ok(Self { major, minor }),
            _ => Err(format!("`{text}` is not a version such as 12.4")),
        }
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
