//! `samedevice verify`: where GPUs are had in a particular way, or are other makers': containers in WSL, jobs, notebooks, pods,
//! Jetsons, ROCm, and Pythons that there are no wheels for.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod machine;

use machine::{Machine, Torch, expect, problem, problems};
use serde_json::json;

const WSL: &str = "Linux version 5.15 (root@x) microsoft-standard-WSL2\n";

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
fn the_first_wsl_has_no_gpu() {
    let machine = Machine::bare().torch(&Torch::cu126());
    let machine =
        machine.system("proc/version", "Linux version 4.4.0-19041-Microsoft (x@y) #488-Microsoft\n");
    let report = machine.set("WSL_DISTRO_NAME", "Ubuntu").verify("");
    expect(&report, "wsl-1", "no", &["wsl --set-version Ubuntu 2"]);
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
        &[srun, "/dev/nvidiactl cannot be opened (EPERM)"],
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
fn an_image_that_brings_a_library() {
    let image = || {
        Machine::with_gpu().torch(&Torch::cu126()).library("compat", machine::stub()).system(".dockerenv", "")
    };
    for code in [100, 999] {
        let report = image().set("STUB_FAIL", format!("cuInit={code}")).verify("");
        expect(&report, "container-without-gpu", "no", &["no /dev/nvidia0", "docker run --gpus all"]);
    }
    // With the GPU's files it is something else.
    let report = image()
        .system("dev/nvidiactl", "")
        .system("dev/nvidia0", "")
        .set("STUB_FAIL", "cuInit=999")
        .verify("");
    expect(&report, "unknown-error", "no", &[]);
}

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
    expect(&report, "rocm-other-gpu", "no", &["7.0.51831", "the GPU is from NVIDIA", "whl/cu126"]);
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
    let text = Machine::bare().torch(&xpu).run("verify").stdout;
    assert!(text.ends_with("Unknown: PyTorch is built for XPU, which is not probed.\n"), "{text}");
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
