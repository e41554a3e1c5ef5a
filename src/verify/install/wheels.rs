//! Which wheels of PyTorch there are: by index, version, Python, platform and GPU.
//!
//! Sources: `RELEASE.md` of PyTorch ("Release Compatibility Matrix", "PyTorch CUDA Support Matrix"); for the ends of the
//! ranges pytorch/pytorch#147383 (CUDA 11.8 ends with 2.7), #178665 and pytorch/FBGEMM#5976 (12.8 ends with 2.11),
//! #190385 and #196249 (12.6 ends with 2.14), #162364 (aarch64 has 12.6 and 12.8 from 2.9 on). Architectures are those of
//! `PYTORCH_RELEASES_CODE_CC` in `torch/cuda/__init__.py`; for 12.8 without 7.0, which 2.11 has no code for
//! (pytorch/pytorch#172352). What is installed from them is in no later version than is known to exist here.

use crate::verify::machine::Version;

/// A kind of computer that wheels are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Platform {
    /// Linux on x86-64, WSL included.
    LinuxX86,
    /// Linux on 64-bit ARM: servers and DGX Spark; Jetson's wheels are NVIDIA's own.
    LinuxArm,
    /// Windows on x86-64.
    Windows,
    /// A Mac with Apple's processor.
    MacArm,
    /// A Mac with Intel's. Its last PyTorch is 2.2.
    MacX86,
    /// Anything else: there are no wheels.
    Other,
}

impl Platform {
    /// By the words of `std::env::consts`, which the report has in it.
    pub fn of(os: &str, arch: &str) -> Self {
        match (os, arch) {
            ("linux", "x86_64") => Self::LinuxX86,
            ("linux", "aarch64") => Self::LinuxArm,
            ("windows", "x86_64") => Self::Windows,
            ("macos", "aarch64") => Self::MacArm,
            ("macos", "x86_64") => Self::MacX86,
            _ => Self::Other,
        }
    }
}

/// An index of wheels for one CUDA, `https://download.pytorch.org/whl/TAG`.
#[derive(Debug)]
pub struct Index {
    /// The last part of its address, and of the versions in it: `cu126`.
    pub tag: &'static str,
    /// The CUDA that they are built with.
    pub cuda: Version,
    /// The first and the last PyTorch 2.x in it.
    releases: (u32, u32),
    /// The compute capabilities that all of them have code for, on x86-64.
    x86: &'static [Version],
    /// The first PyTorch 2.x in it for 64-bit ARM, and the same there.
    arm: Option<(u32, &'static [Version])>,
}

const fn cc(major: u32, minor: u32) -> Version {
    Version::new(major, minor)
}

/// From Maxwell to Hopper.
const UP_TO_HOPPER: &[Version] = &[cc(5, 0), cc(6, 0), cc(7, 0), cc(7, 5), cc(8, 0), cc(8, 6), cc(9, 0)];
/// From Turing to Blackwell.
const FROM_TURING: &[Version] = &[cc(7, 5), cc(8, 0), cc(8, 6), cc(9, 0), cc(10, 0), cc(12, 0)];

/// All of them, the oldest CUDA first.
pub const INDEXES: [Index; 6] = [
    Index {
        tag: "cu118",
        cuda: cc(11, 8),
        releases: (0, 7),
        x86: &[cc(3, 7), cc(5, 0), cc(6, 0), cc(7, 0), cc(7, 5), cc(8, 0), cc(8, 6), cc(9, 0)],
        arm: None,
    },
    Index { tag: "cu121", cuda: cc(12, 1), releases: (1, 5), x86: UP_TO_HOPPER, arm: None },
    Index { tag: "cu124", cuda: cc(12, 4), releases: (4, 6), x86: UP_TO_HOPPER, arm: None },
    Index {
        tag: "cu126",
        cuda: cc(12, 6),
        releases: (6, 14),
        x86: UP_TO_HOPPER,
        arm: Some((9, &[cc(8, 0), cc(9, 0)])),
    },
    Index {
        tag: "cu128",
        cuda: cc(12, 8),
        releases: (7, 11),
        x86: FROM_TURING,
        arm: Some((9, &[cc(8, 0), cc(9, 0), cc(10, 0), cc(12, 0)])),
    },
    Index {
        tag: "cu130",
        cuda: cc(13, 0),
        releases: (9, 15),
        x86: FROM_TURING,
        arm: Some((9, &[cc(8, 0), cc(9, 0), cc(10, 0), cc(11, 0), cc(12, 0)])),
    },
];

/// The minor versions of Python 3 that PyTorch 2.`release` has wheels for, the first and the last. `RELEASE.md`, and for
/// 2.2, 2.3 (which call 3.12 experimental) and 2.15 the files on PyPI.
pub const fn pythons(release: u32) -> (u32, u32) {
    match release {
        0..=1 => (8, 11),
        2..=4 => (8, 12),
        5 => (9, 12),
        6..=8 => (9, 13),
        9..=14 => (10, 14),
        _ => (11, 15),
    }
}

/// The torchvision 0.x that goes with PyTorch 2.`release`. From 0.29 on it asks for no exact version (its metadata on PyPI).
pub fn torchvision(release: u32) -> u32 {
    (release + 15).min(29)
}

/// The torchaudio 2.x that goes with PyTorch 2.`release`. From 2.11 on it asks for no exact version (its metadata on PyPI).
pub fn torchaudio(release: u32) -> u32 {
    release.min(11)
}

/// What wheels must run on.
#[derive(Clone, Debug)]
pub struct Needs {
    /// The computer.
    pub platform: Platform,
    /// The Python; `None` if it is not known.
    pub python: Option<Version>,
    /// The newest CUDA that the driver runs; `None` if it is not known.
    pub driver: Option<Version>,
    /// The compute capabilities of all GPUs.
    pub devices: Vec<Version>,
}

/// An index, and a PyTorch 2.x in it.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The index.
    pub index: &'static Index,
    /// The release.
    pub release: u32,
}

