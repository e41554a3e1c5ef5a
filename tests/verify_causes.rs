//! `samedevice verify`: why a GPU that is there is not had, by what the system shows: the kernel's module, the generation of the
//! GPU, the switches of a laptop.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod machine;

use machine::{Machine, Torch, expect, problem, problems};
use serde_json::json;

const KERNEL: &str = "6.8.0-49-generic";
/// What `nvidia-smi` prints where no module is loaded.
const SMI: &str = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.";

/// An installed driver whose kernel module is not loaded; the library answers that there is no device.
fn unloaded() -> Machine {
    Machine::with_gpu()
        .library("system/lib", machine::stub())
        .torch(&Torch::cu126())
        .set("STUB_FAIL", "cuInit=100")
        .system(
            "proc/modules",
            "snd_hda_intel 61440 5 - Live 0x0000000000000000\ni915 4000000 1 - Live 0x0\n",
        )
        .system("proc/sys/kernel/osrelease", &format!("{KERNEL}\n"))
}

/// The module, as `depmod` lists it for this kernel.
fn built(machine: Machine, kernel: &str) -> Machine {
    let list =
        "kernel/drivers/net/tun.ko.zst:\nupdates/dkms/nvidia.ko.zst: kernel/drivers/gpu/drm/drm.ko.zst\n";
    machine.system(&format!("lib/modules/{kernel}/modules.dep"), list)
}

/// A driver that is loaded and finds no device, with this line in `/proc` and this GPU.
fn generation(version: &str, device: &str) -> Machine {
    Machine::bare()
        .on_bus("0000:10:00.0", "0x10de", device)
        .library("system/lib", machine::stub())
        .torch(&Torch::cu126())
        .set("STUB_DEVICES", "0")
        .system("proc/modules", "nvidia 56000000 0 - Live 0x0 (POE)\n")
        .system(
            "proc/driver/nvidia/version",
            &format!("NVRM version: NVIDIA UNIX {version}  Release Build\n"),
        )
        .system("dev/nvidiactl", "")
        .program("nvidia-smi", "echo 'No devices were found'; exit 6")
}

#[test]
fn the_kernel_module_is_not_loaded() {
    let machine = built(unloaded(), KERNEL).program("nvidia-smi", &format!("echo \"{SMI}\"; exit 9"));
    let report = machine.verify("");
    expect(
        &report,
        "kernel-module-not-loaded",
        "no",
        &[
            "no /proc/driver/nvidia/version",
            "10de:20b0 (Ampere)",
            SMI,
            "sudo modprobe nvidia",
            "100 (NO_DEVICE)",
        ],
    );
    assert_eq!(report["system"]["kernel_module"]["loaded"], false);
    assert_eq!(report["system"]["kernel_module"]["built"], true);
    // The driver may also not say why.
    let report = unloaded().set("STUB_FAIL", "cuInit=999").verify("");
    expect(&report, "kernel-module-not-loaded", "no", &["999 (UNKNOWN)"]);
    // Where the module is there, it is something else.
    let loaded = unloaded().system("sys/module/nvidia/refcnt", "1");
    expect(&loaded.verify(""), "no-device", "no", &[]);
}

#[test]
fn the_kernel_module_was_not_built_for_the_kernel() {
    let older = "6.8.0-45-generic";
    let list = "kernel/drivers/net/tun.ko.zst:\nkernel/drivers/i2c/busses/i2c-nvidia-gpu.ko:\n";
    let machine = || built(unloaded(), older).system(&format!("lib/modules/{KERNEL}/modules.dep"), list);
    expect(
        &machine().verify(""),
        "kernel-module-not-built",
        "no",
        &[KERNEL, older, "Module nvidia not found in directory", "dkms autoinstall"],
    );
    let fedora = machine().system("usr/sbin/akmods", "");
    expect(&fedora.verify(""), "kernel-module-not-built", "no", &["akmods --force"]);
    // With Secure Boot it has to be built first, too.
    let signed = machine().system(EFI, "\x06\0\0\0\x01");
    expect(&signed.verify(""), "kernel-module-not-built", "no", &[]);
}

