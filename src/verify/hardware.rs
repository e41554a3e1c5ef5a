//! The part of the document that is about what the kernel shows of GPUs, whatever their drivers say.

use serde::{Deserialize, Serialize};

use super::family::Family;
use super::machine::NodeState;

/// A display controller on the PCI bus, as the kernel lists it without a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PciGpu {
    /// `0000:3b:00.0`.
    pub address: String,
    /// Vendor and device, in hexadecimal: `10de:20b0`.
    pub id: Option<String>,
    /// Its generation, by that number.
    pub family: Option<Family>,
    /// The kernel's driver that has it: `nvidia`, `nouveau`, `vfio-pci`.
    pub driver: Option<String>,
}

/// NVIDIA's kernel module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KernelModule {
    /// Is it in the kernel?
    pub loaded: Option<bool>,
    /// Which of the two it is, if it is loaded.
    pub flavor: Option<Flavor>,
    /// Has `nouveau`, the kernel's own driver for these GPUs, been loaded?
    pub nouveau: bool,
    /// The release of the running kernel.
    pub kernel: Option<String>,
    /// Is there a module for the running kernel?
    pub built: Option<bool>,
    /// The kernels that there is a module for.
    pub built_for: Vec<String>,
    /// The file of `modprobe`'s configuration that keeps it out.
    pub forbidden_by: Option<String>,
    /// Does the firmware only start what is signed?
    pub secure_boot: Option<bool>,
}

/// NVIDIA makes the module in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Flavor {
    /// With its source published, for Turing and later.
    Open,
    /// Without, up to Hopper.
    Proprietary,
}

/// What the kernel shows of AMD's GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Amd {
    /// Can `/dev/kfd` be opened? `null` where the system is not Linux.
    pub kfd: Option<NodeState>,
    /// The GPUs that programs of ROCm can use, by the name of their engine: `gfx942`.
    pub gpus: Vec<String>,
    /// AMD's display controllers on the PCI bus; `null` where there is no list of that bus.
    pub pci_devices: Option<u32>,
}
