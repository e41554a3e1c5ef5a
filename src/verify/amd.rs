//! AMD's GPUs as the kernel's compute driver shows them: `/dev/kfd`, which every program of ROCm opens, and its list of
//! nodes. For a PyTorch that is built for ROCm.

use std::fs;

use super::machine::Amd;
use super::pci;
use super::system::{Files, state};
use crate::source::read;

/// What the compute driver calls its devices: the CPUs are nodes, too, with no version of a graphics engine.
const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";
/// The file that programs open.
pub const KFD: &str = "/dev/kfd";

/// What can be seen of them.
pub fn seen(files: &Files) -> Amd {
    let mut nodes: Vec<(u32, String)> = fs::read_dir(files.at(NODES))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            let properties = read::text(&entry.path().join("properties")).ok()?;
            Some((number, engine(&properties)?))
        })
        .collect();
    nodes.sort_unstable();
    Amd {
        kfd: cfg!(target_os = "linux").then(|| state(&files.at(KFD))),
        gpus: nodes.into_iter().map(|(_, engine)| engine).collect(),
        pci_devices: pci::gpus(files, pci::AMD).and_then(|gpus| u32::try_from(gpus.len()).ok()),
    }
}

/// `gfx942` of a node's properties, a name and a number in each line: `gfx_target_version 90402`. The last two numbers are
/// written in hexadecimal: LLVM's `AMDGPUArchByKFD.cpp`.
fn engine(properties: &str) -> Option<String> {
    let mut lines = properties.lines().filter_map(|line| line.split_once(' '));
    let (_, number) = lines.find(|(name, _)| *name == "gfx_target_version")?;
    let number: u32 = number.trim().parse().ok().filter(|number| *number > 0)?;
    Some(format!("gfx{}{:x}{:x}", number / 10_000, number / 100 % 100, number % 100))
}

#[cfg(test)]
mod tests {
    use super::engine;

    #[test]
    fn names_of_engines() {
        for (number, name) in [
            ("90010", Some("gfx90a")),
            ("90402", Some("gfx942")),
            ("100300", Some("gfx1030")),
            ("110001", Some("gfx1101")),
            ("0", None),
            ("x", None),
        ] {
            let text =
                format!("cpu_cores_count 0\nsimd_count 304\ngfx_target_version {number}\nvendor_id 4098\n");
            assert_eq!(engine(&text).as_deref(), name, "{number}");
        }
        assert_eq!(engine("cpu_cores_count 16\n"), None);
    }
}
