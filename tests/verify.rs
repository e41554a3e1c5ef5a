//! `samedevice verify`: every cause for "CUDA is not available", on machines that are not there.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod machine;

use std::time::Duration;

use machine::{GIB, Machine, Torch, expect, problem, problems};
use serde_json::json;

/// A line of `nvidia-smi` for the stub's device of this number.
fn gpu(number: u32, rest: &str) -> String {
    format!("{number}, GPU-a{number}111111-1111-1111-1111-111111111111, Stub GPU {number}, 550.54.14, {rest}")
}

#[test]
fn where_all_is_well_nothing_is_wrong() {
    let machine = Machine::usable();
    let report = machine.verify("");
    assert_eq!(problems(&report), [""; 0], "{report:#}");
    assert_eq!(report["status"], "usable");
    assert_eq!(report["worlds"]["cuda"]["holds"], "yes");
    assert_eq!(report["worlds"]["gpus"], 1);
    let device = &report["devices"][0];
    assert_eq!(device["name"], "Stub GPU 0");
    assert_eq!(device["capability"], "8.0");
    assert_eq!(device["total_bytes"], 40 * GIB);
    assert_eq!(device["uuid"], json!(null), "it identifies the machine");
    assert_eq!(device["in_build"], true);
    assert_eq!(device["pci"], "0000:10:00.0");
    assert_eq!(report["driver"]["version"], "550.54.14");
    assert_eq!(report["driver"]["cuda"], "12.4");
    assert_eq!(report["torch"]["version"], "2.15.0+cu126");
    let library = machine.path("system/lib/libcuda.so.550.54.14");
    assert_eq!(report["driver"]["loaded_from"], library.to_str().unwrap());
    let uuid = "GPU-a0111111-1111-1111-1111-111111111111";
    assert_eq!(machine.verify("--uuids")["devices"][0]["uuid"], uuid);
    let named = Machine::usable().set("CUDA_VISIBLE_DEVICES", format!("{uuid},0"));
    assert_eq!(named.verify("")["visible"]["value"], "GPU-…,0");
    assert!(!named.run("verify --output-format json").stdout.contains(uuid));
    assert!(named.run("verify --uuids").stdout.contains(uuid));
    let text = machine.run("verify").stdout;
    assert!(text.ends_with("PyTorch can use 1 GPU here.\n") && !text.contains("error["), "{text}");
}

#[test]
fn row_1_the_driver_is_older_than_pytorch() {
    let report = Machine::with_driver().torch(&Torch::pypi()).verify("");
    expect(
        &report,
        "driver-too-old",
        "no",
        &["550.54.14", "12.4", "13.2", "580", "whl/cu126", ".venv/bin/python"],
    );
    // Within a major version it works.
    let report = Machine::usable().set("STUB_VERSION", "12000").verify("");
    assert_eq!(report["status"], "usable");
    assert!(problem(&report, "driver-minor-older").contains("12.0"));
    let report = Machine::usable().set("STUB_VERSION", "13000").verify("");
    assert_eq!(
        (problems(&report).len(), &report["status"]),
        (0, &json!("usable")),
        "newer ones run older CUDA"
    );
    let report = Machine::usable().set("STUB_VERSION", "11040").verify("");
    expect(&report, "driver-too-old", "no", &["whl/cu118"]);
    let report = Machine::usable().set("STUB_VERSION", "10020").verify("");
    expect(&report, "driver-too-old", "no", &["525"]);
    assert!(!problem(&report, "driver-too-old").contains("whl/"), "no wheel is old enough");
}

#[test]
fn row_2_pytorch_is_built_without_cuda() {
    let report = Machine::with_driver().torch(&Torch::cpu()).verify("");
    expect(&report, "cpu-only-build", "no", &["2.15.0+cpu", "version.py", "whl/cu126", "pip"]);
    assert_eq!(report["worlds"]["gpus"], 0);
    // The record says nothing: the wheel of PyPI has no `+cpu` where that is the only one.
    let report =
        Machine::with_driver().torch(&Torch { version: "2.15.0", distribution: "2.15.0", ..Torch::cpu() });
    expect(&report.verify(""), "cpu-only-build", "no", &[]);
    let report = Machine::with_driver().torch(&Torch { installer: "uv", ..Torch::cpu() }).verify("");
    expect(&report, "cpu-only-build", "no", &["uv pip install --python"]);
    // Without a GPU it is what one wants.
    let report = Machine::bare().torch(&Torch::cpu()).verify("");
    assert_eq!(problems(&report), ["no-gpu"]);
}

