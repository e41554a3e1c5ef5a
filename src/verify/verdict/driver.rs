//! Why the driver shows no device. At most one cause: what is below it does not matter before that is mended.

use super::{Case, Draft};
use crate::verify::code;
use crate::verify::machine::{NodeState, Outcome, Problem};

/// The identifiers of this file's problems. All but the last say that there is no device.
pub(super) const IDS: &[&str] = &[
    "no-gpu",
    "driver-not-installed",
    "driver-library-missing",
    "driver-library-unloadable",
    OURS,
    "container-without-gpu",
    "gpu-lost-in-container",
    "no-permission",
    "wsl-no-driver",
    "wsl-library-not-found",
    "wsl-linux-driver",
    super::wsl::VERSION_1,
    "stub-library",
    "no-device",
    "not-licensed",
    "hidden-by-visible-devices",
    "mig-without-instances",
    "device-unavailable",
    "fabric-manager",
    "driver-library-mismatch",
    "forward-compatibility",
    "mps-server",
    "unknown-error",
    "driver-error",
    "driver-incomplete",
    "driver-crashed",
    "driver-hangs",
    "not-probed",
    OTHER,
];
const OTHER: &str = "other-driver-library";
/// A cause that lies with this program: PyTorch may well have a GPU.
pub(super) const OURS: &str = "musl-cannot-load";

const RESTART_WSL: &str = "wsl --update; wsl --shutdown    # in Windows";

/// The cause among the problems, if one of them is of this file.
pub(super) fn main(problems: &[Problem]) -> Option<&Problem> {
    problems.iter().find(|problem| problem.id != OTHER && IDS.contains(&problem.id.as_str()))
}

pub(super) fn problems(case: &Case) -> Vec<Problem> {
    let driver = &case.machine.driver;
    let mut problems: Vec<Problem> = Vec::new();
    let main = match &driver.outcome {
        Outcome::Answered if case.machine.visible.count == Some(0) => Some(no_device(case)),
        Outcome::Answered => None,
        Outcome::NoLibrary => no_library(case),
        Outcome::Failed { call, code: 100, .. } => Some(no_device(case).seen(answered(call, 100))),
        Outcome::Failed { call, code, .. } => Some(failed(case, call, *code)),
        Outcome::MissingFunction { call } => Some(
            Draft::error(
                "driver-incomplete",
                "the driver's library is not a whole driver, or older than CUDA 11",
            )
            .seen(format!("it has no `{call}`"))
            .remedy("install NVIDIA's driver again, 525 or newer"),
        ),
        Outcome::Crashed { during, how } => Some(
            Draft::error("driver-crashed", "the driver brings down the process that asks it")
                .seen(format!("{how} while {during}"))
                .remedy("reboot; if it comes again, install the driver again"),
        ),
        Outcome::TimedOut { during, seconds } => Some(
            Draft::error("driver-hangs", "the driver does not answer")
                .seen(format!("no answer within {seconds} seconds while {during}"))
                .remedy("look for the GPU's last words in the kernel's log (Xid), and reboot")
                .command("sudo dmesg | grep -iE 'nvrm|xid'"),
        ),
        Outcome::NotProbed { reason } => Some(
            Draft::error("not-probed", "the probe could not be started")
                .seen(reason.clone())
                .remedy("let this program start itself: it needs its own file and a free process"),
        ),
    };
    problems.extend(main.map(|draft| with_library(draft, case).into()));
    problems.extend(other_library(case).map(Problem::from));
    problems
}

fn answered(call: &str, number: i32) -> String {
    format!("`{call}` answered {}", code::in_words(number))
}

/// Says which file it was about.
fn with_library(draft: Draft, case: &Case) -> Draft {
    match &case.machine.driver.loaded_from {
        Some(path) => draft.seen(format!("the driver's library is {path}")),
        None => draft,
    }
}