impl Index {
    /// Its address.
    pub fn url(&self) -> String {
        format!("https://download.pytorch.org/whl/{}", self.tag)
    }

    /// Is there a wheel of PyTorch 2.`release` in it that runs there?
    pub fn has(&self, release: u32, needs: &Needs) -> bool {
        let (first, archs) = match (needs.platform, self.arm) {
            (Platform::LinuxX86 | Platform::Windows, _) => (self.releases.0, self.x86),
            (Platform::LinuxArm, Some((first, archs))) => (first, archs),
            _ => return false,
        };
        let python = |python: Version| {
            let (oldest, newest) = pythons(release);
            python.major == 3 && (oldest..=newest).contains(&python.minor)
        };
        (first..=self.releases.1).contains(&release)
            && needs.python.is_none_or(python)
            // Within a major version every driver runs every CUDA: NVIDIA, "CUDA Compatibility".
            && needs.driver.is_none_or(|driver| driver.major >= self.cuda.major)
            && needs.devices.iter().all(|device| runs(archs, *device))
    }
}

/// Binary code runs on later devices of the same major version, but for the integrated ones of Jetson, whose wheels are
/// NVIDIA's own: `DEVICE_REQUIREMENT` in `torch/cuda/__init__.py`.
fn runs(archs: &[Version], device: Version) -> bool {
    const JETSON: [Version; 5] = [cc(5, 3), cc(6, 2), cc(7, 2), cc(8, 7), cc(10, 1)];
    let same_kind = |arch: &Version| arch.major == device.major && device.minor >= arch.minor;
    archs.contains(&device) || (!JETSON.contains(&device) && archs.iter().any(same_kind))
}

/// The index to install from: one that has this release if there is one, else the one with the newest. Among equals, the newest CUDA
/// that the driver knows, else the oldest that it does not.
pub fn choose(needs: &Needs, keep: Option<u32>) -> Option<Choice> {
    let known = |index: &Index| needs.driver.is_none_or(|driver| index.cuda <= driver);
    let rank = |choice: &Choice| {
        let cuda = choice.index.cuda;
        let order = i64::from(cuda.major) * 100 + i64::from(cuda.minor);
        (choice.release, known(choice.index), if known(choice.index) { order } else { -order })
    };
    let all = || {
        let pairs =
            INDEXES.iter().flat_map(|index| (index.releases.0..=index.releases.1).map(move |r| (index, r)));
        pairs
            .filter(|(index, release)| index.has(*release, needs))
            .map(|(index, release)| Choice { index, release })
    };
    let kept = all().filter(|choice| Some(choice.release) == keep).max_by_key(rank);
    kept.or_else(|| all().max_by_key(rank))
}
