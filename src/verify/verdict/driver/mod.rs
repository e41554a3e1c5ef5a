//! Why the driver shows no device. At most one cause: what is below it does not matter before that is mended.

mod answers;
mod container;
mod device;
mod generation;
mod hosted;
mod jetson;
mod library;
mod module;
mod outcome;
mod wsl;

use super::{Case, Draft};
use crate::verify::code;
use crate::verify::machine::{Gravity, Outcome, Problem};

pub(super) use jetson::{index as jetson_index, wheels as jetson_wheels};

/// A cause and the question for it.
struct Cause {
    id: &'static str,
    /// Is it this one? Then in words.
    ask: fn(&Case) -> Option<Draft>,
}

const fn cause(id: &'static str, ask: fn(&Case) -> Option<Draft>) -> Cause {
    Cause { id, ask }
}

/// All causes, the most specific first: the first that holds is told. What was learnt of the driver itself comes before
/// what keeps it from the GPU, and that in the order from the outside to the inside: the one who gives the GPU away
/// (Slurm, a notebook, a container's engine, Windows), the user's permissions, the loader's folders, the kernel's
/// module, the hardware.
const CAUSES: &[Cause] = &[
    cause("not-probed", outcome::not_probed),
    cause("driver-crashed", outcome::crashed),
    cause("driver-hangs", outcome::hangs),
    cause("driver-incomplete", library::incomplete),
    cause("driver-library-unloadable", library::unloadable),
    cause("stub-library", library::stub),
    cause("not-licensed", answers::not_licensed),
    cause("fabric-manager", answers::fabric_manager),
    cause("mps-server", answers::mps_server),
    cause("forward-compatibility", answers::forward_compatibility),
    cause("slurm-without-gpu", hosted::slurm),
    cause("hidden-by-visible-devices", device::hidden),
    cause("colab-without-gpu", hosted::colab),
    cause("kaggle-without-gpu", hosted::kaggle),
    cause("wsl-container-without-gpu", wsl::container),
    cause("wsl-container-toolkit", wsl::toolkit),
    cause("gpu-lost-in-container", container::lost),
    cause("no-permission", device::no_permission),
    cause("wsl-linux-driver", wsl::linux_driver),
    cause("driver-library-mismatch", answers::mismatch),
    cause("device-unavailable", answers::unavailable),
    cause("wsl-1", wsl::first),
    cause("wsl-library-not-found", wsl::library_not_found),
    cause("driver-library-not-searched", library::not_searched),
    cause("runtime-class", container::runtime_class),
    cause(OURS, library::musl),
    cause("driver-library-missing", library::missing),
    cause("mig-without-instances", device::mig),
    cause("wsl-no-driver", wsl::no_driver),
    cause("container-without-gpu", container::without_gpu),
    cause("jetson-driver", jetson::driver),
    cause("optimus", module::optimus),
    cause("kernel-module-forbidden", module::forbidden),
    cause("gpu-held-for-guest", module::held_for_guest),
    cause("nouveau", module::nouveau),
    cause("driver-not-installed", library::not_installed),
    cause("kernel-module-not-built", module::not_built),
    cause("kernel-module-rejected", module::rejected),
    cause("kernel-module-not-loaded", module::not_loaded),
    cause(DROPPED, generation::dropped),
    cause("open-module-on-old-gpu", generation::needs_proprietary),
    cause("proprietary-module-on-new-gpu", generation::needs_open),
    cause("unknown-error", answers::unknown),
    cause("no-gpu", library::no_gpu),
    cause("no-device", device::none),
    cause("driver-error", answers::other),
];
/// Told besides, of a driver that works.
const OTHER: &str = "other-driver-library";
/// The same of a single GPU.
const DROPPED: &str = "gpu-dropped-by-driver";
/// A cause that lies with this program: PyTorch may well have a GPU.
pub(super) const OURS: &str = "musl-cannot-load";

/// The identifiers of this folder's problems. All but the last say that there is no device.
pub(super) const IDS: &[&str] = &ids();

const fn ids() -> [&'static str; CAUSES.len() + 1] {
    let mut ids = [OTHER; CAUSES.len() + 1];
    let mut at = 0;
    while at < CAUSES.len() {
        ids[at] = CAUSES[at].id;
        at += 1;
    }
    ids
}

/// The cause among the problems, if one of them is of this folder.
pub(super) fn main(problems: &[Problem]) -> Option<&Problem> {
    let of_all = |problem: &&Problem| problem.id != OTHER && problem.gravity == Gravity::Error;
    problems.iter().filter(of_all).find(|problem| IDS.contains(&problem.id.as_str()))
}

pub(super) fn problems(case: &Case) -> Vec<Problem> {
    let mut drafts = Vec::new();
    if fails(case) && case.concerns_nvidia() {
        drafts.extend(CAUSES.iter().find_map(|cause| Some(known(case, cause.id, (cause.ask)(case)?))));
    }
    drafts.extend(generation::some(case));
    drafts.extend(library::other(case));
    drafts.into_iter().map(Problem::from).collect()
}

/// Is there something to explain? macOS has no such driver.
fn fails(case: &Case) -> bool {
    let answered = case.machine.driver.outcome == Outcome::Answered;
    case.machine.system.os != "macos" && !(answered && case.machine.visible.count != Some(0))
}

