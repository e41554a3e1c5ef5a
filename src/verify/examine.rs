//! The machine, examined: the driver in its own process, `nvidia-smi`, the system's files and PyTorch's, put
//! together.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::about;
use super::archs;
use super::child::{self, Answered, Ending, VISIBLE};
use super::facts::Seen;
use super::imported;
use super::imports::{self, Import, Question};
use super::machine::{
    ComputeMode, Depth, Device, Driver, Dtypes, Machine, Outcome, SCHEMA, Status, Torch, Version, Visible,
};
use super::probe::Orders;
use super::python::{self, Environment};
use super::smi::{self, Gpu, Listed};
use super::system::{Files, is_driver_version};
use super::torch_install::{self, Installed};
use super::verdict::{self, Case};
use super::visibility;

/// `nvidia-smi` gets no longer than this: it is only asked for what the driver does not tell.
const SMI_LIMIT: Duration = Duration::from_secs(10);

/// What to examine, and how far.
#[derive(Clone, Debug)]
pub struct Options {
    /// How far the probe goes.
    pub depth: Depth,
    /// Sizes to allocate for a moment, in bytes; only if the depth is `Run`.
    pub allocate: Vec<u64>,
    /// The interpreter or environment to look for PyTorch in.
    pub python: Option<PathBuf>,
    /// Really import PyTorch, in a process of its own?
    pub import: bool,
    /// Show the devices' UUIDs?
    pub uuids: bool,
    /// How long the driver may take.
    pub limit: Duration,
    /// The working directory.
    pub cwd: PathBuf,
}

/// Examines this machine.
///
/// # Errors
/// If `python` names nothing that is one. Whatever is wrong with the machine is part of the answer.
pub fn examine(options: &Options) -> Result<Machine, String> {
    let environments = python::environments(options.python.as_deref(), &options.cwd)?;
    let files = Files::new();
    let orders = Orders { run: options.depth == Depth::Run, allocate: options.allocate.clone() };
    let asked = smi::ask(options.limit.min(SMI_LIMIT), &files);
    // What is used for a moment is no part of what others hold.
    let (mut asked, mut listed) = (Some(asked), None);
    if orders.run {
        listed = asked.take().map(smi::Asked::listed);
    }
    // The files are read while the driver thinks.
    let ((shown, bare), installed, import, imported) = std::thread::scope(|scope| {
        let probe = scope.spawn(|| child::ask(&orders, options.limit));
        let first = environments.first();
        let installed = first.map(|first| read(first, options)).unwrap_or_default();
        let import = first.and_then(|first| trace(first, &installed, &files));
        let imported = first.filter(|_| options.import).map(|first| imported::ask(first, options));
        let none = || (not_probed("the thread that waits for it ended"), None);
        (probe.join().unwrap_or_else(|_| none()), installed, import, imported)
    });
    let listed = listed.or_else(|| asked.map(smi::Asked::listed)).unwrap_or_default();
    let mut system = files.system();
    about::fill(&files, &mut system);
    system.nvidia_smi_error.clone_from(&listed.error);
    let visible = visible(&shown, bare.as_ref(), &listed);
    let mut torch = installed.torch.clone();
    if let Some(torch) = &mut torch {
        torch.imported = imported;
    }
    let devices = devices(&shown, bare.as_ref(), &listed, torch.as_ref());
    let mut machine = Machine {
        schema: SCHEMA,
        samedevice: env!("CARGO_PKG_VERSION").to_owned(),
        depth: options.depth,
        status: Status::Unknown,
        worlds: verdict::nothing_known(),
        problems: Vec::new(),
        system,
        driver: driver(&shown, &files, &listed),
        visible,
        devices,
        peers: shown.facts.peers.clone(),
        python: python::describe(&environments, &options.cwd),
        torch,
    };
    let elsewhere = elsewhere(&environments, &machine, options);
    let case = Case {
        machine: &machine,
        files: &files,
        listed: &listed,
        installed: &installed,
        import: import.as_ref(),
        elsewhere,
    };
    let verdict = verdict::decide(&case);
    machine.problems = verdict.problems;
    machine.worlds = verdict.worlds;
    machine.status = verdict.status;
    if !options.uuids {
        let answered = bare.as_ref().unwrap_or(&shown);
        let seen = answered.facts.devices.iter().filter_map(|device| device.uuid.as_deref());
        hide(&mut machine, seen.chain(listed.gpus.iter().map(|gpu| gpu.uuid.as_str())));
    }
    Ok(machine)
}

