//! `samedevice verify`: environments and the PyTorch in them, read as files.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod machine;

use machine::{Machine, Torch, expect, problem, problems};
use serde_json::{Value, json};

const SITE: &str = "lib/python3.11/site-packages";

fn version(report: &Value) -> &str {
    report["torch"]["version"].as_str().unwrap_or("none")
}

/// A usable driver and four environments, each with another PyTorch.
fn four_environments() -> Machine {
    let torch = |version: &'static str| Torch { version, ..Torch::cu126() };
    Machine::with_driver()
        .environment("asked")
        .installed(&format!("asked/{SITE}"), &torch("1.0"))
        .environment("active")
        .installed(&format!("active/{SITE}"), &torch("2.0"))
        .torch(&torch("3.0"))
        .file("conda/conda-meta/history", "")
        .file("conda/bin/python", "")
        .installed(&format!("conda/{SITE}"), &torch("4.0"))
}

#[test]
fn the_first_environment_that_is_named_counts() {
    let machine = four_environments().point("VIRTUAL_ENV", "active").point("CONDA_PREFIX", "conda");
    let asked = machine.path("asked");
    for argument in [asked.clone(), asked.join("bin/python")] {
        let report = machine.verify(&format!("--python {}", argument.display()));
        assert_eq!((version(&report), &report["python"]["found_by"]), ("1.0", &json!("--python")));
    }
    let report = machine.verify("");
    assert_eq!((version(&report), &report["python"]["found_by"]), ("2.0", &json!("VIRTUAL_ENV")));
    let report = four_environments().point("CONDA_PREFIX", "conda").verify("");
    assert_eq!((version(&report), &report["python"]["found_by"]), ("3.0", &json!(".venv")));
    let conda = Machine::with_driver().file("conda/conda-meta/history", "").file("conda/bin/python", "");
    let conda = conda.installed(&format!("conda/{SITE}"), &Torch::cu126()).point("CONDA_PREFIX", "conda");
    assert_eq!(conda.verify("")["python"]["found_by"], "CONDA_PREFIX");
}

#[test]
fn an_interpreter_on_the_path() {
    let machine = Machine::with_driver().installed(&format!("python/{SITE}"), &Torch::cu126());
    let machine = machine.file("python/bin/python3.11", "");
    std::os::unix::fs::symlink(machine.path("python/bin/python3.11"), machine.path("bin/python3")).unwrap();
    let report = machine.verify("");
    assert_eq!((version(&report), &report["python"]["found_by"]), ("2.15.0+cu126", &json!("PATH")));
    // Behind pyenv's scripts.
    let machine = Machine::with_driver()
        .installed(&format!("pyenv/versions/3.11.7/{SITE}"), &Torch::cu126())
        .file("pyenv/versions/3.11.7/bin/python", "")
        .file("pyenv/shims/python3", "#!/bin/sh\nexit 1\n")
        .file("pyenv/version", "3.11.7\n");
    let report = machine.point("PATH", "pyenv/shims").verify("");
    assert_eq!(version(&report), "2.15.0+cu126");
}

#[test]
fn no_environment_and_no_pytorch() {
    let report = Machine::with_driver().verify("");
    expect(&report, "no-pytorch", "yes", &["no Python environment was found", "--python"]);
    assert_eq!(report["status"], "problem");
    let report = Machine::with_driver().environment("project/.venv").verify("");
    expect(&report, "no-pytorch", "yes", &["is not installed in", "-m pip install torch", "cu126"]);
    assert!(!problem(&report, "no-pytorch").contains("--force-reinstall"));
    // It is in another environment.
    let machine = four_environments().environment("empty").point("VIRTUAL_ENV", "empty");
    expect(&machine.verify(""), "no-pytorch", "yes", &["there is PyTorch 3.0", "(by .venv)"]);
    let run = Machine::with_driver().run("verify --python nowhere");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("`--python nowhere` is neither a Python interpreter nor"), "{run:?}");
}

