//! `samedevice verify`: which Python is meant, and where that imports PyTorch from.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod machine;

use std::os::unix::fs::symlink;

use machine::{Machine, Torch, problems};
use serde_json::{Value, json};

const SITE: &str = "lib/python3.11/site-packages";

/// The version of PyTorch, and what named the environment.
fn found(report: &Value) -> (&str, &str) {
    (
        report["torch"]["version"].as_str().unwrap_or("none"),
        report["python"]["found_by"].as_str().unwrap_or("none"),
    )
}

fn torch(version: &'static str) -> Torch {
    Torch { version, distribution: version, ..Torch::cu126() }
}

/// An environment with this PyTorch.
fn with(machine: Machine, prefix: &str, version: &'static str) -> Machine {
    machine.environment(prefix).installed(&format!("{prefix}/{SITE}"), &torch(version))
}

#[test]
fn a_tool_is_not_about_its_own_environment() {
    for (tool, file) in [
        ("home/.cache/uv/archive-v0/Xy12", "unused"),
        ("home/.local/share/uv/tools/samedevice", "uv-receipt.toml"),
        ("home/.local/share/pipx/venvs/samedevice", "pipx_metadata.json"),
        ("elsewhere/samedevice", "pipx_metadata.json"),
        ("home/.cache/pipx/0123456", "unused"),
    ] {
        let machine = with(Machine::with_driver(), "caller", "2.9.1").environment(tool).program_in(tool);
        let machine = machine.file(&format!("{tool}/{file}"), "");
        // `uvx` puts the tool's folder first.
        let path =
            format!("{}:{}", machine.path(tool).join("bin").display(), machine.path("caller/bin").display());
        let machine = machine.set("PATH", path);
        assert_eq!(found(&machine.verify("")), ("2.9.1", "PATH"), "{tool}");
        let machine = machine.point("VIRTUAL_ENV", tool);
        assert_eq!(found(&machine.verify("")), ("2.9.1", "PATH"), "{tool}");
        let report = machine.point("VIRTUAL_ENV", "caller").verify("");
        assert_eq!(found(&report), ("2.9.1", "VIRTUAL_ENV"), "{tool}");
        assert_eq!(report["python"]["on_path"], json!(null), "{tool}");
    }
}

#[test]
fn the_environment_that_has_both_wins() {
    let machine = with(with(Machine::with_driver(), "both", "2.9.1"), "active", "2.8.0").program_in("both");
    let machine = machine.point("VIRTUAL_ENV", "active");
    assert_eq!(found(&machine.verify("")), ("2.9.1", "samedevice"));
    let active = machine.path("active").display().to_string();
    assert_eq!(found(&machine.verify(&format!("--python {active}"))), ("2.8.0", "--python"));
    // With the tool alone it does not.
    let machine = with(Machine::with_driver(), "active", "2.8.0").environment("tool").program_in("tool");
    assert_eq!(found(&machine.point("VIRTUAL_ENV", "active").verify("")), ("2.8.0", "VIRTUAL_ENV"));
}

#[test]
fn uv_puts_one_environment_over_another() {
    // `uv run --with samedevice`: the program is in an environment of its own, which another one adds to the project's.
    let (tool, overlay) = ("home/.cache/uv/archive-v0/Xy12", "home/.cache/uv/builds-v0/.tmpA");
    let machine = |project: &str| {
        let machine = Machine::with_driver().environment(tool).program_in(tool).environment(overlay);
        let folder = |path: &str| machine.path(path).display().to_string();
        let (below, tools) = (folder(project), folder(&format!("{tool}/{SITE}")));
        let config = format!("home = /nowhere/bin\nversion = 3.11.7\nextends-environment = {below}\n");
        let line = format!(
            "import site; site.addsitedir(__import__(\"os\").fsdecode(b\"{tools}\")); \
             site.addsitedir(__import__(\"os\").fsdecode(b\"{below}/{SITE}\"))\n"
        );
        let path = format!(
            "{}:{}:{}",
            folder(&format!("{overlay}/bin")),
            folder(&format!("{tool}/bin")),
            folder(&format!("{project}/bin"))
        );
        machine
            .file(&format!("{overlay}/pyvenv.cfg"), config)
            .file(&format!("{overlay}/{SITE}/_uv_ephemeral_overlay.pth"), line)
            .point("VIRTUAL_ENV", overlay)
            .set("PATH", path)
    };
    let report = with(machine("project/.venv"), "project/.venv", "2.7.1").verify("");
    assert_eq!(found(&report), ("2.7.1", "VIRTUAL_ENV"));
    assert!(
        report["python"]["prefix"].as_str().unwrap().ends_with("project/.venv"),
        "what is installed there stays"
    );
    assert_eq!(problems(&report), [""; 0]);
    // `--with torch`: it is in what is put over.
    let machine = machine("project/.venv")
        .environment("project/.venv")
        .installed(&format!("{tool}/{SITE}"), &torch("2.9.1"));
    assert_eq!(found(&machine.verify("")).0, "2.9.1");
}