/// Takes the UUIDs out, also where a variable of the environment names devices by them.
fn hide<'a>(machine: &mut Machine, uuids: impl Iterator<Item = &'a str>) {
    machine.devices.iter_mut().for_each(|device| device.uuid = None);
    let problems = machine.problems.iter_mut();
    let texts = problems.flat_map(|problem| std::iter::once(&mut problem.cause).chain(&mut problem.evidence));
    let visible = [machine.visible.value.as_mut(), machine.visible.because.as_mut()].into_iter().flatten();
    let mut texts: Vec<&mut String> =
        texts.chain(visible).chain([&mut machine.worlds.cuda.because]).collect();
    for uuid in uuids.filter(|uuid| !uuid.is_empty()) {
        for text in &mut texts {
            **text = text.replace(uuid, "GPU-…");
        }
    }
}

fn read(environment: &Environment, options: &Options) -> Installed {
    torch_install::read(&python::search_path(environment), &environment.prefix, &options.cwd)
}

/// What `import torch` would load there.
fn trace(environment: &Environment, installed: &Installed, files: &Files) -> Option<Import> {
    let torch = installed.torch.as_ref()?;
    let question = Question {
        torch: Path::new(&torch.path),
        extension: installed.extension.as_deref()?,
        search_path: &python::search_path(environment),
        cuda: torch.cuda,
        interpreter: environment.interpreter.as_deref(),
    };
    imports::trace(&question, files)
}

/// PyTorch in the other environments that are named, where the first has none: "PATH: 2.15.0+cu132 in …".
fn elsewhere(environments: &[Environment], machine: &Machine, options: &Options) -> Vec<String> {
    if machine.torch.is_some() {
        return Vec::new();
    }
    let others = environments.iter().skip(1).filter_map(|environment| {
        let torch = read(environment, options).torch?;
        let version = torch.version.unwrap_or_else(|| "of unknown version".to_owned());
        Some(format!("there is PyTorch {version} in {} (by {})", torch.path, environment.found_by))
    });
    others.collect()
}

fn not_probed(reason: &str) -> Answered {
    Answered { facts: super::facts::Facts::default(), ending: Ending::NotStarted(reason.to_owned()) }
}

fn driver(shown: &Answered, files: &Files, listed: &Listed) -> Driver {
    let facts = &shown.facts;
    let outcome = match &shown.ending {
        Ending::Crashed { during, how } => Outcome::Crashed { during: during.clone(), how: how.clone() },
        Ending::TimedOut { during, seconds } => {
            Outcome::TimedOut { during: during.clone(), seconds: *seconds }
        }
        Ending::NotStarted(reason) => Outcome::NotProbed { reason: reason.clone() },
        Ending::Done if facts.load_error.is_some() => Outcome::NoLibrary,
        Ending::Done => match &facts.failure {
            None => Outcome::Answered,
            Some(failure) => match failure.code {
                None => Outcome::MissingFunction { call: failure.call.clone() },
                Some(code) => {
                    let name = super::code::name(code).to_owned();
                    Outcome::Failed { call: failure.call.clone(), code, name }
                }
            },
        },
    };
    let library_version = facts.loaded_from.as_deref().and_then(|path| {
        let name = path.rsplit('/').next()?.strip_prefix("libcuda.so.")?;
        is_driver_version(name).then(|| name.to_owned())
    });
    Driver {
        outcome,
        loaded_from: facts.loaded_from.clone(),
        other_library: facts.other_library.clone(),
        load_error: facts.load_error.clone(),
        version: files.kernel_module().or_else(|| listed.gpus.iter().find_map(|gpu| gpu.driver.clone())),
        library_version,
        cuda: facts.cuda.and_then(cuda_version),
    }
}