fn no_library(case: &Case) -> Option<Draft> {
    let (system, driver) = (&case.machine.system, &case.machine.driver);
    if system.os == "macos" {
        return None;
    }
    let error = driver.load_error.clone().unwrap_or_default();
    let there_but_bad =
        error.contains("ELF") || error.contains("file too short") || error.contains("undefined symbol");
    if there_but_bad {
        return Some(
            Draft::error("driver-library-unloadable", "there is a `libcuda.so.1` that cannot be loaded")
                .seen(error)
                .remedy("remove it from `LD_LIBRARY_PATH`, or install the driver for this processor again"),
        );
    }
    if system.wsl {
        return Some(wsl_without_library(case));
    }
    if !case.listed.gpus.is_empty() || driver.version.is_some() {
        return Some(library_missing(case).seen(error));
    }
    if system.container.is_some() {
        return Some(container(case).seen("there is no `libcuda.so.1`"));
    }
    Some(match system.nvidia_pci_devices {
        Some(0) => Draft::error("no-gpu", "there is no NVIDIA GPU")
            .seen("no display controller of NVIDIA's is on the PCI bus, and there is no `libcuda.so.1`")
            .remedy("run this on a machine with one, or ask the one that the code is for: `--machine FILE`"),
        Some(n) => Draft::error("driver-not-installed", "NVIDIA's driver is not installed")
            .seen(format!("{n} of NVIDIA's display controllers on the PCI bus, and no `libcuda.so.1`"))
            .remedy("install the driver and reboot")
            .command("sudo ubuntu-drivers install    # Debian: sudo apt install nvidia-driver"),
        None => Draft::error("driver-not-installed", "NVIDIA's driver is not installed")
            .seen("there is no driver library")
            .remedy("if this machine has an NVIDIA GPU, install its driver and reboot"),
    })
}

fn library_missing(case: &Case) -> Draft {
    let driver = case.machine.driver.version.as_deref().unwrap_or("of unknown version");
    let seen = format!("the kernel's driver is there ({driver}), and its `libcuda.so.1` is not");
    if cfg!(target_env = "musl") {
        return Draft::error(OURS, "this program is linked with musl, which cannot load NVIDIA's library")
            .seen(seen)
            .remedy("use the program that is linked with glibc");
    }
    let draft = Draft::error("driver-library-missing", "the driver's library for CUDA is missing").seen(seen);
    if case.machine.system.container.is_some() {
        return draft
            .remedy("let the container have CUDA: `NVIDIA_DRIVER_CAPABILITIES` must have `compute` in it")
            .command("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility …");
    }
    draft
        .remedy("install the driver's compute libraries, in the version of the driver")
        .command("sudo apt install libcuda1    # Ubuntu: libnvidia-compute-VERSION")
}

fn wsl_without_library(case: &Case) -> Draft {
    if let Some(draft) = super::wsl::version_1(case) {
        return draft;
    }
    if case.files.at("/usr/lib/wsl/lib/libcuda.so.1").exists() {
        return Draft::error("wsl-library-not-found", "the loader does not find WSL's `libcuda.so.1`")
            .seen("/usr/lib/wsl/lib/libcuda.so.1 is there")
            .remedy("let the loader look there")
            .command("echo /usr/lib/wsl/lib | sudo tee /etc/ld.so.conf.d/wsl.conf && sudo ldconfig");
    }
    wsl_without_gpu("/usr/lib/wsl/lib/libcuda.so.1 is not there")
}

fn wsl_without_gpu(seen: &str) -> Draft {
    Draft::error("wsl-no-driver", "Windows gives WSL no GPU")
        .seen(seen)
        .remedy("install NVIDIA's newest driver in Windows, none in Linux, and use WSL 2")
        .command(RESTART_WSL)
}

fn container(case: &Case) -> Draft {
    let kind = case.machine.system.container.as_deref().unwrap_or("container");
    let draft =
        Draft::error("container-without-gpu", format!("the container ({kind}) was started without the GPU"));
    let draft = if case.has_nodes() { draft } else { draft.seen("there is no /dev/nvidiactl") };
    match kind {
        "kubernetes" | "kubepods" => draft
            .remedy("ask for a GPU in the pod's resources: `limits: {nvidia.com/gpu: 1}`"),
        "apptainer" | "singularity" => draft
            .remedy("start it with `--nv`")
            .command(format!("{kind} exec --nv IMAGE …")),
        "podman" | "libpod" => draft
            .remedy("install nvidia-container-toolkit on the host, write its CDI file, and start the container with it")
            .command("podman run --device nvidia.com/gpu=all …"),
        _ => draft
            .remedy(
                "install nvidia-container-toolkit on the host and start the container with the GPU; while an image is \
                 built there is none",
            )
            .command("docker run --gpus all …"),
    }
}

fn lost(case: &Case) -> Draft {
    let nodes = case.machine.system.device_nodes.iter().filter(|node| node.state == NodeState::Forbidden);
    Draft::error("gpu-lost-in-container", "the container has lost the GPU that it was started with")
        .seen_all(nodes.map(|node| format!("{} is there and may not be opened (EPERM)", node.path)))
        .seen_all(smi_error(case))
        .remedy(
            "restart the container; to keep it, use CDI or `\"exec-opts\": [\"native.cgroupdriver=cgroupfs\"]` in \
             /etc/docker/daemon.json",
        )
        .command("docker restart CONTAINER")
}

