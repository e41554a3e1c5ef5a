//! What the installed PyTorch can do with this driver and these devices.

use std::path::Path;

use super::{Case, Draft, driver, wheels};
use crate::verify::machine::{Build, Problem, Torch, Version};
use crate::verify::torch_install::MAY_NOT_READ;

/// The identifiers of this file's problems.
pub(super) const IDS: &[&str] = &[
    "no-pytorch",
    "broken-pytorch",
    "shadowed-by-project",
    "cpu-only-build",
    "rocm-build",
    "driver-too-old",
    "driver-minor-older",
    "gpu-not-in-build",
    "several-pytorch",
    "pip-over-conda",
    "other-python",
    "jetson-wheels",
];

pub(super) fn problems(case: &Case) -> Vec<Problem> {
    let mut drafts = Vec::new();
    let Some(torch) = &case.machine.torch else {
        drafts.push(no_pytorch(case));
        drafts.extend(other_python(case));
        return drafts.into_iter().map(Problem::from).collect();
    };
    if !torch.broken.is_empty() {
        drafts.push(broken(case, torch));
    }
    let jetson = driver::jetson_wheels(case, torch);
    match torch.build {
        _ if jetson.is_some() => drafts.extend(jetson),
        Build::Cpu if case.concerns_nvidia() => drafts.extend(cpu_only(case, torch)),
        Build::Cpu => {}
        Build::Rocm => drafts.push(rocm(torch)),
        Build::Cuda => {
            drafts.extend(driver_too_old(case, torch));
            drafts.extend(not_in_build(case, torch));
        }
        Build::Unknown => {}
    }
    if is_from_variable(torch) {
        // What is installed into the environment comes after it.
        for draft in drafts.iter_mut().filter(|draft| draft.0.command.is_some()) {
            draft.0.remedy =
                "remove its folder from `PYTHONPATH` and run this again: it hides the installed PyTorch"
                    .to_owned();
            draft.0.command = Some("unset PYTHONPATH".to_owned());
        }
    }
    drafts.extend(several(torch));
    drafts.extend(pip_over_conda(case, torch));
    drafts.extend(other_python(case));
    drafts.into_iter().map(Problem::from).collect()
}

/// Is it found through `PYTHONPATH`, which goes before the environment's own folders?
fn is_from_variable(torch: &Torch) -> bool {
    let variable = std::env::var_os("PYTHONPATH").unwrap_or_default();
    std::env::split_paths(&variable).any(|folder| folder.join("torch") == Path::new(&torch.path))
}

fn no_pytorch(case: &Case) -> Draft {
    let python = &case.machine.python;
    let Some(prefix) = &python.prefix else {
        return Draft::error("no-pytorch", "no Python environment was found")
            .seen("neither `VIRTUAL_ENV` nor `.venv` nor `CONDA_PREFIX` nor a `python` on `PATH`")
            .remedy("pass the environment that your code runs in: `--python PATH`");
    };
    let by = python.found_by.as_deref().unwrap_or_default();
    let draft = Draft::error("no-pytorch", format!("PyTorch is not installed in {prefix}"))
        .seen(format!("samedevice chose this environment by {by}"))
        .seen_all(case.elsewhere.iter().cloned());
    if !case.elsewhere.is_empty() {
        return draft.remedy("activate the other environment, or pass it with `--python`");
    }
    if wheels::none(case).is_some() {
        return draft.remedy("install PyTorch, if there is a build for this Python and system");
    }
    match case.target().new_one() {
        Some(command) => draft.remedy("install it").command(command),
        None => draft
            .remedy("there is no wheel for this Python, processor and driver: use another Python version"),
    }
}

