//! NVIDIA's GPUs by the number that the PCI bus has for them: what a driver that does not start cannot be asked.

use serde::{Deserialize, Serialize};

use super::machine::Version;

/// A generation of GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Compute capability 2.x.
    Fermi,
    /// 3.x.
    Kepler,
    /// 5.x.
    Maxwell,
    /// 6.x.
    Pascal,
    /// 7.0.
    Volta,
    /// 7.5.
    Turing,
    /// 8.0 and 8.6.
    Ampere,
    /// 8.9.
    Ada,
    /// 9.0.
    Hopper,
    /// 10.x and 12.x.
    Blackwell,
}

/// Device numbers, the first and the last one of a range. From the chips that the database of PCI numbers
/// (pci-ids.ucw.cz, April 2023) names for vendor 10de, of which every one from Fermi to Ada is in the range of its
/// generation, and for Blackwell from `gpu/devid_chips.py` in NVIDIA's gpu-admin-tools.
const RANGES: [(u16, u16, Family); 28] = [
    (0x06c0, 0x06df, Family::Fermi),
    (0x0dc0, 0x0f3f, Family::Fermi),
    (0x0fc0, 0x103f, Family::Kepler),
    (0x1040, 0x10bf, Family::Fermi),
    (0x1140, 0x117f, Family::Fermi),
    (0x1180, 0x11ff, Family::Kepler),
    (0x1200, 0x127f, Family::Fermi),
    (0x1280, 0x12ff, Family::Kepler),
    (0x1340, 0x1479, Family::Maxwell),
    (0x15f0, 0x15ff, Family::Pascal),
    (0x1600, 0x16ff, Family::Maxwell),
    (0x1700, 0x173f, Family::Pascal),
    (0x1740, 0x17ff, Family::Maxwell),
    (0x1b00, 0x1d7f, Family::Pascal),
    (0x1d80, 0x1dff, Family::Volta),
    (0x1e00, 0x1fff, Family::Turing),
    (0x2080, 0x20ff, Family::Ampere),
    (0x2180, 0x21ff, Family::Turing),
    (0x2200, 0x22ff, Family::Ampere),
    (0x2300, 0x237f, Family::Hopper),
    (0x2400, 0x25ff, Family::Ampere),
    (0x2680, 0x28ff, Family::Ada),
    (0x2900, 0x29ff, Family::Blackwell),
    (0x2b80, 0x2bff, Family::Blackwell),
    (0x2c00, 0x2c7f, Family::Blackwell),
    (0x2d00, 0x2d7f, Family::Blackwell),
    (0x2d80, 0x2dff, Family::Blackwell),
    (0x2f00, 0x2f7f, Family::Blackwell),
];

impl Family {
    /// Of the device with this number, if the tables have it.
    pub fn of(device: u16) -> Option<Self> {
        RANGES.iter().find(|(first, last, _)| (*first..=*last).contains(&device)).map(|(.., family)| *family)
    }

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fermi => "Fermi",
            Self::Kepler => "Kepler",
            Self::Maxwell => "Maxwell",
            Self::Pascal => "Pascal",
            Self::Volta => "Volta",
            Self::Turing => "Turing",
            Self::Ampere => "Ampere",
            Self::Ada => "Ada",
            Self::Hopper => "Hopper",
            Self::Blackwell => "Blackwell",
        }
    }

    /// The lowest compute capability of its GPUs for desktops and servers: NVIDIA's table *CUDA GPU Compute Capability*.
    pub fn capability(self) -> Version {
        match self {
            Self::Fermi => Version::new(2, 0),
            Self::Kepler => Version::new(3, 0),
            Self::Maxwell => Version::new(5, 0),
            Self::Pascal => Version::new(6, 0),
            Self::Volta => Version::new(7, 0),
            Self::Turing => Version::new(7, 5),
            Self::Ampere => Version::new(8, 0),
            Self::Ada => Version::new(8, 9),
            Self::Hopper => Version::new(9, 0),
            Self::Blackwell => Version::new(10, 0),
        }
    }

    /// The last series of drivers that has it, if a newer one has dropped it. NVIDIA's *Unix graphics feature
    /// deprecation schedule*: 390 for Fermi, 470 for Kepler, 580 for Maxwell, Pascal and Volta.
    pub fn last_driver(self) -> Option<u32> {
        match self {
            Self::Fermi => Some(390),
            Self::Kepler => Some(470),
            Self::Maxwell | Self::Pascal | Self::Volta => Some(580),
            Self::Turing | Self::Ampere | Self::Ada | Self::Hopper | Self::Blackwell => None,
        }
    }

    /// Does the open kernel module run it? It needs the GPU's own processor (GSP), which came with Turing: chapter
    /// *Open Linux Kernel Modules* of the driver's README.
    pub fn runs_open(self) -> bool {
        self >= Self::Turing
    }

    /// Does the proprietary kernel module run it? "Blackwell and later are only supported by the open kernel modules":
    /// the same chapter, of driver 580.
    pub fn runs_proprietary(self) -> bool {
        self < Self::Blackwell
    }
}

#[cfg(test)]
mod tests {
    use super::{Family, RANGES};

    #[test]
    fn well_known_cards() {
        for (device, family) in [
            (0x06c0, Some(Family::Fermi)),     // GeForce GTX 480
            (0x1180, Some(Family::Kepler)),    // GeForce GTX 680
            (0x102d, Some(Family::Kepler)),    // Tesla K80
            (0x17c8, Some(Family::Maxwell)),   // GeForce GTX 980 Ti
            (0x15f8, Some(Family::Pascal)),    // Tesla P100
            (0x1b80, Some(Family::Pascal)),    // GeForce GTX 1080
            (0x1d01, Some(Family::Pascal)),    // GeForce GT 1030
            (0x1db5, Some(Family::Volta)),     // Tesla V100
            (0x1eb8, Some(Family::Turing)),    // Tesla T4
            (0x2182, Some(Family::Turing)),    // GeForce GTX 1660 Ti
            (0x20b0, Some(Family::Ampere)),    // A100
            (0x2204, Some(Family::Ampere)),    // GeForce RTX 3090
            (0x2330, Some(Family::Hopper)),    // H100
            (0x2684, Some(Family::Ada)),       // GeForce RTX 4090
            (0x2901, Some(Family::Blackwell)), // B200
            (0x2b85, Some(Family::Blackwell)), // GeForce RTX 5090
            (0x0191, None),                    // GeForce 8800 GTX
            (0xffff, None),
        ] {
            assert_eq!(Family::of(device), family, "{device:04x}");
        }
    }

    #[test]
    fn ranges_are_in_order_and_apart() {
        for pair in RANGES.windows(2) {
            assert!(pair[0].0 <= pair[0].1 && pair[0].1 < pair[1].0, "{:04x}", pair[0].0);
        }
    }

    #[test]
    fn what_drivers_run() {
        assert_eq!(Family::Pascal.last_driver(), Some(580));
        assert_eq!(Family::Turing.last_driver(), None);
        assert!(!Family::Volta.runs_open() && Family::Turing.runs_open());
        assert!(Family::Hopper.runs_proprietary() && !Family::Blackwell.runs_proprietary());
    }
}