#[test]
fn row_2_conda_chose_the_build_without_cuda() {
    let site = "conda/lib/python3.11/site-packages";
    let machine = Machine::with_driver()
        .file("conda/bin/python", "")
        .file("conda/conda-meta/pytorch-2.5.1-cpu_generic_py311_h1.json", "{}");
    let machine = machine.installed(site, &Torch { installer: "conda", ..Torch::cpu() });
    let conda = machine.path("conda").to_str().unwrap().to_owned();
    let report = machine.set("CONDA_PREFIX", conda).verify("");
    expect(&report, "cpu-only-build", "no", &["cpu_generic_py311_h1", "conda install", "pytorch-gpu"]);
    assert_eq!(report["python"]["found_by"], "CONDA_PREFIX");
}

#[test]
fn row_3_a_container_without_the_gpu() {
    let container = || Machine::bare().torch(&Torch::cu126());
    let report = container().system(".dockerenv", "").verify("");
    expect(
        &report,
        "container-without-gpu",
        "no",
        &["docker", "nvidia-container-toolkit", "--gpus all", "/dev/nvidiactl"],
    );
    let report = container().system("run/.containerenv", "").verify("");
    expect(&report, "container-without-gpu", "no", &["podman run --device nvidia.com/gpu=all"]);
    let report = container().set("KUBERNETES_SERVICE_HOST", "10.0.0.1").verify("");
    expect(&report, "container-without-gpu", "no", &["nvidia.com/gpu: 1"]);
    let report = container().set("APPTAINER_CONTAINER", "/x.sif").verify("");
    expect(&report, "container-without-gpu", "no", &["--nv"]);
    let report = container().system("proc/1/cgroup", "0::/docker/0123\n").verify("");
    expect(&report, "container-without-gpu", "no", &[]);
    // An image that brings the library, and no device.
    let machine = Machine::usable().without("system/dev/nvidia0").without("system/dev/nvidiactl");
    let report = machine.system(".dockerenv", "").set("STUB_DEVICES", "0").verify("");
    expect(&report, "container-without-gpu", "no", &["no /dev/nvidia0"]);
}

#[test]
fn row_3_a_container_without_the_compute_capability() {
    let listed = gpu(0, "40960, 20480, 8.0, Default, Disabled");
    let machine = Machine::with_gpu().torch(&Torch::cu126()).system(".dockerenv", "").smi(&[&listed], &[]);
    expect(&machine.verify(""), "driver-library-missing", "no", &["NVIDIA_DRIVER_CAPABILITIES"]);
}

#[test]
fn row_4_unknown_error() {
    let report = Machine::usable().set("STUB_FAIL", "cuInit=999").verify("");
    expect(&report, "unknown-error", "no", &["`cuInit` answered 999 (UNKNOWN)", "nvidia_uvm"]);
    let machine = Machine::usable().set("STUB_FAIL", "cuInit=999").without("system/dev/nvidia-uvm");
    expect(&machine.verify(""), "unknown-error", "no", &["/dev/nvidia-uvm is missing", "nvidia-modprobe -u"]);
}

#[test]
fn row_5_wsl() {
    let wsl = |machine: Machine| {
        machine.system("proc/version", "Linux version 5.15 (root@x) microsoft-standard-WSL2\n")
    };
    let report = wsl(Machine::bare()).torch(&Torch::cu126()).verify("");
    expect(&report, "wsl-no-driver", "no", &["in Windows", "wsl --update"]);
    assert_eq!(report["system"]["wsl"], true);
    let machine = wsl(Machine::bare()).torch(&Torch::cu126()).system("usr/lib/wsl/lib/libcuda.so.1", "");
    expect(&machine.verify(""), "wsl-library-not-found", "no", &["ldconfig"]);
    let report = wsl(Machine::usable()).set("STUB_FAIL", "cuInit=100").verify("");
    expect(&report, "wsl-linux-driver", "no", &["/usr/lib/wsl/lib", "system/lib/libcuda.so.550.54.14"]);
    let own =
        || wsl(Machine::bare()).torch(&Torch::cu126()).library("system/usr/lib/wsl/lib", machine::stub());
    assert_eq!(own().verify("")["status"], "usable");
    let report = own().set("STUB_DEVICES", "0").verify("");
    expect(&report, "wsl-no-driver", "no", &["finds no device", "in Windows"]);
    let report = own().set("STUB_FAIL", "cuInit=999").verify("");
    expect(&report, "unknown-error", "no", &["wsl --shutdown"]);
    assert!(!problem(&report, "unknown-error").contains("modprobe"), "there is no module in WSL");
}

