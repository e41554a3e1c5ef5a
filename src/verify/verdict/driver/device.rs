//! The driver works, and shows no device.

use super::{Case, Draft};
use crate::verify::machine::NodeState;
use crate::verify::verdict::visible;

/// What PyTorch says where the driver answers that there is no device.
pub(super) const NO_GPUS: &str = "RuntimeError: No CUDA GPUs are available";

pub(super) fn hidden(case: &Case) -> Option<Draft> {
    let visible = &case.machine.visible;
    let hides = visible.value.is_some() && visible.physical.is_some_and(|n| n > 0);
    (case.no_device() && hides).then(|| visible::hides_all(case).says(NO_GPUS))
}

pub(super) fn no_permission(case: &Case) -> Option<Draft> {
    let mut nodes =
        case.machine.system.device_nodes.iter().filter(|node| node.state == NodeState::Denied).peekable();
    nodes.peek()?;
    let draft = Draft::error("no-permission", "this user has no permission to open NVIDIA's device files")
        .seen_all(nodes.map(|node| format!("{} cannot be opened (EACCES)", node.path)));
    Some(if case.machine.system.container.is_some() {
        draft
            .remedy("start the container with the numeric group of the files (often `video` or `render`)")
            .command("docker run --gpus all --group-add \"$(stat -c %g /dev/nvidia0)\" …    # on the host")
    } else {
        draft
            .remedy(
                "add the user to the group of the files (often `video` or `render`), or request a GPU from the job scheduler",
            )
            .command("sudo usermod -aG video,render \"$USER\"    # then log in again")
    })
}

pub(super) fn mig(case: &Case) -> Option<Draft> {
    let mut divided = case.listed.gpus.iter().filter(|gpu| gpu.mig == Some(true)).peekable();
    if !case.no_device() || divided.peek().is_none() {
        return None;
    }
    Some(
        Draft::error("mig-without-instances", "MIG is enabled, but no MIG instance exists")
            .seen_all(divided.map(|gpu| format!("GPU {} ({}): MIG is enabled", gpu.index, gpu.name)))
            .says(NO_GPUS)
            .remedy("create MIG instances, or disable MIG (`sudo nvidia-smi -mig 0`)")
            .command("sudo nvidia-smi mig -cgi 0 -C    # profiles: nvidia-smi mig -lgip"),
    )
}

pub(super) fn none(case: &Case) -> Option<Draft> {
    if !case.no_device() && !case.no_library() {
        return None;
    }
    let system = &case.machine.system;
    let draft = Draft::error("no-device", "the driver finds no GPU")
        .seen_all(case.smi_error())
        .seen_all(
            system.nvidia_pci_devices.map(|n| format!("NVIDIA display controllers on the PCI bus: {n}")),
        )
        .seen_all(case.on_the_bus())
        .says(NO_GPUS);
    Some(match system.nvidia_pci_devices {
        Some(0) => draft.remedy("check that the GPU is seated, powered and passed through to this (virtual) machine"),
        _ => draft
            .remedy("look into the kernel's log: the GPU may be too old or too new for this driver, or be held by another \
                 one")
            .command("sudo dmesg | grep -iE 'nvrm|xid|nouveau'"),
    })
}
