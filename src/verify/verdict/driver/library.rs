//! The driver's library: there is none, it is found by nobody, or it is none.

use super::{Case, Draft, OTHER, OURS};
use crate::verify::install::without_folders;
use crate::verify::machine::{Family, NodeState, Outcome};
use crate::verify::surroundings::JETSON;

/// What PyTorch says where the loader finds no library.
pub(super) const NO_DRIVER: &str = "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and \
     installed a driver";

/// Folders that have the library, and that the loader does not look into by itself: Google's Kubernetes Engine mounts the first one
/// (README of its device plugin, `cmd/nvidia_gpu` in container-engine-accelerators), NixOS has the second one, a Jetson
/// the last two, by the release of its software.
const FOLDERS: [(&str, &str); 4] = [
    ("/usr/local/nvidia/lib64", "Google's Kubernetes Engine puts it there"),
    ("/run/opengl-driver/lib", "NixOS puts it there"),
    ("/usr/lib/aarch64-linux-gnu/nvidia", "a Jetson has it there"),
    ("/usr/lib/aarch64-linux-gnu/tegra", "a Jetson has it there"),
];

/// Is it the device file of a GPU, such as `/dev/nvidia0`?
pub(super) fn is_gpu(path: &str) -> bool {
    path.strip_prefix("/dev/nvidia").is_some_and(|number| number.parse::<u32>().is_ok())
}

pub(super) fn incomplete(case: &Case) -> Option<Draft> {
    let Outcome::MissingFunction { call } = &case.machine.driver.outcome else { return None };
    Some(
        Draft::error("driver-incomplete", "the driver library is incomplete or older than CUDA 11")
            .seen(format!("it has no `{call}`"))
            .remedy("reinstall NVIDIA's driver, version 525 or later"),
    )
}

pub(super) fn unloadable(case: &Case) -> Option<Draft> {
    let error = case.machine.driver.load_error.clone().unwrap_or_default();
    let bad = ["ELF", "file too short", "undefined symbol"].iter().any(|part| error.contains(part));
    (case.no_library() && bad).then(|| {
        Draft::error("driver-library-unloadable", "a `libcuda.so.1` exists but cannot be loaded")
            .seen(error)
            .remedy("remove it from `LD_LIBRARY_PATH`, or reinstall the driver for this processor")
    })
}

pub(super) fn stub(case: &Case) -> Option<Draft> {
    let search = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let stubs: Vec<&str> = search.split(':').filter(|folder| folder.contains("stubs")).collect();
    (case.code() == Some(34)).then(|| {
        Draft::error(
            "stub-library",
            "the loaded driver library is the stub of the CUDA toolkit, which is only for linking",
        )
        .says("CUDA driver is a stub library")
        .remedy("remove the folder `stubs` from `LD_LIBRARY_PATH`")
        .command_if((!stubs.is_empty()).then(|| without_folders(stubs)))
    })
}

pub(super) fn not_searched(case: &Case) -> Option<Draft> {
    if !case.no_library() {
        return None;
    }
    let there = |folder: &str| case.files.at(&format!("{folder}/libcuda.so.1")).exists();
    let (folder, who) = FOLDERS.iter().find(|(folder, _)| there(folder))?;
    Some(
        Draft::error(
            "driver-library-not-searched",
            "the driver library is not in the search path of the loader",
        )
        .seen(format!("{folder}/libcuda.so.1 is there: {who}"))
        .says(NO_DRIVER)
        .remedy("add the folder to the search path, for the program or in the image")
        .command(format!("export LD_LIBRARY_PATH={folder}:$LD_LIBRARY_PATH")),
    )
}

/// Is the driver there, but for its library?
fn half(case: &Case) -> bool {
    let nodes =
        case.has_nodes() || case.node(|path, state| path == "/dev/dxg" && state != NodeState::Missing);
    let inside = case.machine.system.container.is_some() && nodes;
    case.no_library() && (!case.listed.gpus.is_empty() || case.machine.driver.version.is_some() || inside)
}

fn there_without_library(case: &Case) -> String {
    match &case.machine.driver.version {
        Some(version) => {
            format!("the kernel driver is loaded ({version}), but its `libcuda.so.1` is missing")
        }
        None => "the device files of the GPU exist, but the driver's `libcuda.so.1` is missing".to_owned(),
    }
}

