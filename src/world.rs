//! Worlds: the machines on which a finding occurs.

use std::fmt;

/// An accelerator back end of PyTorch other than CUDA.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Backend {
    /// Apple's Metal Performance Shaders.
    Mps,
    /// Intel GPUs.
    Xpu,
    /// Intel Gaudi (Habana).
    Hpu,
    /// Huawei Ascend.
    Npu,
    /// Google's TPUs through PyTorch/XLA.
    Xla,
    /// Cambricon.
    Mlu,
    /// Moore Threads.
    Musa,
}

impl Backend {
    /// The device type as PyTorch spells it (`torch.device(name)`).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mps => "mps",
            Self::Xpu => "xpu",
            Self::Hpu => "hpu",
            Self::Npu => "npu",
            Self::Xla => "xla",
            Self::Mlu => "mlu",
            Self::Musa => "musa",
        }
    }

    /// The back end with this device type, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Mps, Self::Xpu, Self::Hpu, Self::Npu, Self::Xla, Self::Mlu, Self::Musa]
            .into_iter()
            .find(|b| b.name() == name)
    }
}

/// The condition under which a finding occurs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum World {
    /// On every machine.
    Always,
    /// `torch.cuda.is_available()` is false.
    NoCuda,
    /// A CUDA device is available.
    Cuda,
    /// The back end is not available.
    No(Backend),
    /// The back end is available.
    With(Backend),
    /// Fewer than this many visible GPUs.
    FewerGpus(u32),
    /// At least this many visible GPUs, which is more than one.
    Gpus(u32),
    /// Less than this many bytes of free device memory.
    FreeBelow(u64),
    /// A CUDA device whose compute capability is below `major.minor`.
    CapabilityBelow(u8, u8),
}

/// An assumption of a path about the machine: `if torch.cuda.is_available():` was true.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Premise {
    /// At least this many visible GPUs.
    AtLeastGpus(u32),
    /// Fewer than this many visible GPUs.
    FewerGpus(u32),
    /// The back end is available.
    With(Backend),
    /// The back end is not available.
    Without(Backend),
}

impl Premise {
    /// Is there no machine on which both hold?
    pub fn excludes(self, other: Self) -> bool {
        match (self, other) {
            (Self::AtLeastGpus(least), Self::FewerGpus(n))
            | (Self::FewerGpus(n), Self::AtLeastGpus(least)) => least >= n,
            (Self::With(a), Self::Without(b)) | (Self::Without(a), Self::With(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Display for World {
    /// The short name in the machine formats, such as `no-cuda` or `gpus<2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::NoCuda => f.write_str("no-cuda"),
            Self::Cuda => f.write_str("cuda"),
            Self::No(b) => write!(f, "no-{}", b.name()),
            Self::With(b) => f.write_str(b.name()),
            Self::FewerGpus(n) => write!(f, "gpus<{n}"),
            Self::Gpus(n) => write!(f, "gpus>={n}"),
            Self::FreeBelow(bytes) => write!(f, "free<{bytes}"),
            Self::CapabilityBelow(major, minor) => write!(f, "cc<{major}.{minor}"),
        }
    }
}

impl World {
    /// Is it about machines that have CUDA?
    pub const fn has_cuda(self) -> bool {
        matches!(self, Self::Cuda | Self::Gpus(_))
    }

    /// The world as a premise, if it is about available devices.
    pub const fn premise(self) -> Option<Premise> {
        match self {
            Self::NoCuda => Some(Premise::FewerGpus(1)),
            Self::Cuda => Some(Premise::AtLeastGpus(1)),
            Self::No(backend) => Some(Premise::Without(backend)),
            Self::With(backend) => Some(Premise::With(backend)),
            Self::FewerGpus(n) => Some(Premise::FewerGpus(n)),
            Self::Gpus(n) => Some(Premise::AtLeastGpus(n)),
            Self::Always | Self::FreeBelow(_) | Self::CapabilityBelow(..) => None,
        }
    }

    /// The world as a clause for people: "on a machine without CUDA".
    pub fn in_words(self) -> String {
        match self {
            Self::Always => "on every machine".to_owned(),
            Self::NoCuda => "on a machine without CUDA".to_owned(),
            Self::Cuda => "on a machine with CUDA".to_owned(),
            Self::No(b) => format!("on a machine without {}", b.name().to_uppercase()),
            Self::With(b) => format!("on a machine with {}", b.name().to_uppercase()),
            Self::FewerGpus(2) => "on a machine with fewer than two GPUs".to_owned(),
            Self::FewerGpus(n) => format!("on a machine with fewer than {n} GPUs"),
            Self::Gpus(2) => "on a machine with two or more GPUs".to_owned(),
            Self::Gpus(n) => format!("on a machine with {n} or more GPUs"),
            Self::FreeBelow(bytes) => format!("with less than {} of free GPU memory", gibibytes(bytes)),
            Self::CapabilityBelow(major, minor) => {
                format!("on a GPU with a compute capability below {major}.{minor}")
            }
        }
    }
}

/// A number of bytes for people, in GiB with one decimal (in MiB below one GiB).
pub fn gibibytes(bytes: u64) -> String {
    const MIB: f64 = 1024.0 * 1024.0;
    let mib = bytes as f64 / MIB;
    if mib < 1024.0 { format!("{mib:.1} MiB") } else { format!("{:.1} GiB", mib / 1024.0) }
}

#[cfg(test)]
mod tests {
    use super::{Backend, Premise};

    #[test]
    fn what_cannot_hold_on_one_machine() {
        use Premise::{AtLeastGpus, FewerGpus, With, Without};
        for (a, b, excludes) in [
            (AtLeastGpus(2), FewerGpus(2), true),
            (AtLeastGpus(1), FewerGpus(2), false),
            (AtLeastGpus(4), FewerGpus(2), true),
            (AtLeastGpus(4), AtLeastGpus(1), false),
            (With(Backend::Mps), Without(Backend::Mps), true),
            (With(Backend::Mps), Without(Backend::Xpu), false),
            (With(Backend::Mps), FewerGpus(1), false),
        ] {
            assert_eq!((a.excludes(b), b.excludes(a)), (excludes, excludes), "{a:?} {b:?}");
        }
    }
}
