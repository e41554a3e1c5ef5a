//! `samedevice verify`: advice that fits the machine, and lines of the report that agree.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod machine;

use machine::{Machine, Torch, expect, problem};

const SITE: &str = "project/.venv/lib/python3.11/site-packages";

/// The line of the report with this name.
fn line(text: &str, name: &str) -> String {
    let found = text.lines().find(|line| line.split_whitespace().nth(1) == Some(name));
    found.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

fn command(machine: &Machine, id: &str) -> String {
    let report = machine.verify("");
    let problems = report["problems"].as_array().unwrap();
    let found = problems.iter().find(|problem| problem["id"] == id);
    found.unwrap_or_else(|| panic!("no {id} in {report:#}"))["command"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_library_of_pytorch_itself_comes_with_pytorch() {
    let again = "-m pip install --force-reinstall --no-deps torch==2.15.0";
    let without = |record: bool| {
        let machine = Machine::with_driver().set("STUB_VERSION", "13010").torch(&Torch::pypi());
        let list = format!("{SITE}/torch-2.15.0.dist-info/RECORD");
        let machine =
            if record { machine.file(&list, "torch/lib/libtorch_python.so,,100\n") } else { machine };
        machine.without(&format!("{SITE}/torch/lib/libtorch_python.so"))
    };
    for machine in [without(true), without(false)] {
        let command = command(&machine, "library-missing");
        assert!(command.ends_with(again), "{command}");
    }
    // With one of NVIDIA's.
    let command =
        command(&without(true).without(&format!("{SITE}/nvidia/nccl/lib/libnccl.so.2")), "library-missing");
    assert!(command.contains(again) && !command.contains("toolkit"), "{command}");
}

#[test]
fn what_the_kernel_needs_is_done_on_the_host() {
    for (code, id) in [(802, "fabric-manager"), (999, "unknown-error"), (304, "driver-error")] {
        let machine = || Machine::usable().set("STUB_FAIL", format!("cuInit={code}"));
        let inside = command(&machine().system(".dockerenv", ""), id);
        assert!(inside.starts_with("sudo ") && inside.ends_with("    # on the host"), "{inside}");
        assert!(!command(&machine(), id).contains("host"));
    }
}

#[test]
fn wsl_has_no_kernel_log_of_the_driver() {
    let machine = Machine::usable()
        .set("STUB_FAIL", "cuInit=500")
        .system("proc/version", "Linux version 5.15.167.4-microsoft-standard-WSL2 (root@f9)\n")
        .system("dev/dxg", "");
    let folder = "system/usr/lib/wsl/lib";
    let machine = machine.library(folder, machine::stub());
    expect(&machine.verify(""), "driver-error", "no", &["in Windows", "wsl --update"]);
}

#[test]
fn a_jetson_always_has_a_gpu() {
    let machine = Machine::bare()
        .system("etc/nv_tegra_release", "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic\n")
        .environment("project/.venv");
    let command = command(&machine, "no-pytorch");
    assert!(command.ends_with("torch --index-url https://pypi.jetson-ai-lab.io/jp6/cu126"), "{command}");
}

#[test]
fn amds_gpus_are_in_the_report() {
    let rocm = || Machine::bare().torch(&Torch::rocm()).on_bus("0000:03:00.0", "0x1002", "0x744c");
    let node = "sys/class/kfd/kfd/topology/nodes/1/properties";
    let whole = rocm().system("dev/kfd", "").system(node, "simd_count 96\ngfx_target_version 110000\n");
    let text = whole.run("verify").stdout;
    assert_eq!(line(&text, "driver"), "✓ driver    AMD's: /dev/kfd");
    assert_eq!(line(&text, "devices"), "✓ devices   1 (gfx1100)");
    assert!(text.ends_with("PyTorch can use 1 GPU here.\n"), "{text}");
    let text = rocm().run("verify").stdout;
    assert_eq!(line(&text, "driver"), "✗ driver    AMD: /dev/kfd cannot be opened");
    // The build for CUDA cannot use it.
    let cuda = Machine::bare().torch(&Torch::cu126()).on_bus("0000:03:00.0", "0x1002", "0x744c");
    expect(
        &cuda.verify(""),
        "no-gpu",
        "no",
        &["AMD display controllers on the PCI bus: 1", "PyTorch build for ROCm"],
    );
    assert!(!problem(&Machine::bare().torch(&Torch::cu126()).verify(""), "no-gpu").contains("AMD"));
}

#[test]
fn a_build_for_intel_is_none_for_the_processor_alone() {
    let torch = Torch { version: "2.15.0+xpu", xpu: Some("20250"), ..Torch::cpu() };
    let text = Machine::bare().torch(&torch).run("verify").stdout;
    assert!(
        line(&text, "PyTorch").starts_with("! PyTorch   2.15.0+xpu, built for Intel's GPUs (XPU)"),
        "{text}"
    );
}

#[test]
fn the_last_line_is_about_the_first_error() {
    let text = Machine::bare().torch(&Torch::cpu()).run("verify").stdout;
    assert!(text.contains("PyTorch cannot use a GPU here: there is no NVIDIA GPU."), "{text}");
    let text = Machine::bare().environment("project/.venv").run("verify").stdout;
    let both = "PyTorch cannot use a GPU here: there is no NVIDIA GPU; and no PyTorch was found.";
    assert!(text.contains(both), "{text}");
}

#[test]
fn the_system_has_no_wheels() {
    let musl = Machine::with_driver().environment("project/.venv").system("lib/ld-musl-x86_64.so.1", "");
    expect(&musl.verify(""), "python-without-wheels", "yes", &["no wheel with CUDA for this system"]);
}

#[test]
fn a_version_that_cannot_be_read_is_not_missing() {
    let utf16: Vec<u8> = "\u{feff}cuda = None".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let machine = Machine::usable().file(&format!("{SITE}/torch/version.py"), utf16);
    expect(&machine.verify(""), "broken-pytorch", "no", &["its `version.py` is not the text"]);
}

#[test]
fn folders_with_signs_of_the_shell() {
    let prefix = "project/it's $HOME `x`";
    let site = format!("{prefix}/lib/python3.11/site-packages");
    let machine = Machine::with_driver().environment(prefix).installed(&site, &Torch::cpu());
    let machine = machine.point("VIRTUAL_ENV", prefix);
    let command = command(&machine, "cpu-only-build");
    let script = format!("set -- {command}; printf %s \"$1\"");
    let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    let python = machine.path(prefix).join("bin/python");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), python.to_str().unwrap(), "{command}");
}

#[test]
fn a_row_of_the_table_names_its_gpu_once() {
    let text = Machine::usable().run("verify --output-format markdown").stdout;
    assert!(text.contains("| cuda:0 | Stub GPU 0, compute capability 8.0"), "{text}");
}

#[test]
fn a_module_that_is_imported_at_once() {
    let init = "import os\nimport typing_extensions\nfrom typing_extensions import (\n    Never,\n)\n";
    let torch = Torch {
        requires: &["typing-extensions>=4.10.0", "filelock", "nvidia-cudnn-cu12==9.10.2.21"],
        ..Torch::cu126()
    };
    let machine = || Machine::with_driver().torch(&torch).file(&format!("{SITE}/torch/__init__.py"), init);
    let report = machine().verify("");
    let said = "ModuleNotFoundError: No module named 'typing_extensions'";
    let command = "-m pip install --force-reinstall --no-deps typing-extensions";
    expect(&report, "module-missing", "no", &["typing-extensions is missing", said, command]);
    assert_eq!(report["status"], "problem");
    for file in [
        "typing_extensions.py",
        "typing_extensions/__init__.py",
        "typing_extensions.cpython-311-x86_64-linux-gnu.so",
    ] {
        let report = machine().file(&format!("{SITE}/{file}"), "").verify("");
        assert_eq!(report["status"], "usable", "{report:#}");
    }
    // A folder that a file adds to the search path.
    let elsewhere = machine().file("other/typing_extensions.py", "");
    let folder = format!("{}\n", elsewhere.path("other").display());
    assert_eq!(elsewhere.file(&format!("{SITE}/x.pth"), folder).verify("")["status"], "usable");
}

#[test]
fn a_part_of_a_library_that_is_opened_by_name() {
    let list = format!("{SITE}/nvidia_cudnn_cu12-9.10.2.21.dist-info/RECORD");
    let machine = Machine::usable().file(&list, "nvidia/cudnn/lib/libcudnn_graph.so.9,,100\n");
    let report = machine.verify("");
    assert_eq!(report["status"], "usable");
    let text = problem(&report, "package-missing");
    assert!(text.contains("has recorded") && text.contains("nvidia-cudnn-cu12==9.10.2.21"), "{text}");
}

#[test]
fn a_gpu_that_is_neither_too_old_nor_too_new() {
    let cause = |capability: &str| {
        let report = Machine::usable().set("STUB_CAPABILITY", capability).verify("");
        problem(&report, "gpu-not-in-build")
    };
    assert!(cause("3.5").contains("too old"));
    assert!(cause("12.0").contains("too new"));
    // Those of Jetson: the code for 7.0 does not run on 7.2.
    let jetson = cause("7.2");
    assert!(jetson.contains("is not supported by") && !jetson.contains("too "), "{jetson}");
}

#[test]
fn a_pytorch_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::usable();
    let folder = machine.path(&format!("{SITE}/torch"));
    let set = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    set(0);
    if std::fs::read_dir(&folder).is_ok() {
        eprintln!("skipped: root may read everything");
        return;
    }
    let report = machine.verify("");
    set(0o755);
    expect(&report, "broken-pytorch", "no", &["the user may not read", "sudo chmod -R a+rX"]);
}

