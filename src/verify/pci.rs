//! NVIDIA's and AMD's display controllers on the PCI bus, read from `/sys/bus/pci/devices`.

use std::fs;
use std::path::Path;

use super::family::Family;
use super::machine::PciGpu;
use super::system::Files;
use crate::source::read;

/// The class of display controllers, which GPUs without a display are, too.
const DISPLAY: &str = "0x03";
/// NVIDIA's number among the vendors of PCI devices.
pub const NVIDIA: &str = "0x10de";
/// AMD's.
pub const AMD: &str = "0x1002";

/// The display controllers of this vendor, by address; `None` if there is no list of the bus. WSL has none of them
/// on its.
pub fn gpus(files: &Files, vendor: &str) -> Option<Vec<PciGpu>> {
    let devices = fs::read_dir(files.at("/sys/bus/pci/devices")).ok()?;
    let mut gpus: Vec<PciGpu> = devices.flatten().filter_map(|entry| gpu(&entry.path(), vendor)).collect();
    gpus.sort_by(|a, b| a.address.cmp(&b.address));
    Some(gpus)
}

/// The one in this folder, if it is one.
fn gpu(folder: &Path, vendor: &str) -> Option<PciGpu> {
    let number = |file: &str| read::text(&folder.join(file)).ok().map(|text| text.trim().to_owned());
    if number("vendor")? != vendor || !number("class")?.starts_with(DISPLAY) {
        return None;
    }
    let hex = |text: &str| text.strip_prefix("0x").map(str::to_owned);
    let device = number("device").as_deref().and_then(hex);
    let family = device.as_deref().filter(|_| vendor == NVIDIA).and_then(|device| {
        let device = u16::from_str_radix(device, 16).ok()?;
        Family::of(device)
    });
    Some(PciGpu {
        address: folder.file_name()?.to_string_lossy().into_owned(),
        id: device.zip(hex(vendor)).map(|(device, vendor)| format!("{vendor}:{device}")),
        family,
        // A link to the folder of the driver that has it.
        driver: fs::read_link(folder.join("driver"))
            .ok()
            .and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned())),
    })
}
