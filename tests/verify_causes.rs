//! `samedevice verify`: why a GPU that is there is not had, by what the system shows: the kernel's module, the generation of the
//! GPU, those who give GPUs away, other makers' GPUs.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod machine;

use machine::{Machine, Torch, expect, problem, problems};
use serde_json::json;

const KERNEL: &str = "6.8.0-49-generic";
const WSL: &str = "Linux version 5.15 (root@x) microsoft-standard-WSL2\n";
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
}

#[test]
fn containers_in_wsl() {
    let container =
        || Machine::bare().torch(&Torch::cu126()).system("proc/version", WSL).system(".dockerenv", "");
    let report = container().verify("");
    expect(&report, "wsl-container-without-gpu", "no", &["/dev/dxg", "docker run --gpus all"]);
    // With the GPU, and without CUDA's library.
    let report = container().system("dev/dxg", "").verify("");
    expect(&report, "driver-library-missing", "no", &["NVIDIA_DRIVER_CAPABILITIES"]);
    // With all of it; the library is another file than WSL's own.
    let whole = || container().system("dev/dxg", "").library("system/lib", machine::stub());
    assert_eq!(whole().verify("")["status"], "usable");
    let report = whole().set("STUB_FAIL", "cuInit=500").verify("");
    expect(
        &report,
        "wsl-container-toolkit",
        "no",
        &["500", "named symbol not found", "4.31", "nvidia-container-toolkit"],
    );
    let report = whole().set("STUB_DEVICES", "0").verify("");
    expect(&report, "wsl-no-driver", "no", &["in Windows"]);
    // The same code elsewhere is no sign of that.
    let report = Machine::usable().set("STUB_FAIL", "cuInit=500").verify("");
    expect(&report, "driver-error", "no", &[]);
}

#[test]
fn a_slurm_job_without_a_gpu() {
    let job = |machine: Machine| machine.set("SLURM_JOB_ID", "4711");
    let srun = "srun --gres=gpu:1";
    // A node without any, one whose files are kept from the job, one where a variable says so.
    expect(
        &job(Machine::bare().torch(&Torch::cu126())).verify(""),
        "slurm-without-gpu",
        "no",
        &[srun, "SLURM_JOB_GPUS"],
    );
    let machine = job(Machine::usable()).without("system/dev/nvidia0").set("STUB_FAIL", "cuInit=100");
    let machine = machine.set("LD_PRELOAD", machine::forbidden().to_str().unwrap());
    expect(
        &machine.verify(""),
        "slurm-without-gpu",
        "no",
        &[srun, "/dev/nvidiactl may not be opened (EPERM)"],
    );
    let machine = job(Machine::usable()).set("CUDA_VISIBLE_DEVICES", "NoDevFiles");
    expect(&machine.verify(""), "slurm-without-gpu", "no", &["NoDevFiles", "No CUDA GPUs are available"]);
    // In a container of the job, too.
    let machine = job(Machine::bare().torch(&Torch::cu126())).set("APPTAINER_CONTAINER", "/x.sif");
    expect(&machine.verify(""), "slurm-without-gpu", "no", &[]);
    // What it was given is not Slurm's doing, nor is what somebody else has set.
    let machine = job(Machine::bare().torch(&Torch::cu126()))
        .set("SLURM_JOB_GPUS", "0")
        .set("APPTAINER_CONTAINER", "/x");
    expect(&machine.verify(""), "container-without-gpu", "no", &["--nv"]);
    let machine = job(Machine::usable()).set("CUDA_VISIBLE_DEVICES", "7");
    expect(&machine.verify(""), "hidden-by-visible-devices", "no", &[]);
    let machine = job(Machine::usable()).set("STUB_FAIL", "cuInit=999");
    expect(&machine.verify(""), "unknown-error", "no", &[]);
    let machine = job(Machine::with_gpu().torch(&Torch::cu126()));
    expect(&machine.verify(""), "driver-not-installed", "no", &[]);
    assert_eq!(job(Machine::usable()).verify("")["status"], "usable");
}