fn broken(case: &Case, torch: &Torch) -> Draft {
    let id = if torch.broken.iter().any(|what| what.contains("imported instead")) {
        "shadowed-by-project"
    } else {
        "broken-pytorch"
    };
    let draft = if torch.broken.iter().any(|what| what.starts_with(MAY_NOT_READ)) {
        // `sudo pip install` with a narrow `umask` leaves it so.
        Draft::error(id, "this user has no permission to read the installed PyTorch")
            .remedy("make its files readable")
            .command(format!("sudo chmod -R a+rX \"{}\"", torch.path))
    } else if id == "broken-pytorch" {
        Draft::error(id, "the installed PyTorch is incomplete")
            .remedy("reinstall it over the remaining files")
            .command_if(case.target().again())
    } else {
        Draft::warning(id, "a file of the project has the same name as PyTorch")
            .remedy("rename it: programs in that folder import it instead of PyTorch")
    };
    draft.seen(format!("it is in {}", torch.path)).seen_all(torch.broken.iter().cloned())
}

fn cpu_only(case: &Case, torch: &Torch) -> Option<Draft> {
    if case.machine.system.os == "macos" {
        return None;
    }
    let version = torch.version.as_deref().unwrap_or("of unknown version");
    let cause = format!("PyTorch {version} is built without CUDA");
    let draft = if case.has_hardware() {
        Draft::error("cpu-only-build", cause)
    } else {
        // It is the right one where there is no GPU.
        Draft::note("cpu-only-build", cause)
    };
    let build = torch.conda_build.as_ref().map(|build| format!("conda's build is {build}"));
    let draft = draft
        .seen(format!("`cuda` in {}/version.py is None", torch.path))
        .seen_all(build)
        .seen_all(torch.installer.as_ref().map(|installer| format!("{installer} installed it")));
    if !case.has_hardware() {
        return Some(draft.remedy(if case.target().may_have_gpu() {
            "if you add a GPU, replace it with the build for CUDA; without one it is the right build"
        } else {
            "nothing: there is no NVIDIA GPU that another build could use"
        }));
    }
    if wheels::none(case).is_some() {
        return Some(draft.remedy("replace it with a build for CUDA, if there is one"));
    }
    Some(match case.target().for_gpu() {
        Some(command) => draft.remedy("replace it with the build for CUDA").command(command),
        None => draft.remedy("you need a build for CUDA, but there is none for this GPU, driver and Python"),
    })
}

fn rocm(torch: &Torch) -> Draft {
    let hip = torch.hip.as_deref().unwrap_or_default();
    Draft::note("rocm-build", format!("PyTorch is built for ROCm {hip}: `cuda` means AMD GPUs"))
        .seen(format!("`hip` in {}/version.py is {hip}", torch.path))
        .remedy("nothing: samedevice only reads /dev/kfd and the kernel's list of GPUs")
}

fn driver_too_old(case: &Case, torch: &Torch) -> Option<Draft> {
    let (driver, cuda) = (case.machine.driver.cuda?, torch.cuda?);
    let version = torch.version.as_deref().unwrap_or_default();
    let driver_name = case.machine.driver.version.as_ref().map(|v| format!(" ({v})")).unwrap_or_default();
    let evidence = format!(
        "the driver{driver_name} supports CUDA {driver}, but PyTorch {version} is built with CUDA {cuda}"
    );
    if driver.major < cuda.major {
        let least = match cuda.major {
            11 => "450.80",
            12 => "525.60",
            13 => "580",
            _ => "the newest one",
        };
        let found = driver.major * 1000 + driver.minor * 10;
        let draft = Draft::error("driver-too-old", "the driver is too old for the CUDA version of PyTorch")
            .seen(evidence)
            .says(format!("The NVIDIA driver on your system is too old (found version {found})"));
        return Some(match case.target().for_gpu() {
            Some(command) => draft
                .remedy(format!(
                    "install a PyTorch build for this driver, or a newer driver ({least} or later)"
                ))
                .command(command),
            None => draft.remedy(format!("install a newer driver ({least} or later)")),
        });
    }
    (driver < cuda).then(|| {
        Draft::note(
            "driver-minor-older",
            "the driver supports an older CUDA than PyTorch is built with, of the same major version",
        )
        .seen(evidence)
        .remedy(
            "nothing, unless a library that compiles kernels at run time (PTX, Triton) fails: then update the driver",
        )
    })
}