fn no_permission(case: &Case) -> Draft {
    let nodes = case.machine.system.device_nodes.iter().filter(|node| node.state == NodeState::Denied);
    Draft::error("no-permission", "the user may not open NVIDIA's device files")
        .seen_all(nodes.map(|node| format!("{} may not be opened (EACCES)", node.path)))
        .remedy("join the group of the files (often `video` or `render`), or ask the job scheduler for a GPU")
        .command("sudo usermod -aG video,render \"$USER\"    # then log in again")
}

fn smi_error(case: &Case) -> Option<String> {
    case.machine.system.nvidia_smi_error.as_ref().map(|error| format!("nvidia-smi: {error}"))
}

/// The driver is there and answers that there is no device.
fn no_device(case: &Case) -> Draft {
    let (system, visible) = (&case.machine.system, &case.machine.visible);
    if visible.value.is_some() && visible.physical.is_some_and(|n| n > 0) {
        return super::visible::hides_all(case);
    }
    if let Some(draft) = node_cause(case) {
        return draft;
    }
    let divided: Vec<_> = case.listed.gpus.iter().filter(|gpu| gpu.mig == Some(true)).collect();
    if !divided.is_empty() {
        return Draft::error("mig-without-instances", "MIG is on, and no instance was made")
            .seen_all(divided.iter().map(|gpu| format!("GPU {} ({}): MIG is enabled", gpu.index, gpu.name)))
            .remedy("make instances, or switch MIG off (`sudo nvidia-smi -mig 0`)")
            .command("sudo nvidia-smi mig -cgi 0 -C    # profiles: nvidia-smi mig -lgip");
    }
    if system.wsl {
        return wsl_library(case).unwrap_or_else(|| wsl_without_gpu("WSL's own library finds no device"));
    }
    if system.container.is_some()
        && !case.node(|path, _| path.bytes().last().is_some_and(|b| b.is_ascii_digit()))
    {
        return container(case).seen("the driver's library is there, and no /dev/nvidia0");
    }
    let draft = Draft::error("no-device", "the driver finds no GPU").seen_all(smi_error(case)).seen_all(
        system.nvidia_pci_devices.map(|n| format!("{n} of NVIDIA's display controllers on the PCI bus")),
    );
    match system.nvidia_pci_devices {
        Some(0) => draft.remedy("check that the GPU is seated, powered, and handed to this (virtual) machine"),
        _ => draft
            .remedy("look into the kernel's log: the GPU may be too old or too new for this driver, or be held by another \
                 one (nouveau, vfio)")
            .command("sudo dmesg | grep -iE 'nvrm|xid|nouveau'"),
    }
}

fn node_cause(case: &Case) -> Option<Draft> {
    if case.any_node(NodeState::Forbidden) {
        return Some(lost(case));
    }
    case.any_node(NodeState::Denied).then(|| no_permission(case))
}

/// WSL with another driver than the one that Windows gives it.
fn wsl_library(case: &Case) -> Option<Draft> {
    let path = case.machine.driver.loaded_from.as_deref()?;
    if !case.machine.system.wsl || case.files.below(path, "/usr/lib/wsl") {
        return None;
    }
    Some(
        Draft::error(
            "wsl-linux-driver",
            "a driver for Linux is installed in WSL, and hides the one of Windows",
        )
        .seen("WSL's own is in /usr/lib/wsl/lib")
        .remedy("remove the packages of the Linux driver, or put /usr/lib/wsl/lib first")
        .command("export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH"),
    )
}

fn failed(case: &Case, call: &str, number: i32) -> Draft {
    let by_system = node_cause(case).or_else(|| wsl_library(case));
    let draft = by_system.unwrap_or_else(|| match (case.machine.system.wsl, number) {
        // Linux has no module of the driver there that could be loaded again.
        (true, 304 | 803 | 999) => by_code(case, number)
            .remedy("update NVIDIA's driver in Windows, and restart WSL")
            .command(RESTART_WSL),
        _ => by_code(case, number),
    });
    draft.seen(answered(call, number))
}

