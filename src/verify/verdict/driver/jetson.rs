//! NVIDIA's Jetson boards: their GPU is on no bus, their driver comes with the system, and their older systems have wheels of
//! their own.

use super::library::NO_DRIVER;
use super::{Case, Draft};
use crate::verify::machine::{Build, Torch};
use crate::verify::surroundings::{JETSON, TEGRA};

pub(super) fn driver(case: &Case) -> Option<Draft> {
    (case.is_in(JETSON) && (case.no_library() || case.no_device())).then(|| {
        Draft::error("jetson-driver", "the driver of the Jetson is not installed")
            .seen_all(release(case).map(|release| format!("{TEGRA} says R{release}")))
            .seen(if case.no_library() {
                "there is no `libcuda.so.1`"
            } else {
                "the library finds no device"
            })
            .says(NO_DRIVER)
            .remedy("install NVIDIA's packages for JetPack, not a desktop driver")
            .command("sudo apt install --reinstall nvidia-l4t-core nvidia-l4t-cuda")
    })
}

/// "# R36 (release), REVISION: 4.3, …": 36.
fn release(case: &Case) -> Option<u32> {
    let text = case.files.text(TEGRA);
    let digits: String = text.trim_start_matches("# R").chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Where there are wheels for this board, if it needs ones of its own: JetPack 6 is release 36, and NVIDIA's wheels for it are in this
/// index (jetson-orin-setup#6, pytorch/TensorRT#3453). From release 38 on those for servers run.
pub(in crate::verify::verdict) fn index(case: &Case) -> Option<&'static str> {
    (case.is_in(JETSON) && release(case) == Some(36)).then_some("https://pypi.jetson-ai-lab.io/jp6/cu126")
}

/// A PyTorch that is for other machines: PyPI's for this processor has no CUDA or is for servers.
pub(in crate::verify::verdict) fn wheels(case: &Case, torch: &Torch) -> Option<Draft> {
    let old = release(case).is_none_or(|release| release < 38);
    let without = case.machine.devices.iter().any(|device| device.in_build == Some(false));
    if !case.is_in(JETSON) || !old || !(torch.build == Build::Cpu || without) {
        return None;
    }
    let version = torch.version.as_deref().unwrap_or("of unknown version");
    let what = if torch.build == Build::Cpu {
        "is built without CUDA"
    } else {
        "has no code for the GPU of the board"
    };
    let draft =
        Draft::error("jetson-wheels", format!("PyTorch {version} does not run on a Jetson: it {what}"))
            .seen_all(release(case).map(|release| format!("{TEGRA} says R{release}")))
            .seen(format!(
                "PyTorch has code for {}",
                if torch.archs.is_empty() { "no GPU".to_owned() } else { torch.archs.join(" ") }
            ))
            .says(match torch.build {
                Build::Cpu => "AssertionError: Torch not compiled with CUDA enabled",
                _ => "CUDA error: no kernel image is available for execution on the device",
            });
    Some(match index(case) {
        Some(_) => draft
            .remedy("install the PyTorch that NVIDIA builds for JetPack")
            .command_if(case.target().for_gpu()),
        None => draft.remedy(
            "install the PyTorch that NVIDIA builds for JetPack: https://forums.developer.nvidia.com/t/pytorch-for-jetson/72048",
        ),
    })
}
