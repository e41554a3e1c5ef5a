//! Machines that give a GPU only to those who ask for one.

use super::library::{self, NO_DRIVER};
use super::{Case, Draft};
use crate::verify::machine::NodeState;
use crate::verify::surroundings::{COLAB, KAGGLE, SLURM};

/// Set for jobs that were given GPUs: sbatch(1), *output environment variables*.
const GIVEN: [&str; 3] = ["SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE"];
/// What Slurm lets a job without GPUs see, as a device that no system has.
const NO_DEVICES: &str = "NoDevFiles";

/// "Jobs will not be allocated any generic resources unless specifically requested at job submit time":
/// slurm.schedmd.com/gres.html. What it does not give is hidden by rules for device files, a variable, or both.
pub(super) fn slurm(case: &Case) -> Option<Draft> {
    // The number of GPUs may be 0; in the lists that is the first one.
    let none = |name: &str, value: &str| value.is_empty() || value == "0" && name == "SLURM_GPUS_ON_NODE";
    let given = |name: &str| std::env::var(name).is_ok_and(|value| !none(name, &value));
    if !case.is_in(SLURM) || GIVEN.into_iter().any(given) {
        return None;
    }
    let system = &case.machine.system;
    let forbidden = system.device_nodes.iter().find(|node| node.state == NodeState::Forbidden);
    let hidden = case.machine.visible.value.as_deref() == Some(NO_DEVICES);
    // Another value is somebody else's, a GPU that may be opened was not kept from the job, and a driver that is not installed
    // would not help it.
    let open = case.node(|path, state| state == NodeState::Usable && library::is_gpu(path));
    let not_installed = case.no_library() && system.nvidia_pci_devices.is_some_and(|n| n > 0);
    let silent = case.no_library() || case.no_reason();
    if !silent || not_installed || !hidden && (open || case.machine.visible.value.is_some()) {
        return None;
    }
    Some(
        Draft::error("slurm-without-gpu", "the Slurm job has no GPU")
            .seen(format!("`SLURM_JOB_ID` is set, and none of {}", GIVEN.join(", ")))
            .seen_all(forbidden.map(|node| format!("{} cannot be opened (EPERM)", node.path)))
            .seen_all(hidden.then(|| format!("`CUDA_VISIBLE_DEVICES` is {NO_DEVICES}")))
            .says("RuntimeError: No CUDA GPUs are available")
            .remedy(
                "request one when you submit the job: `--gres=gpu:1` or `--gpus=1`, in a partition with GPUs",
            )
            .command("srun --gres=gpu:1 --pty bash"),
    )
}

pub(super) fn colab(case: &Case) -> Option<Draft> {
    notebook(
        case,
        COLAB,
        Draft::error("colab-without-gpu", "the Colab notebook runs without a GPU")
            .remedy("select one in the menu: Runtime > Change runtime type > T4 GPU"),
    )
}

pub(super) fn kaggle(case: &Case) -> Option<Draft> {
    notebook(
        case,
        KAGGLE,
        Draft::error("kaggle-without-gpu", "the Kaggle notebook runs without a GPU")
            .remedy("select one in the menu: Settings > Accelerator > GPU T4 x2; the account must be verified by phone"),
    )
}

fn notebook(case: &Case, name: &str, draft: Draft) -> Option<Draft> {
    let none = case.no_library() || case.no_device() && case.machine.visible.value.is_none();
    (case.is_in(name) && none && !case.has_nodes())
        .then(|| draft.seen("there is no /dev/nvidiactl").says(NO_DRIVER))
}
