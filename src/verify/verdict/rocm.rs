//! A PyTorch that is built for ROCm: are AMD's GPUs there, and may they be used? Asked through `/dev/kfd`, which every program of
//! ROCm opens, and the kernel's list of its nodes.

use super::{Case, Draft};
use crate::verify::machine::{Answer, Build, Holds, NodeState, Problem, Torch};

/// The identifiers of this file's problems.
pub(super) const IDS: &[&str] = &[
    "rocm-container",
    "rocm-no-permission",
    "rocm-other-gpu",
    "rocm-no-gpu",
    "rocm-module-not-loaded",
    "rocm-unsupported-gpu",
];
/// What PyTorch says where it finds none.
const NO_GPUS: &str = "RuntimeError: No HIP GPUs are available";
/// Variables that choose among the GPUs (`_parse_visible_devices` in `torch/cuda/__init__.py`).
const CHOOSE: [&str; 3] = ["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"];

fn torch<'a>(case: &'a Case) -> Option<&'a Torch> {
    case.machine.torch.as_ref().filter(|torch| torch.build == Build::Rocm)
}

/// Is there something that can be asked? WSL has AMD's GPUs in another way, and Windows another one.
fn can_be_asked(case: &Case) -> Option<NodeState> {
    case.machine.system.amd.kfd.filter(|_| !case.machine.system.wsl)
}

/// Would `torch.cuda.is_available()` be true? PyTorch calls AMD's GPUs `cuda`, too.
pub(super) fn cuda(case: &Case, problems: &[Problem]) -> Answer {
    let Some(state) = can_be_asked(case) else {
        return Answer::new(
            Holds::Unknown,
            "PyTorch is built for ROCm, which samedevice does not check on this system",
        );
    };
    let first = problems.iter().find(|problem| IDS.contains(&problem.id.as_str()));
    if let Some(problem) = first {
        return Answer::new(Holds::No, problem.cause.clone());
    }
    let gpus = &case.machine.system.amd.gpus;
    match (state, chosen()) {
        (NodeState::Usable, Some((variable, value))) => Answer::new(
            Holds::Unknown,
            format!("PyTorch is built for ROCm, and `{variable}={value}` selects some of its GPUs"),
        ),
        (NodeState::Usable, None) => {
            let how_many = if gpus.len() == 1 { "1 GPU".to_owned() } else { format!("{} GPUs", gpus.len()) };
            Answer::new(Holds::Yes, format!("{how_many} of AMD's: {}", gpus.join(", ")))
        }
        _ => Answer::new(Holds::Unknown, "`/dev/kfd`, the device file of ROCm, cannot be opened"),
    }
}

/// What `torch.cuda.device_count()` would be, if `cuda` holds.
pub(super) fn gpus(case: &Case) -> Option<u32> {
    u32::try_from(case.machine.system.amd.gpus.len()).ok()
}

fn chosen() -> Option<(&'static str, String)> {
    CHOOSE.iter().find_map(|variable| Some((*variable, std::env::var(variable).ok()?)))
}

pub(super) fn problems(case: &Case) -> Vec<Problem> {
    torch(case).and_then(|torch| problem(case, torch)).map(Problem::from).into_iter().collect()
}

/// At most one, from the outside to the inside.
fn problem(case: &Case, torch: &Torch) -> Option<Draft> {
    let state = can_be_asked(case)?;
    let system = &case.machine.system;
    let on_bus = system.amd.pci_devices.map(|n| format!("AMD display controllers on the PCI bus: {n}"));
    let none = system.amd.pci_devices == Some(0);
    Some(match state {
        NodeState::Denied => {
            Draft::error("rocm-no-permission", "this user has no permission to open AMD's device file")
                .seen("/dev/kfd cannot be opened (EACCES)")
                .says(NO_GPUS)
                .remedy("add the user to the groups of the files")
                .command("sudo usermod -aG render,video \"$USER\"    # then log in again")
        }
        NodeState::Missing | NodeState::Forbidden if system.container.is_some() => {
            Draft::error("rocm-container", "the container was started without AMD's GPU")
                .seen("/dev/kfd does not exist or cannot be opened")
                .says(NO_GPUS)
                .remedy("start it with the device files of ROCm")
                .command("docker run --device=/dev/kfd --device=/dev/dri --group-add video …")
        }
        NodeState::Missing if none && case.has_hardware() => {
            other_gpu(case, torch).seen("there is no /dev/kfd").seen_all(on_bus)
        }
        NodeState::Missing if none => Draft::error("rocm-no-gpu", "there is no AMD GPU")
            .seen("there is no AMD display controller on the PCI bus, and no /dev/kfd")
            .says(NO_GPUS)
            .remedy("run this on a machine with a GPU, or use a report of one: `--machine FILE`"),
        NodeState::Missing => Draft::error("rocm-module-not-loaded", "AMD's kernel module is not loaded")
            .seen("there is no /dev/kfd")
            .seen_all(on_bus)
            .says(NO_GPUS)
            .remedy("load it; if the kernel does not include it, install AMD's (`amdgpu-dkms`)")
            .command("sudo modprobe amdgpu"),
        NodeState::Usable if system.amd.gpus.is_empty() => {
            Draft::error("rocm-unsupported-gpu", "the kernel shows no GPU that ROCm can use")
                .seen("/dev/kfd is there, and none of its nodes is a GPU")
                .seen_all(on_bus)
                .says(NO_GPUS)
                .remedy("check which GPUs ROCm supports, and read the kernel log")
                .command("sudo dmesg | grep -iE 'amdgpu|kfd'")
        }
        _ => return None,
    })
}

/// The wrong build: the GPU is NVIDIA's.
fn other_gpu(case: &Case, torch: &Torch) -> Draft {
    let hip = torch.hip.as_deref().unwrap_or_default();
    let draft = Draft::error(
        "rocm-other-gpu",
        format!("PyTorch is built for ROCm {hip}, but the GPU is from NVIDIA"),
    )
    .seen_all(case.on_the_bus())
    .says(NO_GPUS);
    match case.target().for_gpu() {
        Some(command) => draft.remedy("replace it with the build for CUDA").command(command),
        None => draft.remedy("install a build for CUDA"),
    }
}
