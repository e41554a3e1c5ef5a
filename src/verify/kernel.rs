//! NVIDIA's kernel module: is it loaded, of which flavor, and if not, what keeps it out. Read from `/proc`, `/sys`,
//! `/lib/modules` and the configuration of `modprobe`.

use std::fs;

use super::machine::{Flavor, KernelModule};
use super::system::Files;
use crate::source::read;

/// The kernel's own module for NVIDIA's GPUs: a GPU has one driver at a time.
const NOUVEAU: &str = "nouveau";
/// The firmware's variable of this name, in the UEFI's own name space: four bytes of attributes, then 1 or 0 (UEFI
/// specification, *Globally Defined Variables*).
const SECURE_BOOT: &str = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
/// Where `modprobe` is configured: modprobe.d(5).
const CONFIGURATION: [&str; 4] =
    ["/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"];

/// What can be seen of it.
pub fn module(files: &Files) -> KernelModule {
    // Linux version 6.8.0-45-generic (buildd@…)
    let by_version = || files.text("/proc/version").split_whitespace().nth(2).map(str::to_owned);
    let kernel = Some(files.text("/proc/sys/kernel/osrelease").trim().to_owned())
        .filter(|text| !text.is_empty())
        .or_else(by_version);
    let mut built_for = built_for(files);
    built_for.sort_unstable();
    let built = kernel.as_ref().and_then(|kernel| {
        // Where no module is listed for the kernel, nothing is known of NVIDIA's.
        let listed = files.at(&format!("/lib/modules/{kernel}/modules.dep")).is_file();
        listed.then(|| built_for.contains(kernel))
    });
    KernelModule {
        loaded: loaded(files, "nvidia"),
        flavor: flavor(&files.text("/proc/driver/nvidia/version")),
        nouveau: loaded(files, NOUVEAU).unwrap_or(false),
        kernel,
        built,
        built_for,
        forbidden_by: forbidden_by(files),
        secure_boot: secure_boot(files),
    }
}

/// Is the module of this name in the kernel? `None` where that cannot be seen.
fn loaded(files: &Files, name: &str) -> Option<bool> {
    let modules = read::text(&files.at("/proc/modules")).ok();
    let listed = modules.map(|text| text.lines().any(|line| line.split(' ').next() == Some(name)));
    // Linked into the kernel, it is in no list.
    if files.at(&format!("/sys/module/{name}")).is_dir() { Some(true) } else { listed }
}

/// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15 …", or without "Open".
fn flavor(version: &str) -> Option<Flavor> {
    let line = version.lines().find(|line| line.starts_with("NVRM version"))?;
    Some(if line.contains("Open Kernel Module") { Flavor::Open } else { Flavor::Proprietary })
}

/// The kernels that have it, by the lists that `depmod` writes.
fn built_for(files: &Files) -> Vec<String> {
    let kernels = fs::read_dir(files.at("/lib/modules")).into_iter().flatten().flatten();
    let has = |folder: &std::path::Path| {
        let list = read::text(&folder.join("modules.dep")).unwrap_or_default();
        list.lines().any(|line| {
            let path = line.split(':').next().unwrap_or_default();
            // `updates/dkms/nvidia.ko.zst`: modules may be compressed.
            let name = path.rsplit('/').next().unwrap_or_default();
            name == "nvidia.ko" || name.starts_with("nvidia.ko.")
        })
    };
    kernels
        .filter(|entry| has(&entry.path()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// The file that keeps `modprobe` from loading it: `blacklist nvidia`, `alias nvidia off`, `install nvidia /bin/false`.
fn forbidden_by(files: &Files) -> Option<String> {
    let mut found: Vec<String> = Vec::new();
    for folder in CONFIGURATION {
        for entry in fs::read_dir(files.at(folder)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".conf") && read::text(&entry.path()).unwrap_or_default().lines().any(forbids) {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().next()
}

fn forbids(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(
        words.as_slice(),
        ["blacklist", "nvidia"]
            | ["alias", "nvidia", "off"]
            | ["install", "nvidia", "/bin/false" | "/bin/true" | "/usr/bin/false" | "/usr/bin/true"]
    )
}

fn secure_boot(files: &Files) -> Option<bool> {
    let bytes = read::head(&files.at(SECURE_BOOT), 5).ok()?;
    Some(*bytes.get(4)? == 1)
}

#[cfg(test)]
mod tests {
    use super::{Flavor, flavor, forbids};

    #[test]
    fn flavors() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n";
        let closed =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n";
        assert_eq!(flavor(open), Some(Flavor::Open));
        assert_eq!(flavor(closed), Some(Flavor::Proprietary));
        assert_eq!(flavor(""), None);
    }

    #[test]
    fn lines_that_keep_the_module_out() {
        for line in ["blacklist nvidia", "  alias nvidia off", "install nvidia /bin/false"] {
            assert!(forbids(line), "{line}");
        }
        for line in [
            "blacklist nouveau",
            "# blacklist nvidia",
            "options nvidia NVreg_x=1",
            "alias nvidia-wmi off",
            "",
        ] {
            assert!(!forbids(line), "{line}");
        }
    }
}