#[test]
fn notebooks_without_a_gpu() {
    let notebook = || Machine::bare().torch(&Torch::cu126()).system(".dockerenv", "");
    let report =
        notebook().set("COLAB_RELEASE_TAG", "release-colab_20261101").set("COLAB_GPU", "0").verify("");
    expect(&report, "colab-without-gpu", "no", &["Change runtime type"]);
    assert_eq!(report["system"]["surroundings"], json!(["colab"]));
    let report = notebook().set("KAGGLE_KERNEL_RUN_TYPE", "Interactive").verify("");
    expect(&report, "kaggle-without-gpu", "no", &["Accelerator"]);
    let machine = Machine::usable().set("COLAB_GPU", "1").system(".dockerenv", "");
    assert_eq!(machine.verify("")["status"], "usable");
}

#[test]
fn a_library_where_nobody_looks() {
    let pod = || Machine::bare().torch(&Torch::cu126()).set("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    let machine = pod().system("usr/local/nvidia/lib64/libcuda.so.1", "").system("dev/nvidiactl", "");
    expect(
        &machine.verify(""),
        "driver-library-not-searched",
        "no",
        &[
            "Google",
            "export LD_LIBRARY_PATH=/usr/local/nvidia/lib64:",
            "Found no NVIDIA driver on your system",
        ],
    );
    let nixos = Machine::with_gpu()
        .torch(&Torch::cu126())
        .system("etc/NIXOS", "")
        .system("run/opengl-driver/lib/libcuda.so.1", "");
    let report = nixos.verify("");
    expect(&report, "driver-library-not-searched", "no", &["NixOS", "/run/opengl-driver/lib"]);
    assert_eq!(report["system"]["surroundings"], json!(["nixos"]));
}

#[test]
fn a_pod_that_another_runtime_runs() {
    let pod = || Machine::bare().torch(&Torch::cu126()).set("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    let uuid = "GPU-a0111111-1111-1111-1111-111111111111";
    let report = pod().set("NVIDIA_VISIBLE_DEVICES", uuid).verify("");
    expect(&report, "runtime-class", "no", &["runtimeClassName", "kubectl patch deployment"]);
    assert!(!problem(&report, "runtime-class").contains(uuid), "it identifies the machine");
    let report = pod().system("dev/nvidia0", "").verify("");
    expect(&report, "runtime-class", "no", &["device files"]);
    // Images ask for all GPUs, whether or not the pod has one.
    let report = pod().set("NVIDIA_VISIBLE_DEVICES", "all").verify("");
    expect(&report, "container-without-gpu", "no", &["nvidia.com/gpu: 1"]);
}

const TEGRA: &str = "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64\n";

#[test]
fn a_jetson_is_on_no_bus() {
    let jetson = || Machine::bare().torch(&Torch::cu126()).system("etc/nv_tegra_release", TEGRA);
    let report = jetson().verify("");
    expect(&report, "jetson-driver", "no", &["R36", "nvidia-l4t-cuda"]);
    let report = jetson().system(".dockerenv", "").verify("");
    expect(&report, "container-without-gpu", "no", &["--runtime nvidia"]);
    let report = jetson().system("usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1", "").verify("");
    expect(&report, "driver-library-not-searched", "no", &["a Jetson"]);
    // In a container the firmware says it.
    let board = Machine::bare()
        .torch(&Torch::cu126())
        .system("proc/device-tree/compatible", "nvidia,p3737\0nvidia,tegra234\0");
    expect(&board.verify(""), "jetson-driver", "no", &[]);
}

#[test]
fn a_jetson_has_wheels_of_its_own() {
    let jetson = |release: &str, torch: &Torch| {
        Machine::bare()
            .library("system/lib", machine::stub())
            .system("etc/nv_tegra_release", release)
            .set("STUB_CAPABILITY", "8.7")
            .set("STUB_VERSION", "12060")
            .torch(torch)
    };
    let report = jetson(TEGRA, &Torch::cpu()).verify("");
    let index = "--index-url https://pypi.jetson-ai-lab.io/jp6/cu126";
    expect(&report, "jetson-wheels", "no", &["R36", index, "Torch not compiled with CUDA enabled"]);
    assert_eq!(problems(&report), ["jetson-wheels"]);
    // PyPI's for this processor is one for servers: 8.0 code does not run on 8.7.
    let server = Torch { archs: "sm_80 sm_90", ..Torch::cu126() };
    let report = jetson(TEGRA, &server).verify("");
    expect(&report, "jetson-wheels", "yes", &[index, "no kernel image is available", "sm_80 sm_90"]);
    assert_eq!(problems(&report), ["jetson-wheels"]);
    let older = jetson("# R35 (release), REVISION: 4.1\n", &Torch::cpu()).verify("");
    expect(&older, "jetson-wheels", "no", &["forums.developer.nvidia.com"]);
    let own = Torch { archs: "sm_87", ..Torch::cu126() };
    assert_eq!(jetson(TEGRA, &own).verify("")["status"], "usable");
    // With CUDA 13.2 those for servers run.
    let unified = Torch { cuda: Some("13.2"), ..server };
    let report = jetson("# R39 (release), REVISION: 2.0\n", &unified).set("STUB_VERSION", "13020").verify("");
    assert_eq!(report["status"], "usable", "{report:#}");
}

/// A node of AMD's compute driver.
fn kfd(machine: Machine, node: u32, engine: u32) -> Machine {
    let file = format!("sys/class/kfd/kfd/topology/nodes/{node}/properties");
    machine.system(&file, &format!("cpu_cores_count 0\nsimd_count 304\ngfx_target_version {engine}\n"))
}

#[test]
fn amd_gpus_are_asked_through_their_own_driver() {
    let rocm = || Machine::bare().torch(&Torch::rocm());
    let with_gpu = || rocm().on_bus("0000:03:00.0", "0x1002", "0x74a1");
    let whole = || kfd(kfd(kfd(with_gpu().system("dev/kfd", ""), 0, 0), 1, 90402), 2, 90402);
    let report = whole().verify("");
    assert_eq!((&report["status"], &report["worlds"]["gpus"]), (&json!("usable"), &json!(2)), "{report:#}");
    assert_eq!(report["worlds"]["cuda"]["because"], "2 GPUs of AMD's: gfx942, gfx942");
    assert_eq!(
        report["system"]["amd"],
        json!({"kfd": "usable", "gpus": ["gfx942", "gfx942"], "pci_devices": 1})
    );
    assert_eq!(problems(&report), [""; 0]);
    assert!(problem(&report, "rocm-build").contains("7.0.51831"));
    // A variable chooses: that is not followed.
    let report = whole().set("HIP_VISIBLE_DEVICES", "0").verify("");
    assert_eq!((&report["status"], &report["worlds"]["gpus"]), (&json!("unknown"), &json!(null)));

    expect(&rocm().verify(""), "rocm-no-gpu", "no", &["No HIP GPUs are available"]);
    assert_eq!(problems(&rocm().verify("")), ["rocm-no-gpu"], "NVIDIA's driver does not matter");
    expect(&with_gpu().verify(""), "rocm-module-not-loaded", "no", &["modprobe amdgpu"]);
    expect(&with_gpu().system(".dockerenv", "").verify(""), "rocm-container", "no", &["--device=/dev/kfd"]);
    let report = kfd(with_gpu().system("dev/kfd", ""), 0, 0).verify("");
    expect(&report, "rocm-unsupported-gpu", "no", &["none of its nodes"]);
    // The wrong build.
    let report = Machine::with_driver().torch(&Torch::rocm()).verify("");
    expect(&report, "rocm-other-gpu", "no", &["7.0.51831", "the GPU is NVIDIA's", "whl/cu126"]);
}

#[test]
fn a_file_of_amds_that_may_not_be_opened() {
    let denied = |path: &&&str| {
        let opened = std::fs::OpenOptions::new().read(true).write(true).open(path);
        opened.is_err_and(|error| error.raw_os_error() == Some(13))
    };
    let target = ["/proc/sys/vm/compact_memory", "/proc/sys/net/ipv4/route/flush"];
    let Some(target) = target.iter().find(denied) else {
        eprintln!("skipped: this system lets everybody open everything");
        return;
    };
    let machine = kfd(Machine::bare().torch(&Torch::rocm()), 1, 110_000);
    std::os::unix::fs::symlink(target, machine.path("system/dev/kfd")).unwrap();
    expect(&machine.verify(""), "rocm-no-permission", "no", &["usermod -aG render,video"]);
}

#[test]
fn builds_for_others_need_nothing_of_nvidias() {
    let xpu = Torch { version: "2.15.0+xpu", xpu: Some("20250301"), ..Torch::cpu() };
    let report = Machine::bare().torch(&xpu).verify("");
    assert_eq!((problems(&report), &report["status"]), (vec![], &json!("unknown")), "{report:#}");
    let npu = Torch { packages: &[("torch-npu", "2.15.0")], ..Torch::cpu() };
    let report = Machine::bare().torch(&npu).verify("");
    assert_eq!((problems(&report), &report["status"]), (vec![], &json!("unknown")), "{report:#}");
    // With a GPU of NVIDIA's they are the wrong ones.
    let report = Machine::with_driver().torch(&xpu).verify("");
    expect(&report, "cpu-only-build", "no", &[]);
    let report = Machine::bare().torch(&Torch::cpu()).verify("");
    assert_eq!(problems(&report), ["no-gpu"]);
}

#[test]
fn a_python_that_there_are_no_wheels_for() {
    let with_python = |version: &str, machine: Machine| {
        let folder = format!("project/.venv/lib/python{version}/site-packages/_virtualenv.py");
        machine
            .file("project/.venv/pyvenv.cfg", format!("home = /nowhere/bin\nversion = {version}.1\n"))
            .file("project/.venv/bin/python", "")
            .file(&folder, "")
    };
    for version in ["3.7", "3.16"] {
        let report = with_python(version, Machine::with_driver()).verify("");
        let part = format!("it is Python {version}");
        let said = "Could not find a version that satisfies the requirement torch";
        expect(&report, "python-without-wheels", "yes", &[&part, said, "--python 3.12"]);
        assert!(!problem(&report, "no-pytorch").contains("pip install"), "{report:#}");
    }
    let report = with_python("3.12", Machine::with_driver()).verify("");
    expect(&report, "no-pytorch", "yes", &["pip install"]);
    // Alpine's C library; a machine without a GPU needs no wheel with CUDA.
    let musl = |machine: Machine| machine.torch(&Torch::cpu()).system("lib/ld-musl-x86_64.so.1", "");
    let report = musl(Machine::with_driver()).verify("");
    expect(&report, "python-without-wheels", "no", &["musl", "glibc"]);
    assert!(!problem(&report, "cpu-only-build").contains("whl/"), "{report:#}");
    assert_eq!(problems(&musl(Machine::bare()).verify("")), ["no-gpu"]);
}

#[test]
fn an_older_report_has_less_in_it() {
    let mut report = Machine::usable().verify("");
    let system = report["system"].as_object_mut().unwrap();
    for field in ["surroundings", "nvidia_gpus", "kernel_module", "amd"] {
        assert!(system.remove(field).is_some(), "{field}");
    }
    let machine = Machine::bare().file("project/older.json", report.to_string());
    let run = machine.run("verify --machine older.json");
    assert_eq!(run.code, Some(0), "{run:?}");
}