const EFI: &str = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

#[test]
fn secure_boot_rejects_the_kernel_module() {
    let machine = built(unloaded(), KERNEL).system(EFI, "\x06\0\0\0\x01");
    expect(
        &machine.verify(""),
        "kernel-module-rejected",
        "no",
        &["Key was rejected by service", "mokutil --import /var/lib/dkms/mok.pub"],
    );
    let ubuntu =
        built(unloaded(), KERNEL).system(EFI, "\x06\0\0\0\x01").system("var/lib/shim-signed/mok/MOK.der", "");
    expect(&ubuntu.verify(""), "kernel-module-rejected", "no", &["/var/lib/shim-signed/mok/MOK.der"]);
    let off = built(unloaded(), KERNEL).system(EFI, "\x06\0\0\0\0");
    expect(&off.verify(""), "kernel-module-not-loaded", "no", &[]);
}

#[test]
fn another_driver_has_the_gpu() {
    let bound = built(unloaded(), KERNEL).bound("0000:10:00.0", "nouveau").verify("");
    expect(&bound, "nouveau", "no", &["it is the driver of the GPU", "blacklist nouveau"]);
    assert_eq!(bound["system"]["nvidia_gpus"][0]["driver"], "nouveau");
    let listed = unloaded().system("proc/modules", "nouveau 3096576 11 - Live 0x0\n");
    expect(&listed.verify(""), "nouveau", "no", &["among the loaded modules"]);
    let held = built(unloaded(), KERNEL).bound("0000:10:00.0", "vfio-pci").verify("");
    expect(&held, "gpu-held-for-guest", "no", &["virtual machine", "lspci -nnk -s 0000:10:00.0"]);
    // Without NVIDIA's driver `nouveau` is what comes of it.
    let none =
        Machine::with_gpu().torch(&Torch::cu126()).system("proc/modules", "nouveau 3096576 11 - Live 0x0\n");
    expect(&none.verify(""), "driver-not-installed", "no", &["`nouveau` instead"]);
}

#[test]
fn the_module_is_kept_out() {
    let file = "etc/modprobe.d/blacklist-nvidia.conf";
    let forbidden = || built(unloaded(), KERNEL).system(file, "# by hand\nblacklist nvidia\n");
    expect(
        &forbidden().verify(""),
        "kernel-module-forbidden",
        "no",
        &["/etc/modprobe.d/blacklist-nvidia.conf"],
    );
    let other = built(unloaded(), KERNEL).system("etc/modprobe.d/n.conf", "blacklist nouveau\n");
    expect(&other.verify(""), "kernel-module-not-loaded", "no", &[]);
    // What the laptop's switch has written is the switch's.
    let prime = forbidden().system("etc/prime-discrete", "off\n").verify("");
    expect(&prime, "optimus", "no", &["prime-select on-demand", "/etc/prime-discrete", SMI]);
    let on = built(unloaded(), KERNEL).system("etc/prime-discrete", "on-demand\n").verify("");
    expect(&on, "kernel-module-not-loaded", "no", &[]);
}

#[test]
fn a_laptop_whose_gpu_is_gone_from_the_bus() {
    let laptop = || Machine::bare().on_bus("0000:00:02.0", "0x8086", "0xa7a0").torch(&Torch::cu126());
    let report = laptop().system("etc/prime-discrete", "off\n").verify("");
    expect(&report, "optimus", "no", &["prime-select"]);
    let report = laptop().system("etc/supergfxd.conf", "{\n  \"mode\": \"Integrated\",\n}\n").verify("");
    expect(&report, "optimus", "no", &["supergfxctl --mode Hybrid"]);
    expect(&laptop().verify(""), "no-gpu", "no", &[]);
}

