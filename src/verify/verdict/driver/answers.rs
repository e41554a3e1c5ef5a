//! The driver says why, by a code of `cuda.h`.

use super::wsl::RESTART;
use super::{Case, Draft};
use crate::verify::code;
use crate::verify::install::without_folders;
use crate::verify::machine::NodeState;

pub(super) fn not_licensed(case: &Case) -> Option<Draft> {
    (case.code() == Some(102)).then(|| {
        Draft::error("not-licensed", "the virtual GPU has no license")
            .remedy("connect the machine to its license server")
            .command("nvidia-smi -q | grep -i license")
    })
}

pub(super) fn fabric_manager(case: &Case) -> Option<Draft> {
    (case.code() == Some(802)).then(|| {
        Draft::error("fabric-manager", "NVSwitch is not ready: NVIDIA's fabric manager is not running")
            .says("Error 802: system not yet initialized")
            .remedy("start the fabric manager; its version must match the driver")
            .command("sudo systemctl enable --now nvidia-fabricmanager")
    })
}

pub(super) fn mps_server(case: &Case) -> Option<Draft> {
    case.code().filter(|code| (805..=810).contains(code)).map(|_| {
        Draft::error("mps-server", "the MPS server rejects this process")
            .remedy("restart the MPS control daemon, or unset `CUDA_MPS_PIPE_DIRECTORY`")
            .command("echo quit | nvidia-cuda-mps-control; nvidia-cuda-mps-control -d")
    })
}

pub(super) fn forward_compatibility(case: &Case) -> Option<Draft> {
    if case.code() != Some(804) {
        return None;
    }
    let path = case.machine.driver.loaded_from.as_deref().unwrap_or_default();
    let search = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let folder = search.split(':').find(|folder| folder.contains("compat"));
    let only = (!path.contains("compat")).then(|| "it is only for data center GPUs".to_owned());
    Some(
        Draft::error(
            "forward-compatibility",
            "a forward-compatibility library of a newer CUDA is loaded, and this GPU does not support it",
        )
        .seen_all(folder.map(|folder| format!("`LD_LIBRARY_PATH` has {folder}")))
        .seen_all(only)
        .says("Error 804: forward compatibility was attempted on non supported HW")
        .remedy(
            "remove the folder `compat` from `LD_LIBRARY_PATH` and from the image, or install a newer driver",
        )
        .command_if(folder.map(|folder| without_folders([folder]))),
    )
}

pub(super) fn mismatch(case: &Case) -> Option<Draft> {
    if case.code() != Some(803) {
        return None;
    }
    let driver = &case.machine.driver;
    let kernel = driver.version.as_ref().map(|version| format!("the kernel's driver is {version}"));
    let library = driver.library_version.as_ref().map(|version| format!("the library is of {version}"));
    let draft = Draft::error(
        "driver-library-mismatch",
        "the driver library and the kernel module have different versions",
    )
    .seen_all(kernel)
    .seen_all(library)
    .seen_all(case.smi_error())
    .says("Error 803: system has unsupported display driver / cuda driver combination");
    Some(if case.machine.system.container.is_some() {
        draft
            .remedy(
                "remove the driver library from the image: the container runtime mounts the one of the host",
            )
            .command("ldconfig -p | grep libcuda")
    } else if case.machine.system.wsl {
        in_windows(draft)
    } else {
        draft.remedy("reboot to load the kernel module of the installed driver").command("sudo reboot")
    })
}

/// Linux has no module of the driver there that could be loaded again.
fn in_windows(draft: Draft) -> Draft {
    draft.remedy("update NVIDIA's driver in Windows, and restart WSL").command(RESTART)
}

pub(super) fn unavailable(case: &Case) -> Option<Draft> {
    (case.code() == Some(46)).then(|| {
        let processes = case.listed.gpus.iter().flat_map(|gpu| gpu.processes.iter().map(move |p| (gpu, p)));
        Draft::error("device-unavailable", "the GPU is in use: its compute mode allows one process at a time")
            .seen_all(processes.map(|(gpu, p)| format!("GPU {}: process {} ({})", gpu.index, p.pid, p.name)))
            .says("CUDA-capable device(s) is/are busy or unavailable")
            .remedy("stop the process that uses it, or allow several processes")
            .command("sudo nvidia-smi -c DEFAULT")
    })
}

pub(super) fn unknown(case: &Case) -> Option<Draft> {
    if case.code() != Some(999) {
        return None;
    }
    let uvm = |path: &str| path.ends_with("nvidia-uvm");
    let without_uvm = case.has_nodes() && case.node(|path, state| uvm(path) && state == NodeState::Missing);
    let draft = Draft::error("unknown-error", "the driver cannot start and gives no reason")
        .seen_all(case.smi_error())
        .says("CUDA unknown error - this may be due to an incorrectly set up environment");
    Some(if case.machine.system.wsl {
        in_windows(draft)
    } else if without_uvm {
        draft
            .seen("/dev/nvidia-uvm is missing")
            .remedy("load the kernel module that creates it")
            .command("sudo nvidia-modprobe -u -c=0")
    } else {
        draft
            .remedy(
                "load the memory module again (after a suspended or updated system it is often broken), or reboot; set \
                 `CUDA_VISIBLE_DEVICES` before the program starts, not in it",
            )
            .command("sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm")
    })
}

pub(super) fn other(case: &Case) -> Option<Draft> {
    let number = case.code()?;
    let draft = Draft::error("driver-error", format!("the driver answers {}", code::in_words(number)))
        .seen_all(case.smi_error());
    Some(if case.machine.system.wsl {
        in_windows(draft)
    } else {
        draft
            .remedy("read the kernel log and reboot; if the error remains, reinstall the driver")
            .command("sudo dmesg | grep -iE 'nvrm|xid'")
    })
}