#[test]
fn of_two_records_the_one_of_the_files_counts() {
    let other = format!("{SITE}/torch-2.14.0.dist-info/METADATA");
    let machine = Machine::usable().file(&other, "Name: torch\nVersion: 2.14.0\n\n");
    let command = command(&machine, "several-records");
    assert!(command.contains(" torch==2.15.0+cu126 "), "{command}");
    let report = machine.without(&format!("{SITE}/nvidia/cudnn/lib/libcudnn.so.9")).verify("");
    expect(&report, "library-missing", "no", &["nvidia-cudnn-cu12==9.10.2.21"]);
}

#[test]
fn a_container_may_be_given_a_gpu_later() {
    let advice = |machine: Machine| problem(&machine.torch(&Torch::cpu()).verify(""), "cpu-only-build");
    let inside = advice(Machine::bare().system(".dockerenv", ""));
    assert!(inside.contains("if you add a GPU") && inside.contains("\"note\""), "{inside}");
    assert!(advice(Machine::bare()).contains("nothing: there is no NVIDIA GPU"));
}

#[test]
fn amds_gpus_are_not_asked_for_in_wsl() {
    let text = Machine::bare()
        .torch(&Torch::rocm())
        .system("proc/version", "Linux version 5.15.167.4-microsoft-standard-WSL2 (root@f9)\n")
        .run("verify")
        .stdout;
    assert_eq!(line(&text, "driver"), "! driver    AMD: not checked in WSL");
    assert_eq!(line(&text, "devices"), "! devices   not known");
}

#[test]
fn a_pytorch_from_the_variable_hides_what_is_installed() {
    let machine = Machine::usable().installed("sources", &Torch::cpu()).point("PYTHONPATH", "sources");
    expect(
        &machine.verify(""),
        "cpu-only-build",
        "no",
        &["remove its folder from `PYTHONPATH`", "unset PYTHONPATH"],
    );
    assert_eq!(machine.set("PYTHONPATH", "").verify("")["status"], "usable");
}
