//! What the operating system shows of NVIDIA's hardware and of itself, read as files.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::machine::{Node, NodeState, System};
use super::{amd, kernel, pci, surroundings};
use crate::source::read;

/// The folder in which `/proc`, `/dev` and the like are looked for, instead of `/`: for tests.
const ROOT: &str = "SAMEDEVICE_SYSTEM_ROOT";
/// The file through which WSL has the GPU.
pub const WSL_NODE: &str = "/dev/dxg";
/// The file of the memory that a Jetson's GPU shares with the processor.
const JETSON_NODE: &str = "/dev/nvmap";

/// Where the system's files are.
#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
}

impl Files {
    /// Of this system.
    pub fn new() -> Self {
        Self { root: std::env::var_os(ROOT).map_or_else(|| PathBuf::from("/"), PathBuf::from) }
    }

    /// The file that has this absolute path.
    pub fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of the file with this absolute path; none, if there is none.
    pub fn text(&self, path: &str) -> String {
        read::text(&self.at(path)).unwrap_or_default()
    }

    /// Is the file in this folder, given with its absolute path?
    pub fn below(&self, file: &str, folder: &str) -> bool {
        Path::new(file).starts_with(self.at(folder)) || Path::new(file).starts_with(folder)
    }

    /// What can be seen.
    pub fn system(&self) -> System {
        let wsl = self.text("/proc/version").to_ascii_lowercase().contains("microsoft");
        let nvidia_gpus = pci::gpus(self, pci::NVIDIA);
        let surroundings = surroundings::of(self);
        let jetson = surroundings.iter().any(|name| name == surroundings::JETSON);
        // Through which WSL and the integrated GPU of a Jetson are had.
        let more = [wsl.then_some(WSL_NODE), jetson.then_some(JETSON_NODE)];
        System {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            wsl,
            container: self.container(),
            nvidia_pci_devices: nvidia_gpus.as_ref().and_then(|gpus| u32::try_from(gpus.len()).ok()),
            device_nodes: self.nodes(more.into_iter().flatten()),
            nvidia_smi_error: None,
            surroundings,
            nvidia_gpus: nvidia_gpus.unwrap_or_default(),
            kernel_module: kernel::module(self),
            amd: amd::seen(self),
            ..System::default()
        }
    }

    /// The version of the driver's kernel module, such as 550.54.14.
    pub fn kernel_module(&self) -> Option<String> {
        let text = self.text("/proc/driver/nvidia/version");
        let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
        line.split_whitespace().find(|word| is_driver_version(word)).map(str::to_owned)
    }

    fn container(&self) -> Option<String> {
        if self.at("/.dockerenv").exists() {
            return Some("docker".to_owned());
        }
        if self.at("/run/.containerenv").exists() {
            return Some("podman".to_owned());
        }
        for (variable, kind) in [
            ("KUBERNETES_SERVICE_HOST", "kubernetes"),
            ("APPTAINER_CONTAINER", "apptainer"),
            ("SINGULARITY_CONTAINER", "singularity"),
        ] {
            if std::env::var_os(variable).is_some() {
                return Some(kind.to_owned());
            }
        }
        let groups = self.text("/proc/1/cgroup");
        ["docker", "kubepods", "containerd", "libpod", "lxc"]
            .into_iter()
            .find(|kind| groups.contains(kind))
            .map(str::to_owned)
    }

    /// The device files that every program on the GPU opens, then one for each GPU, then these.
    fn nodes(&self, more: impl Iterator<Item = &'static str>) -> Vec<Node> {
        if !cfg!(unix) || cfg!(target_os = "macos") {
            return Vec::new();
        }
        let mut gpus: Vec<u32> = fs::read_dir(self.at("/dev"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("nvidia")?.parse().ok())
            .collect();
        gpus.sort_unstable();
        let names = ["nvidiactl".to_owned(), "nvidia-uvm".to_owned()];
        let gpus = gpus.into_iter().map(|number| format!("nvidia{number}"));
        let names = names.into_iter().chain(gpus).map(|name| format!("/dev/{name}"));
        let paths = names.chain(more.map(str::to_owned));
        paths.map(|path| Node { state: state(&self.at(&path)), path }).collect()
    }
}

impl Default for Files {
    fn default() -> Self {
        Self::new()
    }
}

/// What comes of opening this file as the driver does.
pub fn state(path: &Path) -> NodeState {
    // As the driver opens them. That alone does nothing to a GPU.
    let Err(error) = OpenOptions::new().read(true).write(true).open(path) else { return NodeState::Usable };
    match (error.kind(), error.raw_os_error()) {
        (ErrorKind::NotFound, _) => NodeState::Missing,
        // Rust has one kind for EPERM (1) and EACCES (13), and here they have different causes.
        (_, Some(1)) => NodeState::Forbidden,
        (ErrorKind::PermissionDenied, _) => NodeState::Denied,
        _ => NodeState::Failed,
    }
}

/// Is it something like 550.54.14 or 470.82?
pub fn is_driver_version(word: &str) -> bool {
    let parts: Vec<_> = word.split('.').collect();
    (2..=3).contains(&parts.len())
        && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        && parts[0].len() >= 3
}

#[cfg(test)]
mod tests {
    use super::is_driver_version;

    #[test]
    fn versions_of_drivers() {
        for word in ["550.54.14", "470.82", "1000.1"] {
            assert!(is_driver_version(word), "{word}");
        }
        for word in ["x86_64", "1", "12.4", "550", "550.", "550.54.14.1", "13.2.0-4ubuntu1"] {
            assert!(!is_driver_version(word), "{word}");
        }
    }
}