#[test]
fn builds_are_told_apart() {
    let cases = [
        (Torch::cu126(), "cuda", json!("12.6")),
        (Torch::pypi(), "cuda", json!("13.2")),
        (Torch::cpu(), "cpu", Value::Null),
        (Torch::rocm(), "rocm", Value::Null),
        (
            Torch { version: "2.16.0.dev20261101+cu130", cuda: Some("13.0"), ..Torch::pypi() },
            "cuda",
            json!("13.0"),
        ),
    ];
    for (torch, build, cuda) in cases {
        let report = Machine::with_driver().set("STUB_VERSION", "13020").torch(&torch).verify("");
        assert_eq!(
            (&report["torch"]["build"], &report["torch"]["cuda"]),
            (&json!(build), &cuda),
            "{torch:?}"
        );
        let archs: Vec<&str> = torch.archs.split_whitespace().collect();
        assert_eq!(report["torch"]["archs"], json!(archs));
    }
}

#[test]
fn a_build_for_amd_is_not_judged_in_wsl() {
    let machine =
        Machine::with_driver().torch(&Torch::rocm()).system("proc/version", "Linux microsoft WSL2\n");
    let report = machine.verify("");
    assert_eq!(
        (&report["worlds"]["cuda"]["holds"], &report["status"]),
        (&json!("unknown"), &json!("unknown"))
    );
    assert!(problem(&report, "rocm-build").contains("7.0.51831"));
}

#[test]
fn what_is_broken() {
    let site = format!("project/.venv/{SITE}");
    let broken = |machine: Machine, part: &str| expect(&machine.verify(""), "broken-pytorch", "no", &[part]);
    broken(Machine::usable().without(&format!("{site}/torch/version.py")), "no `version.py`");
    broken(Machine::usable().without(&format!("{site}/torch/__init__.py")), "no `__init__.py`");
    broken(
        Machine::usable().without(&format!("{site}/torch/lib/libtorch_cuda.so")),
        "`libtorch_cuda.so` is missing",
    );
    broken(Machine::usable().file(&format!("{site}/torch/version.py"), "x = [\n"), "does not say what");
    let gone = Machine::with_driver().environment("project/.venv");
    broken(gone.file(&format!("{site}/torch-2.1.0.dist-info/METADATA"), ""), "its folder is not");
}

#[test]
fn two_records_and_one_folder() {
    let site = format!("project/.venv/{SITE}");
    let machine = Machine::usable().file(&format!("{site}/torch-2.1.0.dist-info/METADATA"), "");
    let report = machine.verify("");
    assert_eq!((problems(&report), &report["status"]), (vec!["several-records"], &json!("usable")));
    assert!(problem(&report, "several-records").contains("2.1.0, 2.15.0+cu126"), "{report:#}");
}

#[test]
fn several_installations() {
    let machine = Machine::usable().installed("extra", &Torch::cpu()).point("PYTHONPATH", "extra");
    let report = machine.verify("");
    expect(&report, "cpu-only-build", "no", &[]);
    let text = problem(&report, "several-pytorch");
    assert!(text.contains("extra/torch is imported") && text.contains(".venv/lib/python3.11"), "{text}");
    // The user's own goes before that of a Python without a virtual environment.
    let machine = Machine::with_driver()
        .installed(&format!("home/.local/{SITE}"), &Torch::cpu())
        .installed(&format!("python/{SITE}"), &Torch::cu126())
        .file("python/bin/python3.11", "");
    let python = machine.path("python/bin/python3.11").display().to_string();
    let report = machine.verify(&format!("--python {python}"));
    assert_eq!(problems(&report), ["cpu-only-build", "several-pytorch"]);
    let report = machine.set("PYTHONNOUSERSITE", "1").verify(&format!("--python {python}"));
    assert_eq!(problems(&report), [""; 0]);
}