fn by_code(case: &Case, number: i32) -> Draft {
    match number {
        34 => Draft::error(
            "stub-library",
            "the driver's library is the toolkit's stub, which is only for linking",
        )
        .remedy("take the folder `stubs` out of `LD_LIBRARY_PATH`")
        .command("echo $LD_LIBRARY_PATH | tr ':' '\\n' | grep stubs"),
        46 => Draft::error("device-unavailable", "the GPU is busy: it takes one process at a time")
            .seen_all(holders(case))
            .remedy("end the process that has it, or let several in")
            .command("sudo nvidia-smi -c DEFAULT"),
        102 => Draft::error("not-licensed", "the virtual GPU has no license")
            .remedy("let the machine reach its license server")
            .command("nvidia-smi -q | grep -i license"),
        802 => Draft::error("fabric-manager", "NVSwitch is not ready: NVIDIA's fabric manager does not run")
            .remedy("start it, in the version of the driver")
            .command("sudo systemctl enable --now nvidia-fabricmanager"),
        803 => mismatch(case),
        804 => forward_compatibility(case),
        805..=810 => Draft::error("mps-server", "the MPS server does not let this process in")
            .remedy(
                "restart the MPS control daemon, or take `CUDA_MPS_PIPE_DIRECTORY` out of the environment",
            )
            .command("echo quit | nvidia-cuda-mps-control; nvidia-cuda-mps-control -d"),
        999 => unknown(case),
        _ => Draft::error("driver-error", format!("the driver answers {}", code::in_words(number)))
            .seen_all(smi_error(case))
            .remedy("look into the kernel's log, reboot, and if it stays install the driver again")
            .command("sudo dmesg | grep -iE 'nvrm|xid'"),
    }
}

fn holders(case: &Case) -> Vec<String> {
    let processes = case.listed.gpus.iter().flat_map(|gpu| gpu.processes.iter().map(move |p| (gpu, p)));
    processes.map(|(gpu, p)| format!("GPU {}: process {} ({})", gpu.index, p.pid, p.name)).collect()
}

fn mismatch(case: &Case) -> Draft {
    let driver = &case.machine.driver;
    let kernel = driver.version.as_ref().map(|version| format!("the kernel's driver is {version}"));
    let library = driver.library_version.as_ref().map(|version| format!("the library is of {version}"));
    let draft = Draft::error(
        "driver-library-mismatch",
        "the driver's library and its kernel module are of different versions",
    )
    .seen_all(kernel)
    .seen_all(library)
    .seen_all(smi_error(case));
    if case.machine.system.container.is_some() {
        return draft
            .remedy(
                "remove the driver's library from the image: the host's is put in when the container starts",
            )
            .command("ldconfig -p | grep libcuda");
    }
    draft.remedy("reboot, so that the kernel takes the driver that was installed").command("sudo reboot")
}

fn forward_compatibility(case: &Case) -> Draft {
    let path = case.machine.driver.loaded_from.as_deref().unwrap_or_default();
    let search = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let folder = search.split(':').find(|folder| folder.contains("compat"));
    let draft = Draft::error(
        "forward-compatibility",
        "the compatibility library of a newer CUDA is loaded, which the GPU does not support",
    );
    let draft = match folder {
        Some(folder) => draft.seen(format!("`LD_LIBRARY_PATH` has {folder}")),
        None => draft,
    };
    let draft = if path.contains("compat") { draft } else { draft.seen("it is only for data center GPUs") };
    draft
        .remedy(
            "take the folder `compat` out of `LD_LIBRARY_PATH` and of the image, or install a newer driver",
        )
        .command(
            "export LD_LIBRARY_PATH=$(echo $LD_LIBRARY_PATH | tr ':' '\\n' | grep -v compat | paste -sd:)",
        )
}

fn unknown(case: &Case) -> Draft {
    let uvm = |path: &str| path.ends_with("nvidia-uvm");
    let without_uvm = case.has_nodes() && case.node(|path, state| uvm(path) && state == NodeState::Missing);
    let draft = Draft::error("unknown-error", "the driver cannot start, and does not say why")
        .seen_all(smi_error(case));
    if without_uvm {
        return draft
            .seen("/dev/nvidia-uvm is missing")
            .remedy("load the module that makes it")
            .command("sudo nvidia-modprobe -u -c=0");
    }
    draft
        .remedy(
            "load the memory module again (after a suspended or updated system it is often broken), or reboot; set \
             `CUDA_VISIBLE_DEVICES` before the program starts, not in it",
        )
        .command("sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm")
}

/// Programs that open the library under another name get another file.
fn other_library(case: &Case) -> Option<Draft> {
    let other = case.machine.driver.other_library.as_deref()?;
    Some(
        Draft::warning(
            OTHER,
            "`libcuda.so` and `libcuda.so.1` are different libraries here",
        )
        .seen(format!("under another name {other} is found first; PyTorch takes `libcuda.so.1`"))
        .seen_all(case.machine.driver.loaded_from.clone().map(|path| format!("`libcuda.so.1` is {path}")))
        .remedy(
            "take the other one out of `LD_LIBRARY_PATH`: programs that ask for `libcuda.so` fail with it",
        ),
    )
}