/// Says what the driver answered, and which file it was about.
fn known(case: &Case, id: &str, mut draft: Draft) -> Draft {
    debug_assert_eq!(draft.0.id, id, "the table has another name for it");
    // A container has neither the kernel's modules nor the system's services.
    let on_host = |command: &String| command.starts_with("sudo ") && !command.contains('#');
    if case.machine.system.container.is_some() && draft.0.command.as_ref().is_some_and(on_host) {
        draft.0.command = draft.0.command.map(|command| format!("{command}    # on the host"));
    }
    if let Outcome::Failed { call, code, .. } = &case.machine.driver.outcome {
        draft = draft.seen(format!("`{call}` answered {}", code::in_words(*code)));
    }
    match &case.machine.driver.loaded_from {
        Some(path) => draft.seen(format!("the driver's library is {path}")),
        None => draft,
    }
}

/// What the driver's state is in short.
impl Case<'_> {
    /// The code that ended it all, if one did.
    fn code(&self) -> Option<i32> {
        match self.machine.driver.outcome {
            Outcome::Failed { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Is there no library of the driver's?
    fn no_library(&self) -> bool {
        self.machine.driver.outcome == Outcome::NoLibrary
    }

    /// Is the driver there, and says that no device is? Code 100 is NO_DEVICE.
    fn no_device(&self) -> bool {
        self.machine.driver.outcome == Outcome::Answered || self.code() == Some(100)
    }

    /// Did the driver not even say why? Also code 999, UNKNOWN, and 304, which is for a call to the system.
    fn no_reason(&self) -> bool {
        self.no_device() || matches!(self.code(), Some(304 | 999))
    }

    fn is_in(&self, surroundings: &str) -> bool {
        self.machine.system.surroundings.iter().any(|name| name == surroundings)
    }

    fn smi_error(&self) -> Option<String> {
        self.machine.system.nvidia_smi_error.as_ref().map(|error| format!("nvidia-smi: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{CAUSES, IDS, OTHER};

    /// What holds on one machine, the one that is told first: it explains the others.
    const BEFORE: &[(&str, &str)] = &[
        // A notebook and a job may run in a container, a container in WSL.
        ("slurm-without-gpu", "hidden-by-visible-devices"),
        ("slurm-without-gpu", "gpu-lost-in-container"),
        ("slurm-without-gpu", "container-without-gpu"),
        ("slurm-without-gpu", "no-gpu"),
        ("colab-without-gpu", "container-without-gpu"),
        ("kaggle-without-gpu", "container-without-gpu"),
        ("wsl-container-without-gpu", "container-without-gpu"),
        ("wsl-container-without-gpu", "wsl-no-driver"),
        ("wsl-container-toolkit", "driver-error"),
        ("wsl-linux-driver", "wsl-no-driver"),
        ("wsl-1", "wsl-no-driver"),
        ("wsl-library-not-found", "wsl-no-driver"),
        // What the library is, before what it says.
        ("stub-library", "driver-error"),
        ("driver-library-unloadable", "driver-library-missing"),
        // The library is there, where nobody looks.
        ("driver-library-not-searched", "runtime-class"),
        ("driver-library-not-searched", "driver-library-missing"),
        ("driver-library-not-searched", "container-without-gpu"),
        ("driver-library-not-searched", "driver-not-installed"),
        ("runtime-class", "driver-library-missing"),
        ("runtime-class", "container-without-gpu"),
        // Files that may not be opened, before codes that come of it.
        ("gpu-lost-in-container", "unknown-error"),
        ("no-permission", "unknown-error"),
        // Why the module is not there, from the switch that keeps it out to no reason at all.
        ("optimus", "kernel-module-forbidden"),
        ("kernel-module-forbidden", "nouveau"),
        ("nouveau", "kernel-module-not-loaded"),
        ("kernel-module-not-built", "kernel-module-rejected"),
        ("kernel-module-rejected", "kernel-module-not-loaded"),
        ("kernel-module-not-loaded", "unknown-error"),
        ("kernel-module-not-loaded", "no-device"),
        // A GPU that is on no bus.
        ("optimus", "no-gpu"),
        ("jetson-driver", "no-gpu"),
        // The module is there, and is not for the GPU.
        ("gpu-dropped-by-driver", "open-module-on-old-gpu"),
        ("gpu-dropped-by-driver", "unknown-error"),
        ("open-module-on-old-gpu", "no-device"),
        ("proprietary-module-on-new-gpu", "no-device"),
    ];

    #[test]
    fn the_most_specific_cause_is_asked_for_first() {
        let at =
            |id: &str| CAUSES.iter().position(|cause| cause.id == id).unwrap_or_else(|| panic!("no {id}"));
        for (first, second) in BEFORE {
            assert!(at(first) < at(second), "{first} explains {second}");
        }
        // The last one has no condition.
        assert_eq!(at("driver-error"), CAUSES.len() - 1);
    }

    #[test]
    fn every_cause_has_a_name_of_its_own() {
        let mut names = IDS.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CAUSES.len() + 1);
        assert_eq!(IDS.last(), Some(&OTHER));
    }
}