/// 12040 is 12.4.
fn cuda_version(number: i32) -> Option<Version> {
    let number = u32::try_from(number).ok().filter(|n| *n >= 1000)?;
    Some(Version::new(number / 1000, number % 1000 / 10))
}

/// How many devices the driver counted; it answers 100 (NO_DEVICE) for none.
fn count(answered: &Answered) -> Option<u32> {
    if answered.ending != Ending::Done || answered.facts.load_error.is_some() {
        return None;
    }
    match &answered.facts.failure {
        None => u32::try_from(answered.facts.devices.len()).ok(),
        Some(failure) if failure.code == Some(100) => Some(0),
        Some(_) => None,
    }
}

fn visible(shown: &Answered, bare: Option<&Answered>, listed: &Listed) -> Visible {
    let value = std::env::var_os(VISIBLE).map(|value| value.to_string_lossy().into_owned());
    let order = std::env::var_os("CUDA_DEVICE_ORDER").map(|value| value.to_string_lossy().into_owned());
    let listed_count = u32::try_from(listed.gpus.len()).ok().filter(|n| *n > 0);
    let physical = bare.map_or_else(|| count(shown), count).or(listed_count);
    let mut uuids: Vec<Option<String>> =
        bare.unwrap_or(shown).facts.devices.iter().map(|device| device.uuid.clone()).collect();
    if uuids.is_empty() {
        uuids = listed.gpus.iter().map(|gpu| Some(gpu.uuid.clone())).collect();
    }
    let because = value.as_ref().filter(|_| !uuids.is_empty());
    let because = because.and_then(|value| visibility::shown(Some(value), &uuids).cut);
    Visible { value, order, count: count(shown), physical, because }
}

fn devices(shown: &Answered, bare: Option<&Answered>, listed: &Listed, torch: Option<&Torch>) -> Vec<Device> {
    let seen = &shown.facts.devices;
    let all = &bare.unwrap_or(shown).facts.devices;
    (0..).zip(seen).map(|(index, device)| describe(index, device, all, listed, torch)).collect()
}

fn describe(index: u32, seen: &Seen, all: &[Seen], listed: &Listed, torch: Option<&Torch>) -> Device {
    let uuid = seen.uuid.as_deref();
    let gpu: Option<&Gpu> = listed.gpus.iter().find(|gpu| Some(gpu.uuid.as_str()) == uuid);
    let physical = uuid.and_then(|_| all.iter().position(|other| other.uuid.as_deref() == uuid));
    let capability = seen.capability.map(|(major, minor)| Version::new(major, minor));
    let mode = match seen.compute_mode {
        Some(0) => Some(ComputeMode::Default),
        Some(2) => Some(ComputeMode::Prohibited),
        Some(1 | 3) => Some(ComputeMode::ExclusiveProcess),
        _ => gpu.and_then(|gpu| gpu.compute_mode),
    };
    Device {
        index,
        physical_index: physical.and_then(|at| u32::try_from(at).ok()),
        name: seen.name.clone(),
        uuid: seen.uuid.clone(),
        capability,
        total_bytes: seen.total_bytes.or_else(|| gpu.and_then(|gpu| gpu.total_bytes)),
        nvidia_smi_total_bytes: gpu.and_then(|gpu| gpu.total_bytes),
        free_bytes: seen.free_bytes.or_else(|| gpu.and_then(|gpu| gpu.free_bytes)),
        compute_mode: mode,
        // An instance says so in its name, and `nvidia-smi` does not list it among the GPUs.
        mig: gpu.and_then(|gpu| gpu.mig).or_else(|| seen.name.contains(" MIG ").then_some(true)),
        integrated: seen.integrated,
        pci: seen.pci.clone(),
        dtypes: capability.map(Dtypes::of),
        in_build: torch
            .zip(capability)
            .and_then(|(torch, capability)| archs::run_on(&torch.archs, capability, torch.cuda)),
        processes: gpu.map(|gpu| gpu.processes.clone()).unwrap_or_default(),
        checks: seen.checks.clone(),
        allocations: seen.allocations.clone(),
    }
}