#[test]
fn a_projects_environment_has_several_names() {
    for name in [".venv", "venv", "env"] {
        let machine = with(Machine::with_driver(), &format!("project/{name}"), "2.9.1");
        assert_eq!(found(&machine.verify("")), ("2.9.1", name));
    }
    let pixi = |name: &str, version| {
        let prefix = format!("project/.pixi/envs/{name}");
        let machine = Machine::with_driver().file(&format!("{prefix}/conda-meta/history"), "");
        machine
            .file(&format!("{prefix}/bin/python"), "")
            .installed(&format!("{prefix}/{SITE}"), &torch(version))
    };
    let report = pixi("cuda", "2.9.1").verify("");
    assert_eq!(found(&report), ("2.9.1", ".pixi/envs"));
    assert_eq!(report["python"]["installer"], "pixi");
    // An empty one is not what is meant where another one has PyTorch.
    let machine = with(Machine::with_driver().environment("project/.venv"), "project/venv", "2.9.1");
    assert_eq!(found(&machine.verify("")), ("2.9.1", "venv"));
    // A folder that is none.
    let machine = with(Machine::with_driver().file("project/env/settings.toml", ""), "venv", "2.9.1");
    assert_eq!(found(&machine.verify("")), ("2.9.1", "venv"), "in the folder above");
}

#[test]
fn pyenv_names_versions_in_short() {
    let machine = || {
        let mut machine = Machine::with_driver().file("pyenv/shims/python3", "#!/bin/sh\nexit 1\n");
        for (version, torch) in [("3.11.2", "2.1.0"), ("3.11.10", "2.9.1"), ("3.12.1", "2.2.0")] {
            let prefix = format!("pyenv/versions/{version}");
            machine = machine.file(&format!("{prefix}/bin/python"), "");
            machine =
                machine.installed(&format!("{prefix}/{SITE}"), &Torch { version: torch, ..Torch::cu126() });
        }
        let machine =
            machine.installed(&format!("python/{SITE}"), &torch("2.8.0")).file("python/bin/python3.11", "");
        symlink(machine.path("python/bin/python3.11"), machine.path("bin/python3")).unwrap();
        let path = format!("{}:{}", machine.path("pyenv/shims").display(), machine.path("bin").display());
        machine.set("PATH", path)
    };
    assert_eq!(found(&machine().set("PYENV_VERSION", "3.11").verify("")), ("2.9.1", "PATH"));
    assert_eq!(found(&machine().set("PYENV_VERSION", "system").verify("")), ("2.8.0", "PATH"));
    assert_eq!(
        found(&machine().verify("")),
        ("2.8.0", "PATH"),
        "pyenv takes the system's if nothing is said"
    );
    assert_eq!(found(&machine().set("PYENV_VERSION", "3.9:3.12").verify("")), ("2.2.0", "PATH"));
    assert_eq!(
        found(&machine().file("project/.python-version", "# ours\n3.11.2\n").verify("")),
        ("2.1.0", "PATH")
    );
}

