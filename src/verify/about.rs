//! What people are asked for when they report a problem: the distribution, the loader's search path, the GPUs by the names that
//! lists of PCI devices give them.

use super::machine::{PciGpu, System};
use super::system::Files;
use crate::source::read;

/// Where distributions keep the list of PCI devices (pciutils' `pci.ids`).
const LISTS: [&str; 4] = [
    "/usr/share/misc/pci.ids",
    "/usr/share/hwdata/pci.ids",
    "/usr/share/pci.ids",
    "/var/lib/pciutils/pci.ids",
];

/// Fills in what can be seen.
pub fn fill(files: &Files, system: &mut System) {
    let text = |path: &str| read::text(&files.at(path)).unwrap_or_default();
    system.distribution = distribution(&text("/etc/os-release"))
        .or_else(|| distribution(&text("/usr/lib/os-release")))
        .or_else(|| macos(&text("/System/Library/CoreServices/SystemVersion.plist")));
    system.library_path =
        std::env::var_os("LD_LIBRARY_PATH").map(|value| value.to_string_lossy().into_owned());
    system.gpu_names = gpu_names(files, &system.nvidia_gpus);
}

/// `PRETTY_NAME` of `os-release`.
fn distribution(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let name = value.trim().trim_matches(['"', '\'']);
    (!name.is_empty()).then(|| name.to_owned())
}

/// `ProductVersion` of `SystemVersion.plist`.
fn macos(text: &str) -> Option<String> {
    let value = text.split("<key>ProductVersion</key>").nth(1)?;
    let version = value.split("<string>").nth(1)?.split("</string>").next()?;
    Some(format!("macOS {version}"))
}

/// The names of NVIDIA's display controllers on the PCI bus: those of the system's list, or their numbers, `10de:2684`.
fn gpu_names(files: &Files, gpus: &[PciGpu]) -> Vec<String> {
    let ids: Vec<&str> = gpus.iter().filter_map(|gpu| gpu.id.as_deref()).collect();
    if ids.is_empty() {
        return Vec::new();
    }
    let list = LISTS.iter().find_map(|path| read::text_lossy(&files.at(path)).ok()).unwrap_or_default();
    let name = |id: &&str| named(&list, id.split(':').nth(1)?);
    ids.iter().map(|id| name(id).unwrap_or_else(|| (*id).to_owned())).collect()
}

/// The name in the list: below the line of the vendor, `10de  NVIDIA Corporation`, there is one for each device, `\t2684  AD102 [GeForce RTX
/// 4090]`.
fn named(list: &str, number: &str) -> Option<String> {
    let mut lines = list.lines().skip_while(|line| !line.starts_with("10de "));
    lines.next();
    lines
        .take_while(|line| line.starts_with('\t') || line.starts_with('#') || line.is_empty())
        .filter_map(|line| line.strip_prefix('\t'))
        .find_map(|line| {
            line.strip_prefix(number)?.strip_prefix("  ").map(|name| format!("NVIDIA {}", name.trim()))
        })
}

#[cfg(test)]
mod tests {
    use super::{distribution, macos, named};

    #[test]
    fn names_of_systems() {
        assert_eq!(
            distribution("NAME=x\nPRETTY_NAME=\"Ubuntu 22.04.4 LTS\"\n").as_deref(),
            Some("Ubuntu 22.04.4 LTS")
        );
        assert_eq!(distribution("NAME=x\n"), None);
        let plist = "<key>ProductVersion</key>\n\t<string>14.5</string>\n";
        assert_eq!(macos(plist).as_deref(), Some("macOS 14.5"));
        assert_eq!(macos(""), None);
    }

    #[test]
    fn names_of_gpus() {
        let list = "# list\n10dd  Other\n\t2684  Wrong\n10de  NVIDIA Corporation\n\t0020  NV4\n\t\t1043 0200  Sub\n\t2684  AD102 \
                    [GeForce RTX 4090]\n10df  Emulex\n\t20b0  Wrong\n";
        assert_eq!(named(list, "2684").as_deref(), Some("NVIDIA AD102 [GeForce RTX 4090]"));
        assert_eq!((named(list, "20b0"), named(list, "1043")), (None, None));
    }
}
