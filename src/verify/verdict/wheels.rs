//! A Python or a system that PyTorch has no wheel with CUDA for: then `pip` finds none, or takes one without.

use super::{Case, Draft};
use crate::verify::machine::{Build, Version};

/// The identifier of this file's problem.
pub(super) const IDS: &[&str] = &["python-without-wheels"];
/// Of which Pythons there are wheels with CUDA: from 3.8 (PyTorch 2.4 and before) to 3.15 (the classifiers of 2.15).
const OLDEST: Version = Version::new(3, 8);
const NEWEST: Version = Version::new(3, 15);

/// Told where there is no PyTorch with CUDA, and something that it could use.
pub(super) fn problem(case: &Case) -> Option<Draft> {
    let missing = matches!(case.build(), None | Some(Build::Cpu));
    let reason = none(case).filter(|_| missing && case.has_hardware() && case.concerns_nvidia())?;
    let by_python = reason.contains("Python");
    let what = if by_python { "this Python" } else { "this system" };
    let draft = Draft::error("python-without-wheels", format!("PyTorch has no wheel with CUDA for {what}"))
        .seen(reason)
        .says("ERROR: Could not find a version that satisfies the requirement torch (from versions: none)");
    Some(if by_python {
        draft
            .remedy("make the environment with a Python that PyTorch has wheels for")
            .command("uv venv --python 3.12 --clear .venv")
    } else {
        draft.remedy(
            "use a system that PyTorch has wheels with CUDA for: Linux with glibc, or Windows, of 64 bits",
        )
    })
}

/// Why there is none, if so.
pub(super) fn none(case: &Case) -> Option<String> {
    let system = &case.machine.system;
    let platform = match (system.os.as_str(), system.arch.as_str()) {
        ("windows", "aarch64") => Some("its wheels for Windows on ARM have no CUDA"),
        (_, "x86" | "arm") => Some("its wheels are for processors of 64 bits"),
        ("linux", _) if with_musl(case) => {
            Some("the system's C library is musl, and its wheels are for glibc")
        }
        _ => None,
    };
    let python = || {
        let version = python(case)?;
        let age = if version > NEWEST { "newer" } else { "older" };
        (!(OLDEST..=NEWEST).contains(&version)).then(|| {
            format!(
                "it is Python {version}, {age} than those that wheels are known for ({OLDEST} to {NEWEST})"
            )
        })
    };
    platform.map(str::to_owned).or_else(python)
}

/// The environment's version of Python, by the name of its folder: `lib/python3.11/site-packages`.
fn python(case: &Case) -> Option<Version> {
    let folders = case.machine.python.search_path.iter().flat_map(|path| path.split(['/', '\\']));
    let versions = folders.filter_map(|name| name.strip_prefix("python"));
    versions.filter_map(|version| version.trim_end_matches('t').parse().ok()).next()
}

/// Is the loader of musl there, and that of glibc not?
fn with_musl(case: &Case) -> bool {
    let there = |paths: &[&str]| paths.iter().any(|path| case.files.at(path).exists());
    there(&["/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"])
        && !there(&["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"])
}
