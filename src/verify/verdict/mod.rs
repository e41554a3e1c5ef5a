//! From facts to verdicts: why PyTorch can or cannot use a GPU here, and what to do about it. Nothing here looks at
//! the machine; each file takes the [`Case`] and gives problems.

mod companions;
mod devices;
mod driver;
mod import;
mod libraries;
mod messages;
mod modules;
mod rocm;
mod torch;
mod visible;
mod wheels;

use std::collections::BTreeMap;

use super::imports::Import;
use super::install::Target;
use super::machine::{
    Answer, Build, Gravity, Holds, Imported, Machine, NodeState, Outcome, PciGpu, Problem, Status, Worlds,
};
use super::smi::Listed;
use super::system::Files;
use super::torch_install::{Installed, PLUGINS};

/// All that is known.
#[derive(Debug)]
pub struct Case<'a> {
    /// The document, but for the verdicts.
    pub machine: &'a Machine,
    /// Where the system's files are.
    pub files: &'a Files,
    /// What `nvidia-smi` lists.
    pub listed: &'a Listed,
    /// What is installed beside PyTorch.
    pub installed: &'a Installed,
    /// What `import torch` would load, where that can be known.
    pub import: Option<&'a Import>,
    /// PyTorch in other environments, as clauses.
    pub elsewhere: Vec<String>,
}

/// The verdicts.
#[derive(Debug)]
pub struct Verdict {
    /// What is wrong, the gravest and what to do first at the top.
    pub problems: Vec<Problem>,
    /// What findings ask.
    pub worlds: Worlds,
    /// All in all.
    pub status: Status,
}

/// The worlds before anything was asked.
pub fn nothing_known() -> Worlds {
    let cuda = Answer::new(Holds::Unknown, "nothing was asked");
    Worlds { cuda, gpus: None, backends: BTreeMap::new() }
}

/// Decides.
pub fn decide(case: &Case) -> Verdict {
    let mut problems = driver::problems(case);
    problems.extend(visible::problems(case));
    problems.extend(rocm::problems(case));
    problems.extend(wheels::problem(case).map(Problem::from));
    problems.extend(torch::problems(case));
    problems.extend(import::problems(case));
    problems.extend(libraries::problems(case));
    problems.extend(companions::problems(case));
    problems.extend(devices::problems(case));
    problems.sort_by_key(|problem| problem.gravity);
    let worlds = worlds(case, &problems);
    let status = status(case, &problems, &worlds);
    Verdict { problems, worlds, status }
}

/// All in all: can PyTorch use an accelerator?
fn status(case: &Case, problems: &[Problem], worlds: &Worlds) -> Status {
    let wrong = problems.iter().any(|problem| problem.gravity == Gravity::Error);
    let there = |holds: Holds| worlds.backends.values().any(|answer| answer.holds == holds);
    // Without a PyTorch nothing is known of other back ends, and nothing is there to know.
    let may_be_there = case.machine.torch.is_some() && there(Holds::Unknown);
    match worlds.cuda.holds {
        // What cannot be imported uses nothing.
        _ if import::fails(problems) => Status::Problem,
        Holds::Unknown => Status::Unknown,
        _ if wrong => Status::Problem,
        Holds::Yes => Status::Usable,
        Holds::No if there(Holds::Yes) => Status::Usable,
        Holds::No if may_be_there => Status::Unknown,
        Holds::No => Status::Problem,
    }
}

/// What stops every program at `import torch`, if something does.
pub fn stops_import(problems: &[Problem]) -> Option<&Problem> {
    let stops = |id: &str| id == "broken-pytorch" || import::FATAL.contains(&id);
    problems.iter().find(|problem| stops(&problem.id))
}

/// The identifiers of all problems, by the part of the machine that they are about.
pub const CAUSES: [&[&str]; 9] = [
    driver::IDS,
    visible::IDS,
    rocm::IDS,
    wheels::IDS,
    torch::IDS,
    import::IDS,
    libraries::IDS,
    companions::IDS,
    devices::IDS,
];
/// Those of the driver.
pub(super) const OF_DRIVER: &[&[&str]] = &[driver::IDS];
/// Those of single devices and of which can be seen.
pub(super) const OF_DEVICES: &[&[&str]] = &[visible::IDS, rocm::IDS, devices::IDS];
/// Those of PyTorch and of what it brings.
pub(super) const OF_TORCH: &[&[&str]] =
    &[wheels::IDS, torch::IDS, import::IDS, libraries::IDS, companions::IDS];

/// A problem, in the order in which it is told.
struct Draft(Problem);