#[test]
fn row_5_another_library_under_the_other_name() {
    // The probe's bindings open `libcuda.so` first; PyTorch opens `libcuda.so.1`.
    let machine = Machine::usable().file("other/libcuda.so", std::fs::read(machine::stub()).unwrap());
    let report = machine.search_first("other").verify("");
    assert_eq!(problems(&report), ["other-driver-library"]);
    assert_eq!(report["status"], "usable", "PyTorch is not concerned");
    assert!(report["driver"]["loaded_from"].as_str().unwrap().ends_with("system/lib/libcuda.so.550.54.14"));
    assert!(problem(&report, "other-driver-library").contains("other/libcuda.so"));
    assert_eq!(report["devices"].as_array().unwrap().len(), 1);
}

#[test]
fn row_6_library_and_kernel_module_differ() {
    let machine = Machine::usable().set("STUB_FAIL", "cuInit=803").system(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  545.23.08  Release Build\n",
    );
    let machine = machine
        .program("nvidia-smi", "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18");
    expect(
        &machine.verify(""),
        "driver-library-mismatch",
        "no",
        &["803 (SYSTEM_DRIVER_MISMATCH)", "545.23.08", "550.54.14", "reboot", "Failed to initialize NVML"],
    );
    let machine = Machine::usable().set("STUB_FAIL", "cuInit=803").system(".dockerenv", "");
    expect(&machine.verify(""), "driver-library-mismatch", "no", &["from the image"]);
}

#[test]
fn row_6_a_compatibility_library_on_a_desktop_gpu() {
    let machine = Machine::with_driver().torch(&Torch::cu126()).library("cuda-12.6/compat", machine::stub());
    let report = machine.set("STUB_FAIL", "cuInit=804").verify("");
    expect(&report, "forward-compatibility", "no", &["804", "cuda-12.6/compat", "LD_LIBRARY_PATH"]);
}

#[test]
fn row_7_the_gpu_was_lost_in_a_running_container() {
    let machine = Machine::usable().system(".dockerenv", "").set("STUB_FAIL", "cuInit=999");
    let machine = machine.program("nvidia-smi", "echo 'Failed to initialize NVML: Unknown Error'; exit 255");
    let machine = machine.set("LD_PRELOAD", machine::forbidden().to_str().unwrap());
    let report = machine.verify("");
    expect(
        &report,
        "gpu-lost-in-container",
        "no",
        &[
            "/dev/nvidiactl exists but cannot be opened",
            "Failed to initialize NVML: Unknown Error",
            "docker restart",
            "CDI",
        ],
    );
    let machine =
        Machine::usable().set("LD_PRELOAD", machine::forbidden().to_str().unwrap()).set("STUB_DEVICES", "0");
    expect(&machine.verify(""), "gpu-lost-in-container", "no", &[]);
}

#[test]
fn row_8_the_variable_hides_all() {
    for (value, reason) in [
        ("", "empty"),
        ("-1", "negative"),
        ("none", "is not a number"),
        ("NoDevFiles", "is not a number"),
        ("7", "no device 7, only devices 0 to 1"),
        ("0,0", "twice"),
        ("GPU-77", "no device has the UUID"),
        ("GPU-a", "several"),
        ("MIG-77", "no MIG instance is called MIG-77"),
    ] {
        let machine = Machine::usable().set("STUB_DEVICES", "2").set("CUDA_VISIBLE_DEVICES", value);
        let report = machine.verify("");
        let cause = format!("`CUDA_VISIBLE_DEVICES={value}` hides every GPU");
        expect(&report, "hidden-by-visible-devices", "no", &[&cause, reason, "there are 2", "unset"]);
        assert_eq!(report["visible"]["count"], 0, "{value}");
        assert_eq!(report["visible"]["physical"], 2, "{value}");
    }
}

#[test]
fn row_8_the_variable_hides_some() {
    for (value, count, reason) in [
        ("0,2,-1,1", 2, "negative"),
        ("0,9", 1, "no device 9"),
        ("1,x", 1, "is not a number"),
        ("GPU-a1,GPU-zz", 1, "no device has"),
    ] {
        let machine = Machine::usable().set("STUB_DEVICES", "4").set("CUDA_VISIBLE_DEVICES", value);
        let report = machine.verify("");
        assert_eq!(problems(&report), ["visible-devices-cut"], "{value}");
        assert_eq!(report["worlds"]["gpus"], count, "{value}");
        let text = problem(&report, "visible-devices-cut");
        assert!(text.contains(reason) && text.contains(value), "{value}: {text}");
    }
}