#[test]
fn python_is_a_name_or_a_path() {
    let machine = with(Machine::with_driver(), "venv", "2.9.1");
    symlink(machine.path("venv/bin/python"), machine.path("venv/bin/python3.11")).unwrap();
    let machine = machine.point("PATH", "venv/bin").file("project/train.py", "").file("project/data/x", "");
    for name in ["python3.11", "3.11", "python", "../venv", "../venv/bin/python"] {
        assert_eq!(found(&machine.verify(&format!("--python {name}"))), ("2.9.1", "--python"), "{name}");
    }
    for (name, says) in [
        ("train.py", "is a file but not a Python interpreter"),
        ("data", "is a folder but not a Python environment"),
        ("python3.12", "no `python3.12` is on `PATH`"),
        ("3.12", "no `python3.12` is on `PATH`"),
        ("missing/python", "does not exist"),
        ("ls", "neither a Python interpreter nor"),
        ("..", "there is one in"),
    ] {
        let run = machine.run(&format!("verify --python {name}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{name}");
        assert!(
            run.stderr.contains(&format!("`--python {name}`")) && run.stderr.contains(says),
            "{name}: {}",
            run.stderr
        );
    }
}

#[test]
fn files_add_folders_to_the_search_path() {
    let machine = Machine::with_driver().environment("project/.venv").installed("elsewhere", &torch("2.9.1"));
    let site = format!("project/.venv/{SITE}");
    let path = machine.path("elsewhere").display().to_string();
    let report =
        machine.file(&format!("{site}/more.pth"), format!("# more\nimport os; os.x\n\n{path}\n")).verify("");
    assert_eq!(found(&report).0, "2.9.1");
    // In a folder beside it.
    let machine = Machine::with_driver()
        .environment("project/.venv")
        .installed(&format!("{site}/vendor"), &torch("2.9.1"));
    assert_eq!(found(&machine.file(&format!("{site}/more.pth"), "vendor\n").verify("")).0, "2.9.1");
}

#[test]
fn a_pytorch_that_is_edited_in_place_is_whole() {
    let site = format!("project/.venv/{SITE}");
    let record = format!("{site}/torch-2.9.0a0+git1234567.dist-info");
    let machine = || {
        let machine = Machine::with_driver()
            .environment("project/.venv")
            .installed("src", &torch("2.9.0a0+git1234567"));
        machine
            .file(
                &format!("{record}/METADATA"),
                "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.0a0+git1234567\n",
            )
            .file(
                &format!("{record}/direct_url.json"),
                r#"{"dir_info": {"editable": true}, "url": "file:///src"}"#,
            )
    };
    let by_path = machine();
    let path = by_path.path("src").display().to_string();
    let by_path = by_path.file(&format!("{site}/__editable__.torch-2.9.0a0.pth"), format!("{path}\n"));
    let by_finder = machine();
    let folder = by_finder.path("src/torch").display().to_string();
    let by_finder = by_finder
        .file(
            &format!("{site}/__editable__.torch-2.9.0a0.pth"),
            "import __editable___torch_2_9_0a0_finder; __editable___torch_2_9_0a0_finder.install()\n",
        )
        .file(
            &format!("{site}/__editable___torch_2_9_0a0_finder.py"),
            format!("from __future__ import annotations\nMAPPING: dict[str, str] = {{'functorch': '/x/functorch', 'torch': '{folder}'}}\n"),
        );
    for machine in [by_path, by_finder] {
        let report = machine.verify("");
        assert_eq!(found(&report).0, "2.9.0a0+git1234567");
        assert_eq!((problems(&report), &report["status"]), (vec![], &json!("usable")), "{report:#}");
    }
}

#[test]
fn a_cuda_without_a_second_number() {
    let report = Machine::with_driver()
        .set("STUB_VERSION", "13020")
        .torch(&Torch { cuda: Some("13"), ..Torch::pypi() });
    let report = report.verify("");
    assert_eq!((&report["torch"]["build"], &report["torch"]["cuda"]), (&json!("cuda"), &json!("13.0")));
    assert_eq!(report["status"], "usable", "{report:#}");
}

#[test]
fn what_installs_packages_is_seen() {
    let venv = |lines: &str, file: &str, pip: bool| {
        let machine = Machine::with_driver().environment("project/.venv");
        let config = format!("home = /nowhere/bin\nversion_info = 3.11.7\n{lines}\n");
        let machine = machine.file("project/.venv/pyvenv.cfg", config).file(file, "");
        if !pip {
            std::fs::remove_dir_all(machine.path(&format!("project/.venv/{SITE}/pip"))).unwrap();
        }
        let report = machine.verify("");
        let command = report["problems"][0]["command"].as_str().unwrap().to_owned();
        (report["python"]["installer"].as_str().unwrap().to_owned(), command)
    };
    for (lines, file, pip, installer, begin) in [
        ("", "project/x", true, "pip", "/"),
        ("", "project/x", false, "ensurepip", "/"),
        ("uv = 0.9.1", "project/x", false, "uv", "uv pip install --python "),
        ("uv = 0.9.1", "project/uv.lock", false, "uv-project", "uv add torch --index pytorch-cu126="),
        ("", "project/poetry.lock", true, "poetry", "poetry source add "),
    ] {
        let (name, command) = venv(lines, file, pip);
        assert_eq!(name, installer);
        assert!(command.starts_with(begin) && command.contains("whl/cu126"), "{command}");
    }
    // The system's Python refuses, PyTorch or not.
    let machine =
        Machine::with_driver().file("python/lib/python3.11/EXTERNALLY-MANAGED", "[externally-managed]\n");
    let machine =
        machine.file("python/bin/python3.11", "").file(&format!("python/{SITE}/pip/__init__.py"), "");
    let report = machine.verify(&format!("--python {}", machine.path("python/bin/python3.11").display()));
    assert_eq!(report["python"]["installer"], "venv");
    assert!(
        report["problems"][0]["command"]
            .as_str()
            .unwrap()
            .contains(" -m venv .venv && .venv/bin/python -m pip")
    );
}