#[test]
fn a_virtual_environment_may_see_the_one_below() {
    let below = |system: &str| {
        let machine = Machine::with_driver().environment("project/.venv");
        let home = machine.path("python/bin").display().to_string();
        machine
            .file(
                "project/.venv/pyvenv.cfg",
                format!("home = {home}\ninclude-system-site-packages = {system}\nversion = 3.11.7\n"),
            )
            .installed(&format!("python/{SITE}"), &Torch::cu126())
            .verify("")
    };
    assert_eq!(version(&below("true")), "2.15.0+cu126");
    assert_eq!(problems(&below("false")), ["no-pytorch"]);
}

#[test]
fn pip_and_conda_in_one_environment() {
    let machine = Machine::with_driver()
        .file("conda/conda-meta/pytorch-2.3.0-py3.11_cuda12.1_cudnn8.9.2_0.json", "{}")
        .file("conda/bin/python", "")
        .installed(&format!("conda/{SITE}"), &Torch::cu126())
        .point("CONDA_PREFIX", "conda");
    let report = machine.verify("");
    assert_eq!(problems(&report), ["pip-over-conda"]);
    assert!(problem(&report, "pip-over-conda").contains("py3.11_cuda12.1_cudnn8.9.2_0"));
}

#[test]
fn the_active_environment_is_not_the_one_that_runs() {
    let machine = four_environments().point("VIRTUAL_ENV", "active").file("python/bin/python3.11", "");
    std::os::unix::fs::symlink(machine.path("python/bin/python3.11"), machine.path("bin/python3")).unwrap();
    let report = machine.verify("");
    assert_eq!(problems(&report), ["other-python"]);
    let text = problem(&report, "other-python");
    assert!(text.contains("bin/python3") && text.contains("/active"), "{text}");
}

#[test]
fn a_file_of_the_project_is_called_torch() {
    let report = Machine::usable().file("project/torch.py", "").verify("");
    assert_eq!(problems(&report), ["shadowed-by-project"]);
}

#[test]
fn packages_of_nvidia() {
    let torch = Torch { packages: &[], libraries: &[], ..Torch::cu126() };
    let report = Machine::with_driver().torch(&torch).verify("");
    expect(&report, "library-missing", "no", &["nvidia-cudnn-cu12==9.10.2.21", "pip install"]);
    let machine = || Machine::with_driver().set("STUB_VERSION", "13020");
    assert_eq!(problems(&machine().torch(&Torch::pypi()).verify("")), [""; 0]);
    let libraries = &["cudnn/lib/libcudnn.so.9", "nccl/lib/libnccl.so.2"];
    let report = machine().torch(&Torch { libraries, ..Torch::pypi() }).verify("");
    expect(&report, "library-missing", "no", &["libcublas.so.13 is missing", "cuda-toolkit[cublas]==13.2.2"]);
    let torch = Torch { packages: &[("nvidia-cudnn-cu12", "8.9.7.29")], ..Torch::cu126() };
    let report = Machine::with_driver().torch(&torch).verify("");
    assert_eq!(problems(&report), ["library-version"]);
    let torch =
        Torch { requires: &["nvidia-nccl-cu12 (==2.27.3) ; platform_system == 'Linux'"], ..Torch::cu126() };
    let report = Machine::with_driver().torch(&torch).verify("");
    assert!(problem(&report, "package-missing").contains("nvidia-nccl-cu12==2.27.3"));
    let torch = Torch {
        requires: &["nvidia-cudnn-cu12==1; platform_system == \"Windows\"", "nvidia-nccl-cu12; extra == 'x'"],
        packages: &[],
        ..Torch::cu126()
    };
    assert_eq!(problems(&Machine::with_driver().torch(&torch).verify("")), [""; 0], "not asked for here");
}

#[test]
fn the_runtime_is_of_another_cuda() {
    let torch = Torch {
        packages: &[("nvidia-cudnn-cu12", "9.10.2.21"), ("nvidia-cuda-runtime-cu12", "12.1.105")],
        ..Torch::cu126()
    };
    let report = Machine::with_driver().torch(&torch).verify("");
    assert_eq!(problems(&report), ["cuda-runtime-version"]);
    assert!(problem(&report, "cuda-runtime-version").contains("12.1.105"));
}