/// `is_available()` is true, and the first kernel fails: "no kernel image is available".
fn not_in_build(case: &Case, torch: &Torch) -> Option<Draft> {
    let devices = &case.machine.devices;
    let without: Vec<_> = devices.iter().filter(|device| device.in_build == Some(false)).collect();
    let first = without.first()?;
    let capability = first.capability?;
    let too_old = torch.archs.iter().all(|arch| newer(arch, capability));
    // A Jetson's GPU may be neither: its code is for no other GPU of its generation.
    let too_new = torch.archs.iter().all(|arch| older(arch, capability));
    let what = match (too_old, too_new) {
        (true, _) => "is too old for the installed PyTorch",
        (_, true) => "is too new for the installed PyTorch",
        _ => "is not supported by the installed PyTorch",
    };
    let cause = format!("cuda:{} ({}) {what}: available, but not usable", first.index, first.name);
    let draft = if without.len() == devices.len() {
        Draft::error("gpu-not-in-build", cause)
    } else {
        Draft::warning("gpu-not-in-build", cause)
    };
    let draft = draft
        .seen_all(without.iter().filter_map(|device| {
            Some(format!("cuda:{} has compute capability {}", device.index, device.capability?))
        }))
        .seen(format!("PyTorch has code for {}", torch.archs.join(" ")));
    Some(match case.target().for_gpu() {
        Some(command) => draft.remedy("install a build that supports it").command(command),
        None if too_old => draft.remedy(
            "use an older PyTorch, build PyTorch for this GPU, or hide the GPU with `CUDA_VISIBLE_DEVICES`",
        ),
        None if too_new => draft.remedy("use a newer PyTorch, with the driver that it needs"),
        None => draft.remedy("use a PyTorch that is built for it, for example the NVIDIA builds for Jetson"),
    })
}

/// Is the architecture newer than the device?
fn newer(arch: &str, device: Version) -> bool {
    capability_of(arch).is_some_and(|arch| arch > device)
}

/// Is it older?
fn older(arch: &str, device: Version) -> bool {
    capability_of(arch).is_some_and(|arch| arch < device)
}

/// `sm_90a` is 9.0.
fn capability_of(arch: &str) -> Option<Version> {
    let digits: String = arch.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok().map(|number: u32| Version::new(number / 10, number % 10))
}

fn several(torch: &Torch) -> Option<Draft> {
    if torch.shadowed.is_empty() {
        return None;
    }
    Some(
        Draft::warning(
            "several-pytorch",
            "several PyTorch installations exist, and the first one hides the others",
        )
        .seen(format!("{} is imported", torch.path))
        .seen_all(torch.shadowed.iter().map(|path| format!("{path} is hidden")))
        .remedy("keep one: uninstall the others, unset `PYTHONPATH`, set `PYTHONNOUSERSITE=1`"),
    )
}

fn pip_over_conda(case: &Case, torch: &Torch) -> Option<Draft> {
    let build = torch.conda_build.as_deref()?;
    let installer = torch.installer.as_deref().filter(|installer| *installer != "conda")?;
    Some(
        Draft::warning("pip-over-conda", "conda and pip both installed PyTorch into this environment")
            .seen(format!("conda's record says {build}, and the files are those of {installer}"))
            .remedy("keep one of the two: uninstall the one of pip and reinstall the one of conda (`conda install --force-reinstall pytorch`)")
            .command(case.target().uninstall(&["torch"])),
    )
}

/// What `python` runs is not the environment that is active.
fn other_python(case: &Case) -> Option<Draft> {
    let python = &case.machine.python;
    let (on_path, by) = (python.on_path.as_deref()?, python.found_by.as_deref()?);
    if !matches!(by, "VIRTUAL_ENV" | "CONDA_PREFIX") {
        return None;
    }
    let prefix = python.prefix.as_deref().unwrap_or_default();
    Some(
        Draft::warning(
            "other-python",
            format!("`{by}` names one environment, but `python` belongs to another"),
        )
        .seen(format!("`{by}` is {prefix}"))
        .seen(format!("the first `python` on `PATH` is {on_path}"))
        .remedy("activate the environment again, in this shell"),
    )
}
