//! Where this runs, if GPUs are had there in a particular way: in a notebook of Google's, in a job, on a small board.

use super::system::Files;
use crate::source::read;

/// Google Colab.
pub const COLAB: &str = "colab";
/// Kaggle's notebooks.
pub const KAGGLE: &str = "kaggle";
/// A job of Slurm.
pub const SLURM: &str = "slurm";
/// NVIDIA's boards with an integrated GPU, which is not on the PCI bus.
pub const JETSON: &str = "jetson";
/// NixOS, which has no folders of the system that a loader looks into.
pub const NIXOS: &str = "nixos";

/// Variables that say so: those of Colab and Kaggle by which `kagglehub` (`env.py`) knows them, and the number of the job
/// that Slurm gives to each of its processes (srun(1), *output environment variables*).
const VARIABLES: [(&str, &str); 4] = [
    ("COLAB_RELEASE_TAG", COLAB),
    ("COLAB_GPU", COLAB),
    ("KAGGLE_KERNEL_RUN_TYPE", KAGGLE),
    ("SLURM_JOB_ID", SLURM),
];
/// The release of the system's software on a Jetson.
pub const TEGRA: &str = "/etc/nv_tegra_release";
/// What the firmware says that the board is, for containers on it.
const BOARD: &str = "/proc/device-tree/compatible";

/// Their names, each once.
pub fn of(files: &Files) -> Vec<String> {
    let mut names: Vec<&str> = VARIABLES
        .iter()
        .filter(|(variable, _)| std::env::var_os(variable).is_some())
        .map(|(_, name)| *name)
        .collect();
    let board = read::head(&files.at(BOARD), 1 << 12).unwrap_or_default();
    // The names in it end in zero bytes.
    if files.at(TEGRA).is_file() || String::from_utf8_lossy(&board).contains("nvidia,tegra") {
        names.push(JETSON);
    }
    if files.at("/etc/NIXOS").exists() {
        names.push(NIXOS);
    }
    names.dedup();
    names.into_iter().map(str::to_owned).collect()
}
