//! NVIDIA's kernel module is not loaded, and why.

use super::device::NO_GPUS;
use super::{Case, Draft};
use crate::verify::machine::KernelModule;

/// What `nvidia-smi` says without the module.
const SMI: &str = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver \
     is installed and running.";
/// The state of Ubuntu's `prime-select`: `on`, `off` or `on-demand`.
const PRIME: &str = "/etc/prime-discrete";
/// Where `supergfxctl` keeps its mode.
const SUPERGFX: &str = "/etc/supergfxd.conf";

/// The library is there and says nothing else, and no module of NVIDIA's is: neither in the list of modules, nor has it left its
/// version in `/proc`. In a container the host would have to be asked.
fn absent<'a>(case: &'a Case) -> Option<&'a KernelModule> {
    let system = &case.machine.system;
    let module = &system.kernel_module;
    let known = module.loaded == Some(true) || case.machine.driver.version.is_some() || case.has_nodes();
    let elsewhere = system.container.is_some() || system.wsl;
    let hardware = system.nvidia_pci_devices.is_some_and(|n| n > 0);
    (case.no_reason() && !known && !elsewhere && hardware).then_some(module)
}

fn draft(case: &Case, id: &str, cause: impl Into<String>) -> Draft {
    Draft::error(id, cause)
        .seen("there is no /proc/driver/nvidia/version")
        .seen_all(case.on_the_bus())
        .seen_all(case.smi_error())
}

/// A laptop with two GPUs that was told to use the other one. NVIDIA's may then even be gone from the bus.
pub(super) fn optimus(case: &Case) -> Option<Draft> {
    let system = &case.machine.system;
    let gone = system.nvidia_pci_devices == Some(0) && (case.no_library() || case.no_reason());
    if absent(case).is_none() && !gone || system.container.is_some() || system.wsl {
        return None;
    }
    let prime = (case.files.text(PRIME).trim() == "off")
        .then_some((PRIME, "sudo prime-select on-demand    # then reboot"));
    let supergfx = case.files.text(SUPERGFX).contains("\"Integrated\"");
    let supergfx = supergfx.then_some((SUPERGFX, "supergfxctl --mode Hybrid    # then log in again"));
    let (file, command) = prime.or(supergfx)?;
    Some(
        draft(case, "optimus", "the NVIDIA GPU is switched off: the laptop is set to use only its other GPU")
            .seen(format!("{file} says so"))
            .says(SMI)
            .remedy("switch it on; the other GPU can still drive the screen")
            .command(command),
    )
}

pub(super) fn forbidden(case: &Case) -> Option<Draft> {
    let file = absent(case)?.forbidden_by.as_deref()?;
    Some(
        draft(
            case,
            "kernel-module-forbidden",
            "a configuration file stops NVIDIA's kernel module from loading",
        )
        .seen(format!("{file} says so"))
        .says(SMI)
        .remedy("remove the line and load the module")
        .command(format!(
            "sudo sed -i -E '/^ *(blacklist|alias|install) +nvidia( |$)/d' {file} && sudo modprobe nvidia"
        )),
    )
}

pub(super) fn held_for_guest(case: &Case) -> Option<Draft> {
    absent(case)?;
    let held =
        case.machine.system.nvidia_gpus.iter().find(|gpu| gpu.driver.as_deref() == Some("vfio-pci"))?;
    Some(
        draft(case, "gpu-held-for-guest", "the GPU is reserved for a virtual machine (vfio-pci)")
            .says(NO_GPUS)
            .remedy(
                "run this in that virtual machine, or remove the GPU from the `vfio-pci` configuration and reboot",
            )
            .command(format!("lspci -nnk -s {}", held.address)),
    )
}

pub(super) fn nouveau(case: &Case) -> Option<Draft> {
    let module = absent(case)?;
    let bound = case.machine.system.nvidia_gpus.iter().any(|gpu| gpu.driver.as_deref() == Some("nouveau"));
    (bound || module.nouveau).then(|| {
        draft(case, "nouveau", "the GPU uses the `nouveau` driver, which does not support CUDA")
            .seen(if bound { "it is the driver of the GPU" } else { "it is among the loaded modules" })
            .says(SMI)
            .remedy("blacklist `nouveau` and reboot")
            .command(
                "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee /etc/modprobe.d/nouveau.conf && sudo \
                 update-initramfs -u && sudo reboot    # Fedora: sudo dracut --force",
            )
    })
}

pub(super) fn not_built(case: &Case) -> Option<Draft> {
    let module = absent(case)?;
    let kernel = module.kernel.as_deref()?;
    if module.built != Some(false) {
        return None;
    }
    let cause = format!("NVIDIA's kernel module was not built for the running kernel ({kernel})");
    let others = match module.built_for.as_slice() {
        [] => "it is built for no kernel".to_owned(),
        some => format!("it is built for {}", some.join(", ")),
    };
    let akmods = case.files.at("/usr/sbin/akmods").exists();
    Some(
        draft(case, "kernel-module-not-built", cause)
            .seen(others)
            .says("modprobe: FATAL: Module nvidia not found in directory /lib/modules")
            .remedy(
                "install the headers of the running kernel and build the module; repeat this after each kernel update",
            )
            .command(if akmods {
                "sudo akmods --force && sudo modprobe nvidia"
            } else {
                "sudo apt install linux-headers-$(uname -r) && sudo dkms autoinstall && sudo modprobe nvidia"
            }),
    )
}

pub(super) fn rejected(case: &Case) -> Option<Draft> {
    let module = absent(case)?;
    (module.secure_boot == Some(true)).then(|| {
        // Ubuntu's own key, and that of DKMS elsewhere.
        let ubuntu = "/var/lib/shim-signed/mok/MOK.der";
        let key = if case.files.at(ubuntu).exists() { ubuntu } else { "/var/lib/dkms/mok.pub" };
        draft(case, "kernel-module-rejected", "Secure Boot prevents the kernel from loading NVIDIA's module")
            .seen("the firmware's variable `SecureBoot` is 1")
            .says("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service")
            .remedy(
                "let the firmware trust the key that the module is signed with (it asks for it at the next start), or switch \
                 Secure Boot off",
            )
            .command(format!("sudo mokutil --import {key} && sudo reboot"))
    })
}

pub(super) fn not_loaded(case: &Case) -> Option<Draft> {
    absent(case)?;
    Some(
        draft(case, "kernel-module-not-loaded", "NVIDIA's kernel module is not loaded")
            .says(SMI)
            .remedy("load it; if that fails, read the kernel log")
            .command("sudo modprobe nvidia || sudo dmesg | grep -iE 'nvrm|nvidia'"),
    )
}