impl Draft {
    fn new(id: &str, gravity: Gravity, cause: impl Into<String>) -> Self {
        debug_assert!(CAUSES.iter().any(|ids| ids.contains(&id)), "{id} is not listed");
        Self(Problem {
            id: id.to_owned(),
            gravity,
            cause: cause.into(),
            evidence: Vec::new(),
            message: messages::of(id).map(str::to_owned),
            remedy: String::new(),
            command: None,
        })
    }

    fn error(id: &str, cause: impl Into<String>) -> Self {
        Self::new(id, Gravity::Error, cause)
    }

    fn warning(id: &str, cause: impl Into<String>) -> Self {
        Self::new(id, Gravity::Warning, cause)
    }

    fn note(id: &str, cause: impl Into<String>) -> Self {
        Self::new(id, Gravity::Note, cause)
    }

    fn seen(mut self, evidence: impl Into<String>) -> Self {
        self.0.evidence.push(evidence.into());
        self
    }

    fn seen_all(mut self, evidence: impl IntoIterator<Item = String>) -> Self {
        self.0.evidence.extend(evidence);
        self
    }

    /// Quotes what programs say because of it, as people search for it, where that is not the same each time.
    fn says(mut self, message: impl std::fmt::Display) -> Self {
        self.0.message = Some(message.to_string());
        self
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.0.remedy = remedy.into();
        self
    }

    fn command(mut self, command: impl Into<String>) -> Self {
        self.0.command = Some(command.into());
        self
    }

    /// What Python prints, where that is known.
    fn message_if(mut self, message: Option<String>) -> Self {
        self.0.message = message.or(self.0.message);
        self
    }

    /// The command, where there is one.
    fn command_if(mut self, command: Option<String>) -> Self {
        self.0.command = command;
        self
    }
}

impl From<Draft> for Problem {
    fn from(draft: Draft) -> Self {
        draft.0
    }
}

impl Case<'_> {
    fn build(&self) -> Option<Build> {
        self.machine.torch.as_ref().map(|torch| torch.build)
    }

    fn node(&self, wanted: impl Fn(&str, NodeState) -> bool) -> bool {
        self.machine.system.device_nodes.iter().any(|node| wanted(&node.path, node.state))
    }

    /// Are there device files of NVIDIA's at all?
    fn has_nodes(&self) -> bool {
        self.node(|path, state| path.starts_with("/dev/nvidia") && state != NodeState::Missing)
    }

    /// NVIDIA's GPUs by their numbers on the bus: "0000:3b:00.0 is 10de:1b80 (Pascal)".
    fn on_the_bus(&self) -> Vec<String> {
        let gpus = self.machine.system.nvidia_gpus.iter();
        let one = |gpu: &PciGpu| {
            let id = gpu.id.as_deref()?;
            let family = gpu.family.map(|family| format!(" ({})", family.name())).unwrap_or_default();
            Some(format!("{} is {id}{family}", gpu.address))
        };
        gpus.filter_map(one).collect()
    }

    /// Does it matter what NVIDIA's driver says? Not to a PyTorch that is built for others, where nothing of NVIDIA's is.
    fn concerns_nvidia(&self) -> bool {
        let for_others = match &self.machine.torch {
            Some(torch) if torch.build == Build::Rocm => true,
            Some(torch) if torch.build == Build::Cpu => torch.xpu.is_some() || self.has_plugin(),
            _ => false,
        };
        !for_others || self.has_hardware()
    }

    /// Is there a package that brings another back end?
    fn has_plugin(&self) -> bool {
        let installed = |name: &&str| self.installed.packages.contains_key(*name);
        PLUGINS.iter().any(|(_, packages)| packages.iter().any(installed))
    }

    /// What commands that install something are built from.
    fn target(&self) -> Target {
        Target::of(self.machine, self.has_hardware()).with_index(driver::jetson_index(self))
    }

    /// Is something there that shows NVIDIA's hardware, whatever the driver says?
    fn has_hardware(&self) -> bool {
        let system = &self.machine.system;
        system.nvidia_pci_devices.is_some_and(|n| n > 0)
            || !self.listed.gpus.is_empty()
            || self.has_nodes()
            || self.machine.driver.version.is_some()
            || !self.machine.devices.is_empty()
    }
}

/// What PyTorch says of itself, if it was asked.
fn imported<'a>(case: &'a Case) -> Option<&'a Imported> {
    case.machine.torch.as_ref()?.imported.as_ref()
}

fn worlds(case: &Case, problems: &[Problem]) -> Worlds {
    let cuda = cuda(case, problems);
    let gpus = match cuda.holds {
        Holds::Yes if case.build() == Some(Build::Rocm) && imported(case).is_none() => rocm::gpus(case),
        Holds::Yes => imported(case).and_then(|imported| imported.count).or(case.machine.visible.count),
        Holds::No => Some(0),
        Holds::Unknown => None,
    };
    Worlds { cuda, gpus, backends: backends(case) }
}