pub(super) fn musl(case: &Case) -> Option<Draft> {
    (cfg!(target_env = "musl") && half(case)).then(|| {
        Draft::error(OURS, "this program is linked with musl, which cannot load NVIDIA's library")
            .seen(there_without_library(case))
            .remedy("use the program that is linked with glibc")
    })
}

pub(super) fn missing(case: &Case) -> Option<Draft> {
    if !half(case) {
        return None;
    }
    let draft = Draft::error("driver-library-missing", "the CUDA library of the driver is missing")
        .seen(there_without_library(case))
        .seen_all(case.machine.driver.load_error.clone())
        .says(NO_DRIVER);
    Some(if case.machine.system.container.is_some() {
        draft
            .remedy("enable CUDA in the container: `NVIDIA_DRIVER_CAPABILITIES` must contain `compute`")
            .command("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility …")
    } else {
        draft
            .remedy("install the compute libraries of the driver, in the same version")
            .command("sudo apt install libcuda1    # Ubuntu: libnvidia-compute-VERSION")
    })
}

pub(super) fn not_installed(case: &Case) -> Option<Draft> {
    let system = &case.machine.system;
    if !case.no_library() || system.nvidia_pci_devices == Some(0) || case.is_in(JETSON) {
        return None;
    }
    let draft = Draft::error("driver-not-installed", "NVIDIA's driver is not installed");
    let Some(n) = system.nvidia_pci_devices else {
        return Some(
            draft
                .seen("there is no driver library")
                .says(NO_DRIVER)
                .remedy("if this machine has an NVIDIA GPU, install its driver and reboot"),
        );
    };
    let nouveau = system
        .kernel_module
        .nouveau
        .then(|| "the kernel uses `nouveau` instead, which does not support CUDA".to_owned());
    let draft = draft
        .seen(format!("NVIDIA display controllers on the PCI bus: {n}; there is no `libcuda.so.1`"))
        .seen_all(case.on_the_bus())
        .seen_all(nouveau)
        .says(NO_DRIVER);
    // The newest driver may be one that has dropped it.
    let last = system.nvidia_gpus.iter().filter_map(|gpu| gpu.family.and_then(Family::last_driver)).min();
    Some(match last {
        Some(last) => draft
            .remedy(format!(
                "install the driver and reboot; drivers after series {last} do not support this GPU"
            ))
            .command(format!(
                "sudo apt install nvidia-driver-{last}    # Ubuntu; elsewhere the packages of {last}"
            )),
        None => draft
            .remedy("install the driver and reboot")
            .command("sudo ubuntu-drivers install    # Debian: sudo apt install nvidia-driver"),
    })
}

pub(super) fn no_gpu(case: &Case) -> Option<Draft> {
    let none = case.no_library() || case.no_device();
    (none && case.machine.system.nvidia_pci_devices == Some(0) && !case.has_hardware()).then(|| {
        let library = if case.no_library() { ", and there is no `libcuda.so.1`" } else { "" };
        let amd = case.machine.system.amd.pci_devices.filter(|n| *n > 0);
        let draft = Draft::error("no-gpu", "there is no NVIDIA GPU")
            .seen(format!("there is no NVIDIA display controller on the PCI bus{library}"));
        if let Some(n) = amd {
            return draft.seen(format!("AMD display controllers on the PCI bus: {n}")).remedy(
                "if ROCm supports your AMD GPU, install a PyTorch build for ROCm, from its own index",
            );
        }
        draft.remedy(
            "run this on a machine with a GPU, or use a report of one: `--machine FILE`; a virtual machine \
                 must be given the GPU",
        )
    })
}

/// Programs that open the library under another name get another file.
pub(super) fn other(case: &Case) -> Option<Draft> {
    let other = case.machine.driver.other_library.as_deref()?;
    Some(
        Draft::warning(OTHER, "`libcuda.so` and `libcuda.so.1` are different libraries here")
            .seen(format!("the loader finds {other} first for the other name; PyTorch loads `libcuda.so.1`"))
            .seen_all(case.machine.driver.loaded_from.clone().map(|path| format!("`libcuda.so.1` is {path}")))
            .remedy(
                "remove the other one from `LD_LIBRARY_PATH`: programs that load `libcuda.so` fail with it",
            ),
    )
}