#[test]
fn row_8_devices_are_renumbered() {
    let machine = Machine::usable().set("STUB_DEVICES", "4").set("CUDA_VISIBLE_DEVICES", "2,1");
    let report = machine.verify("");
    assert_eq!(problems(&report), [""; 0]);
    let devices = report["devices"].as_array().unwrap();
    let physical: Vec<_> = devices.iter().map(|device| device["physical_index"].as_u64().unwrap()).collect();
    assert_eq!(physical, [2, 1]);
    assert_eq!(
        report["visible"],
        json!({
            "value": "2,1", "order": null, "count": 2, "physical": 4, "because": null,
        })
    );
    assert!(machine.run("verify").stdout.contains("2 of 4 visible (CUDA_VISIBLE_DEVICES=2,1)"));
}

#[test]
fn row_8_the_order_of_devices() {
    let report = Machine::usable().set("CUDA_DEVICE_ORDER", "PCI").verify("");
    assert_eq!(problems(&report), ["device-order-unknown"]);
    let report = Machine::usable().set("CUDA_DEVICE_ORDER", "PCI_BUS_ID").verify("");
    assert_eq!(problems(&report), [""; 0]);
    // CUDA's fastest is second on the bus.
    let rest = "40960, 20480, 8.0, Default, Disabled";
    let (a, b) = (gpu(1, rest).replacen('1', "0", 1), gpu(0, rest).replacen('0', "1", 1));
    let report = Machine::usable().set("STUB_DEVICES", "2").smi(&[&a, &b], &[]).verify("");
    assert!(problem(&report, "device-order").contains("cuda:0 is the Stub GPU 0 with number 1"));
}

#[test]
fn row_9_the_fabric_manager_does_not_run() {
    let report = Machine::usable().set("STUB_FAIL", "cuInit=802").verify("");
    expect(&report, "fabric-manager", "no", &["802", "nvidia-fabricmanager"]);
}

#[test]
fn row_10_the_gpu_is_too_old_or_too_new_for_the_build() {
    let machine = Machine::with_driver().set("STUB_VERSION", "13020").torch(&Torch::pypi());
    let report = machine.set("STUB_CAPABILITY", "6.1").verify("");
    expect(
        &report,
        "gpu-not-in-build",
        "yes",
        &["too old", "available, but not usable", "6.1", "sm_75 sm_80", "whl/cu126"],
    );
    assert_eq!(report["status"], "problem");
    let machine = Machine::usable().set("STUB_VERSION", "13020").set("STUB_CAPABILITY", "12.0");
    expect(&machine.verify(""), "gpu-not-in-build", "yes", &["too new", "12.0", "whl/cu130"]);
    // One of two.
    let machine = Machine::usable().set("STUB_DEVICES", "2").set("STUB_CAPABILITY", "8.6,3.5");
    let report = machine.verify("");
    assert_eq!((problems(&report), &report["status"]), (vec!["gpu-not-in-build"], &json!("usable")));
    // Intermediate code is compiled for what is newer.
    let torch = Torch { archs: "sm_80 sm_90 compute_90", ..Torch::cu126() };
    let report = Machine::with_driver().torch(&torch).set("STUB_CAPABILITY", "12.0").verify("");
    assert_eq!(report["status"], "usable");
}

#[test]
fn row_11_compute_modes() {
    let report = Machine::usable().set("STUB_MODE", "3").verify("");
    assert_eq!((problems(&report), &report["status"]), (vec!["exclusive-mode"], &json!("usable")));
    let report = Machine::usable()
        .set("STUB_MODE", "3")
        .set("STUB_FAIL", "cuDevicePrimaryCtxRetain=46")
        .verify("--run");
    expect(&report, "device-unavailable", "yes", &["one process at a time", "nvidia-smi -i 0 -c DEFAULT"]);
    let listed = gpu(0, "40960, 20480, 8.0, Exclusive_Process, Disabled");
    let process = "GPU-a0111111-1111-1111-1111-111111111111, 4711, python train.py, 20000";
    let report = Machine::usable().set("STUB_MODE", "3").smi(&[&listed], &[process]).verify("");
    expect(&report, "device-unavailable", "yes", &["process 4711 (python train.py) holds 19.5 GiB"]);
    let report = Machine::usable().set("STUB_FAIL", "cuInit=46").verify("");
    expect(&report, "device-unavailable", "no", &["46 (DEVICE_UNAVAILABLE)"]);
    let report = Machine::usable().set("STUB_MODE", "2").verify("");
    expect(&report, "prohibited-mode", "yes", &["Prohibited"]);
    assert_eq!(report["status"], "problem");
}

