//! The document: what is known of a machine. `samedevice verify --output-format json` writes it, `--machine FILE`
//! reads it, and `docs/verify.md` describes every field.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use super::family::Family;
pub use super::hardware::{Amd, Flavor, KernelModule, PciGpu};

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
    /// The stable name of the cause; `docs/verify.md` lists them.
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

/// The Python environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Python {
    /// The folder of the environment.
    pub prefix: Option<String>,
    /// The interpreter.
    pub interpreter: Option<String>,
    /// How it was found: `--python`, `samedevice` (this program is installed in it), `VIRTUAL_ENV`, `.venv`, `venv`, `env`, `.pixi/envs`,
    /// `CONDA_PREFIX`, `PATH`.
    pub found_by: Option<String>,
    /// The folders that modules are imported from, in order, without the standard library.
    pub search_path: Vec<String>,
    /// `python` on `PATH`, where that is another environment.
    pub on_path: Option<String>,
    /// The version of Python, as far as names of folders and `pyvenv.cfg` tell: `3.11`, `3.11.7`.
    #[serde(default)]
    pub version: Option<String>,
    /// What installs packages there: `pip`, `ensurepip` (pip has to be put there first), `venv` (the system's Python, which
    /// wants a virtual environment), `uv`, `uv-project`, `poetry`, `conda`, `pixi`.
    #[serde(default)]
    pub installer: Option<String>,
}

/// A PyTorch as its files tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Torch {
    /// The folder `torch`.
    pub path: String,
    /// Its version.
    pub version: Option<String>,
    /// What it was built for.
    pub build: Build,
    /// The CUDA that it was built with.
    pub cuda: Option<Version>,
    /// The HIP that it was built with.
    pub hip: Option<String>,
    /// The XPU runtime that it was built with.
    pub xpu: Option<String>,
    /// The architectures that it has code for: `sm_80`, `compute_90`.
    pub archs: Vec<String>,
    /// The version in the record of what installed it. PyTorch's own index has `2.9.1+cu126` there, PyPI `2.9.1`.
    #[serde(default)]
    pub record: Option<String>,
    /// What installed it: `pip`, `uv`, `conda`, `Poetry 2.1.3`.
    pub installer: Option<String>,
    /// conda's build string.
    pub conda_build: Option<String>,
    /// NVIDIA's libraries beside it, by the names of their packages.
    pub packages: BTreeMap<String, String>,
    /// Other installations that this one hides, by folder.
    pub shadowed: Vec<String>,
    /// What is wrong with its files, as clauses.
    pub broken: Vec<String>,
    /// What it says of itself: only with `--import`.
    #[serde(default)]
    pub imported: Option<Imported>,
}

/// What came of importing PyTorch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Imported {
    /// What stopped it, as a clause, if something did.
    pub failure: Option<String>,
    /// Python's error, its last line: `ImportError: libcupti.so.12: cannot open shared object file: …`.
    pub error: Option<String>,
    /// `torch.__version__`.
    pub version: Option<String>,
    /// `torch.version.cuda`.
    pub cuda: Option<String>,
    /// `torch.version.hip`.
    pub hip: Option<String>,
    /// `torch.cuda.is_available()`.
    pub available: Option<bool>,
    /// `torch.cuda.device_count()`.
    pub count: Option<u32>,
    /// `torch.cuda.get_arch_list()`, which is empty where CUDA is not available.
    pub archs: Vec<String>,
}

/// What a PyTorch was built for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Build {
    /// NVIDIA's GPUs.
    Cuda,
    /// AMD's GPUs, which PyTorch calls `cuda` too.
    Rocm,
    /// No CUDA and no ROCm.
    Cpu,
    /// The files do not say.
    #[default]
    Unknown,
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
