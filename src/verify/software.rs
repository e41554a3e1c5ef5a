//! The part of the document that is about Python and PyTorch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::machine::Version;

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