#[test]
fn row_11_mig_without_instances() {
    let listed = gpu(0, "40960, 40960, 8.0, Default, Enabled");
    let report = Machine::usable().set("STUB_DEVICES", "0").smi(&[&listed], &[]).verify("");
    expect(&report, "mig-without-instances", "no", &["MIG is enabled", "nvidia-smi mig -cgi"]);
}

#[test]
fn row_11_permissions() {
    let machine = Machine::usable().without("system/dev/nvidiactl").set("STUB_DEVICES", "0");
    // A file that not even root may read and write.
    let target = ["/proc/sys/vm/compact_memory", "/proc/sys/net/ipv4/route/flush"];
    let denied = |path: &&&str| {
        let opened = std::fs::OpenOptions::new().read(true).write(true).open(path);
        opened.is_err_and(|error| error.raw_os_error() == Some(13))
    };
    let Some(target) = target.iter().find(denied) else {
        eprintln!("skipped: this system lets everybody open everything");
        return;
    };
    std::os::unix::fs::symlink(target, machine.path("system/dev/nvidiactl")).unwrap();
    expect(
        &machine.verify(""),
        "no-permission",
        "no",
        &["/dev/nvidiactl cannot be opened (EACCES)", "usermod"],
    );
}

#[test]
fn no_driver_is_installed() {
    let report = Machine::with_gpu().torch(&Torch::cu126()).verify("");
    expect(&report, "driver-not-installed", "no", &["NVIDIA display controllers on the PCI bus: 1"]);
    let report = Machine::bare().torch(&Torch::cu126()).verify("");
    expect(&report, "no-gpu", "no", &["no NVIDIA GPU"]);
    assert_eq!(report["driver"]["outcome"], json!({"kind": "no-library"}));
    let listed = gpu(0, "40960, 20480, 8.0, Default, Disabled");
    let report = Machine::with_gpu().torch(&Torch::cu126()).smi(&[&listed], &[]).verify("");
    expect(&report, "driver-library-missing", "no", &["550.54.14", "libcuda1"]);
}

#[test]
fn a_driver_without_a_device() {
    let report = Machine::usable().set("STUB_DEVICES", "0").verify("");
    expect(&report, "no-device", "no", &["100 (NO_DEVICE)", "NVIDIA display controllers on the PCI bus: 1"]);
    assert_eq!((&report["visible"]["count"], &report["worlds"]["gpus"]), (&json!(0), &json!(0)));
}

#[test]
fn a_library_that_is_no_driver() {
    let report = Machine::usable().set("STUB_FAIL", "cuInit=34").verify("");
    expect(&report, "stub-library", "no", &["34 (STUB_LIBRARY)", "stubs"]);
    let machine = Machine::with_gpu().torch(&Torch::cu126()).library("old", machine::incomplete_stub());
    expect(&machine.verify(""), "driver-incomplete", "no", &["`cuDriverGetVersion`"]);
    let machine = Machine::with_gpu().torch(&Torch::cu126()).file("lib/libcuda.so.1", "\x7fELF nonsense");
    expect(&machine.search_first("lib").verify(""), "driver-library-unloadable", "no", &["LD_LIBRARY_PATH"]);
}

#[test]
fn codes_with_and_without_a_name() {
    for (code, id, part) in [
        (102, "not-licensed", "license"),
        (304, "driver-error", "304 (OPERATING_SYSTEM)"),
        (805, "mps-server", "MPS"),
        (9999, "driver-error", "9999 (UNLISTED)"),
        (-5, "driver-error", "-5 (UNLISTED)"),
    ] {
        let report = Machine::usable().set("STUB_FAIL", format!("cuInit={code}")).verify("");
        expect(&report, id, "no", &[part]);
        assert_eq!(report["driver"]["outcome"]["code"], code);
    }
}