/// Would `torch.cuda.is_available()` be true?
fn cuda(case: &Case, problems: &[Problem]) -> Answer {
    let because = |ids: &[&str]| {
        problems
            .iter()
            .find(|problem| ids.contains(&problem.id.as_str()))
            .map(|problem| problem.cause.clone())
    };
    if case.machine.system.os == "macos" {
        return Answer::new(Holds::No, "macOS has no CUDA");
    }
    if case.build() == Some(Build::Cpu) {
        let cause = because(&["cpu-only-build", "jetson-wheels"]);
        return Answer::new(Holds::No, cause.unwrap_or_else(|| "PyTorch is built without CUDA".to_owned()));
    }
    if let Some(cause) = because(&["broken-pytorch"]).or_else(|| because(import::FATAL)) {
        return Answer::new(Holds::No, cause);
    }
    // PyTorch's own word.
    if let Some(available) = imported(case).and_then(|imported| imported.available) {
        let by_driver = driver::main(problems).filter(|_| !available && case.build() != Some(Build::Rocm));
        let said = if available { "True" } else { "False" };
        let because = by_driver.map_or_else(
            || format!("PyTorch was imported, and `torch.cuda.is_available()` is {said}"),
            |problem| problem.cause.clone(),
        );
        return Answer::new(if available { Holds::Yes } else { Holds::No }, because);
    }
    if case.build() == Some(Build::Rocm) {
        return rocm::cuda(case, problems);
    }
    if let Some(cause) = because(&["driver-too-old"]) {
        return Answer::new(Holds::No, cause);
    }
    let main = driver::main(problems);
    let by_driver = main.map(|problem| problem.cause.clone());
    let uncertain = matches!(
        case.machine.driver.outcome,
        Outcome::Crashed { .. } | Outcome::TimedOut { .. } | Outcome::NotProbed { .. }
    );
    if uncertain && case.machine.devices.is_empty() {
        return Answer::new(
            Holds::Unknown,
            by_driver.unwrap_or_else(|| "the driver was not asked".to_owned()),
        );
    }
    let count = case
        .machine
        .visible
        .count
        .unwrap_or_else(|| u32::try_from(case.machine.devices.len()).unwrap_or(u32::MAX));
    if count == 0 {
        let fallback = || "the driver shows no device".to_owned();
        let ours = main.is_some_and(|problem| problem.id == driver::OURS);
        let holds = if ours { Holds::Unknown } else { Holds::No };
        return Answer::new(holds, by_driver.unwrap_or_else(fallback));
    }
    let devices = match count {
        1 => "1 CUDA device is visible".to_owned(),
        n => format!("{n} CUDA devices are visible"),
    };
    match case.build() {
        Some(Build::Cuda) => Answer::new(Holds::Yes, devices),
        None => Answer::new(Holds::Yes, format!("{devices}, and no PyTorch was found")),
        Some(_) => {
            Answer::new(Holds::Yes, format!("{devices}, and it is not known what PyTorch is built for"))
        }
    }
}

/// The other back ends.
fn backends(case: &Case) -> BTreeMap<String, Answer> {
    let system = &case.machine.system;
    let mut answers = BTreeMap::new();
    let mps = match (system.os.as_str(), system.arch.as_str()) {
        ("macos", "aarch64") => Answer::new(Holds::Yes, "it is a Mac with Apple's GPU"),
        ("macos", _) => Answer::new(Holds::Unknown, "it is a Mac without an Apple processor, or Rosetta"),
        (os, _) => Answer::new(Holds::No, format!("MPS exists only on macOS, and this system is {os}")),
    };
    answers.insert("mps".to_owned(), mps);
    let unknown = || Answer::new(Holds::Unknown, "no PyTorch was found");
    let xpu = match &case.machine.torch {
        None => unknown(),
        Some(torch) if torch.build == Build::Unknown => unknown(),
        Some(torch) if torch.xpu.is_some() => {
            Answer::new(Holds::Unknown, "PyTorch is built for XPU, which is not probed")
        }
        Some(_) => Answer::new(Holds::No, "the installed PyTorch is built without XPU"),
    };
    answers.insert("xpu".to_owned(), xpu);
    for (name, packages) in PLUGINS {
        let package = packages.iter().find(|package| case.installed.packages.contains_key(**package));
        let answer = match (&case.machine.torch, package) {
            (None, _) => unknown(),
            (_, Some(package)) => {
                Answer::new(Holds::Unknown, format!("`{package}` is installed; its devices are not probed"))
            }
            (_, None) => Answer::new(Holds::No, format!("`{}` is not installed", packages[0])),
        };
        answers.insert(name.to_owned(), answer);
    }
    answers
}

#[cfg(test)]
mod tests;