#[test]
fn the_driver_has_dropped_the_gpu() {
    for (version, device, family, last) in [
        ("Open Kernel Module for x86_64  590.48.01", "0x1b80", "Pascal", "580"),
        ("x86_64 Kernel Module  610.43.02", "0x17c8", "Maxwell", "580"),
        ("x86_64 Kernel Module  595.58.03", "0x1db5", "Volta", "580"),
        ("x86_64 Kernel Module  535.104.05", "0x102d", "Kepler", "470"),
        ("x86_64 Kernel Module  470.82.01", "0x06c0", "Fermi", "390"),
    ] {
        let report = generation(version, device).verify("");
        let legacy = format!("supported through the NVIDIA {last}.xx Legacy drivers");
        let command = format!("nvidia-driver-{last} ");
        expect(&report, "gpu-dropped-by-driver", "no", &[family, &legacy, &command, "No devices were found"]);
        let builds = problem(&report, "gpu-dropped-by-driver").contains("builds for CUDA 12.6");
        assert_eq!(builds, last == "580", "{family}");
    }
    // The last one that has it, one that is still in all of them, and one that nobody knows.
    for (version, device) in [("580.95.05", "0x1b80"), ("590.48.01", "0x1eb8"), ("590.48.01", "0xffff")] {
        let report = generation(&format!("x86_64 Kernel Module  {version}"), device).verify("");
        expect(&report, "no-device", "no", &[]);
    }
    // One of two is not dropped: it is something else.
    let two =
        generation("x86_64 Kernel Module  590.48.01", "0x1b80").on_bus("0000:20:00.0", "0x10de", "0x1eb8");
    expect(&two.verify(""), "no-device", "no", &["(Pascal)", "(Turing)"]);
}

#[test]
fn the_driver_has_dropped_one_of_two_gpus() {
    let version = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build\n";
    let machine = || Machine::usable().system("proc/driver/nvidia/version", version);
    let report = machine().on_bus("0000:20:00.0", "0x10de", "0x1b80").verify("");
    assert_eq!((problems(&report), &report["status"]), (vec!["gpu-dropped-by-driver"], &json!("usable")));
    let text = problem(&report, "gpu-dropped-by-driver");
    assert!(text.contains("0000:20:00.0 (Pascal)") && text.contains("shows 1 of 2"), "{text}");
    // What is not shown for another reason is not told.
    let report = machine().on_bus("0000:20:00.0", "0x10de", "0x2204").verify("");
    assert_eq!(problems(&report), [""; 0]);
}

#[test]
fn the_module_is_of_the_other_flavor() {
    let report = generation("Open Kernel Module for x86_64  570.86.15", "0x1b80").verify("");
    expect(
        &report,
        "open-module-on-old-gpu",
        "no",
        &["Pascal", "does not include the required GPU System Processor (GSP)", "nvidia-driver-570 "],
    );
    assert_eq!(report["system"]["kernel_module"]["flavor"], "open");
    let report = generation("x86_64 Kernel Module  580.95.05", "0x2b85").verify("");
    expect(
        &report,
        "proprietary-module-on-new-gpu",
        "no",
        &["Blackwell", "requires use of the NVIDIA open kernel modules", "nvidia-driver-580-open"],
    );
    assert_eq!(report["system"]["nvidia_gpus"][0]["family"], "blackwell");
    for (version, device) in [
        ("Open Kernel Module for x86_64  580.95.05", "0x2b85"),
        ("Open Kernel Module for x86_64  580.95.05", "0x1eb8"),
        ("x86_64 Kernel Module  580.95.05", "0x2330"),
    ] {
        expect(&generation(version, device).verify(""), "no-device", "no", &[]);
    }
}

#[test]
fn a_driver_for_an_old_gpu_is_one_that_has_it() {
    let old = Machine::bare().on_bus("0000:10:00.0", "0x10de", "0x1b80").torch(&Torch::cu126());
    expect(&old.verify(""), "driver-not-installed", "no", &["(Pascal)", "nvidia-driver-580"]);
    // And PyTorch is one that has code for it, though no driver tells what it can do.
    for (device, index) in [("0x1b80", "whl/cu126"), ("0x2b85", "whl/cu130")] {
        let machine = Machine::bare().on_bus("0000:10:00.0", "0x10de", device).torch(&Torch::cpu());
        let text = problem(&machine.verify(""), "cpu-only-build");
        assert!(text.contains(index), "{device}: {text}");
    }
}