#[test]
fn a_driver_that_does_not_tell_its_version() {
    let report = Machine::usable().set("STUB_FAIL", "cuDriverGetVersion=999,cuInit=803").verify("");
    expect(&report, "driver-library-mismatch", "no", &["803"]);
    let report = Machine::usable().set("STUB_FAIL", "cuDriverGetVersion=999").verify("");
    assert_eq!((&report["status"], &report["driver"]["cuda"]), (&json!("usable"), &json!(null)));
}

#[test]
fn a_driver_that_crashes() {
    for function in ["cuDriverGetVersion", "cuInit", "cuDeviceGetName"] {
        let report = Machine::usable().set("STUB_CRASH", function).verify("");
        expect(&report, "driver-crashed", "unknown", &["signal 11"]);
        assert_eq!(report["status"], "unknown");
    }
    let report = Machine::usable().set("STUB_ABORT", "1").verify("");
    expect(&report, "driver-crashed", "unknown", &["signal 6", "loading the driver's library"]);
}

#[test]
fn a_driver_that_hangs() {
    for function in ["cuInit", "cuDeviceGetCount"] {
        let machine = Machine::usable().set("STUB_HANG", function).set("CUDA_VISIBLE_DEVICES", "0");
        let run = machine.run("verify --time-limit 1 --output-format json");
        expect(&run.json(), "driver-hangs", "unknown", &["no answer within 1 seconds"]);
        assert_eq!(run.code, Some(2));
        assert!(run.took < Duration::from_secs(60), "{:?}", run.took);
    }
    // What was learnt before counts.
    let report = Machine::usable().set("STUB_HANG", "cuDeviceCanAccessPeer").set("STUB_DEVICES", "2");
    let report = report.verify("--time-limit 1");
    assert_eq!(report["devices"].as_array().unwrap().len(), 2);
    let report = Machine::usable().set("STUB_EXIT_HANG", "1").verify("--time-limit 1");
    assert_eq!(report["status"], "usable", "it hangs only after all is said");
}

#[test]
fn nvidia_smi_may_hang_or_talk_nonsense() {
    let run = Machine::usable().program("nvidia-smi", "while :; do :; done").run("verify --time-limit 1");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.took < Duration::from_secs(60), "{:?}", run.took);
    let report = Machine::usable().program("nvidia-smi", "echo 'a,b,c'; echo; echo '\\377'").verify("");
    assert_eq!(report["status"], "usable");
}

#[test]
fn free_memory_and_who_holds_it() {
    let listed = gpu(0, "40960, 700, 8.0, Default, Disabled");
    let uuid = "GPU-a0111111-1111-1111-1111-111111111111";
    let small = format!("{uuid}, 12, /usr/lib/xorg/Xorg, 150");
    let large = format!("{uuid}, 4711, python, 39000");
    let machine = Machine::usable().smi(&[&listed], &[&small, &large]);
    let report = machine.verify("");
    assert_eq!(problems(&report), ["low-memory"]);
    let text = problem(&report, "low-memory");
    assert!(text.contains("cuda:0 has only 700.0 MiB of 40.0 GiB free"), "{text}");
    let (first, second) = (text.find("process 4711 (python) holds 38.1 GiB"), text.find("process 12"));
    assert!(first.is_some() && first < second, "{text}");
    assert_eq!(report["devices"][0]["free_bytes"], 700 << 20);
    let report = Machine::usable().set("STUB_FREE", "300").verify("--run");
    assert_eq!(problems(&report), ["low-memory"]);
    let report = Machine::usable().set("STUB_FAIL", "cuDevicePrimaryCtxRetain=2").verify("--run");
    expect(&report, "low-memory", "yes", &["to create a context"]);
}

#[test]
fn number_formats_by_capability() {
    for (capability, bfloat16, float8) in
        [("7.5", false, false), ("8.0", true, false), ("8.9", true, true), ("9.0", true, true)]
    {
        let report = Machine::usable().set("STUB_CAPABILITY", capability).verify("");
        let dtypes = &report["devices"][0]["dtypes"];
        assert_eq!(
            dtypes,
            &json!({"float64": true, "float16": true, "bfloat16": bfloat16, "float8": float8})
        );
        let noted = report["problems"].as_array().unwrap().iter().any(|p| p["id"] == "no-bfloat16");
        assert_eq!(noted, !bfloat16, "{capability}");
    }
}

#[test]
fn without_a_driver_nothing_is_waited_for() {
    // What is asked in a process of its own, and may take its time, is the driver.
    let machine = Machine::bare().torch(&Torch::pypi());
    let run = machine.run("verify --time-limit 600");
    assert!(run.took < Duration::from_secs(60), "{:?}", run.took);
}
