//! The report for people: what is right, what is wrong, what to do first.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::conclusion::conclusion;
use super::machine::{Build, Device, Gravity, Machine, NodeState, Outcome, Problem};
use super::shorten::cut;
use super::verdict::{OF_DEVICES, OF_DRIVER, OF_TORCH};
use crate::report::one_line;
use crate::world::gibibytes;

/// How to write it.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// With colors?
    pub color: bool,
    /// With more than ASCII?
    pub unicode: bool,
}

/// From the best to the worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    Right,
    Doubtful,
    Wrong,
}

impl Mark {
    fn write(self, look: Look) -> String {
        let (sign, ascii, color) = match self {
            Self::Right => ("✓", "ok", AnsiColor::Green),
            Self::Wrong => ("✗", "no", AnsiColor::Red),
            Self::Doubtful => ("!", "??", AnsiColor::Yellow),
        };
        let sign = if look.unicode { sign } else { ascii };
        if look.color {
            let style = Style::new().bold().fg_color(Some(color.into()));
            format!("{style}{sign}{style:#}")
        } else {
            sign.to_owned()
        }
    }
}

/// Writes the report.
///
/// # Errors
/// If that fails.
pub fn write(machine: &Machine, look: Look, out: &mut dyn Write) -> io::Result<()> {
    for (mark, name, text) in lines(machine) {
        writeln!(out, "{} {name:<9} {}", mark.write(look), one_line(&text))?;
        if name == "devices" {
            for device in &machine.devices {
                writeln!(out, "    {}", one_line(&describe(device)))?;
                for line in tried(device) {
                    writeln!(out, "        {}", one_line(&line))?;
                }
            }
            if let Some(peers) = peers(machine) {
                writeln!(out, "    {peers}")?;
            }
        }
    }
    for problem in shown(machine) {
        writeln!(out)?;
        tell(problem, look, out)?;
    }
    writeln!(out, "\n{}", one_line(&conclusion(machine)))
}

/// Problems that are only in the document: nobody has to do anything about them.
const QUIET: [&str; 1] = ["driver-minor-older"];

/// The problems that people are told.
pub(super) fn shown(machine: &Machine) -> impl Iterator<Item = &Problem> {
    machine.problems.iter().filter(|problem| !QUIET.contains(&problem.id.as_str()))
}

fn lines(machine: &Machine) -> Vec<(Mark, &'static str, String)> {
    let mut lines = vec![system(machine), driver(machine), devices(machine), python(machine), torch(machine)];
    for (line, causes) in [(1, OF_DRIVER), (2, OF_DEVICES), (4, OF_TORCH)] {
        lines[line].0 = lines[line].0.max(worst(machine, causes));
    }
    lines
}

/// How a line is marked that these problems are about.
fn worst(machine: &Machine, causes: &[&[&str]]) -> Mark {
    let about = |problem: &&Problem| causes.iter().any(|ids| ids.contains(&problem.id.as_str()));
    let marks = machine.problems.iter().filter(about).map(|problem| match problem.gravity {
        Gravity::Error => Mark::Wrong,
        Gravity::Warning => Mark::Doubtful,
        Gravity::Note => Mark::Right,
    });
    marks.max().unwrap_or(Mark::Right)
}

pub(super) fn system(machine: &Machine) -> (Mark, &'static str, String) {
    let system = &machine.system;
    let name = system.distribution.as_deref().unwrap_or(&system.os);
    let mut text = format!("{name} on {}", system.arch);
    if system.wsl {
        text.push_str(", under Windows (WSL)");
    }
    if let Some(container) = &system.container {
        text.push_str(&format!(", in a container ({container})"));
    }
    (Mark::Right, "system", text)
}

pub(super) fn driver(machine: &Machine) -> (Mark, &'static str, String) {
    let driver = &machine.driver;
    if asks_amd(machine) {
        return if machine.system.wsl {
            (Mark::Doubtful, "driver", "AMD: not checked in WSL".to_owned())
        } else if machine.system.amd.kfd == Some(NodeState::Usable) {
            (Mark::Right, "driver", "AMD's: /dev/kfd".to_owned())
        } else {
            (Mark::Wrong, "driver", "AMD: /dev/kfd cannot be opened".to_owned())
        };
    }
    let mut parts = Vec::new();
    parts.extend(driver.version.clone());
    parts.extend(driver.cuda.map(|cuda| format!("supports CUDA up to {cuda}")));
    parts.extend(driver.loaded_from.clone());
    let (mark, state) = match &driver.outcome {
        Outcome::Answered => (Mark::Right, None),
        Outcome::NoLibrary => (Mark::Wrong, Some("none: there is no `libcuda.so.1`".to_owned())),
        Outcome::Failed { call, code, name } => {
            (Mark::Wrong, Some(format!("`{call}` answered {code} ({name})")))
        }
        Outcome::MissingFunction { call } => (Mark::Wrong, Some(format!("it has no `{call}`"))),
        Outcome::Crashed { during, how } => (Mark::Wrong, Some(format!("crashed ({how}) while {during}"))),
        Outcome::TimedOut { during, seconds } => {
            (Mark::Wrong, Some(format!("no answer within {seconds} seconds while {during}")))
        }
        Outcome::NotProbed { reason } => (Mark::Doubtful, Some(format!("not asked: {reason}"))),
    };
    parts.extend(state);
    (mark, "driver", parts.join(", "))
}

/// Are the GPUs that PyTorch is built for AMD's, and is nothing of NVIDIA's there that could be told instead?
fn asks_amd(machine: &Machine) -> bool {
    let rocm = machine.torch.as_ref().is_some_and(|torch| torch.build == Build::Rocm);
    rocm && machine.driver.outcome == Outcome::NoLibrary && machine.system.amd.kfd.is_some()
}

pub(super) fn devices(machine: &Machine) -> (Mark, &'static str, String) {
    if asks_amd(machine) {
        let gpus = &machine.system.amd.gpus;
        return match gpus.len() {
            0 if machine.system.wsl => (Mark::Doubtful, "devices", "not known".to_owned()),
            0 => (Mark::Wrong, "devices", "none".to_owned()),
            n => (Mark::Right, "devices", format!("{n} ({})", gpus.join(", "))),
        };
    }
    let visible = &machine.visible;
    let (mark, mut text) = match (visible.count, visible.physical) {
        (None, _) if machine.devices.is_empty() => (Mark::Doubtful, "not known".to_owned()),
        (None, _) => (Mark::Doubtful, machine.devices.len().to_string()),
        (Some(0), None | Some(0)) => (Mark::Wrong, "none".to_owned()),
        (Some(0), Some(all)) => (Mark::Wrong, format!("none of {all} visible")),
        (Some(count), Some(all)) if count < all => (Mark::Right, format!("{count} of {all} visible")),
        (Some(count), _) => (Mark::Right, format!("{count}")),
    };
    if let Some(value) = &visible.value {
        text.push_str(&format!(" (CUDA_VISIBLE_DEVICES={})", cut(value, ',')));
    }
    (mark, "devices", text)
}

pub(super) fn describe(device: &Device) -> String {
    let mut parts = vec![format!("cuda:{}  {}", device.index, device.name)];
    parts.extend(device.capability.map(|capability| format!("compute capability {capability}")));
    parts.push(match (device.free_bytes, device.total_bytes) {
        (Some(free), Some(total)) => format!("{} of {} free", gibibytes(free), gibibytes(total)),
        (None, Some(total)) => gibibytes(total),
        _ => "memory not known".to_owned(),
    });
    if let Some(physical) = device.physical_index.filter(|physical| *physical != device.index) {
        parts.push(format!("device {physical} of all"));
    }
    if device.mig == Some(true) {
        parts.push("MIG".to_owned());
    }
    parts.extend(device.uuid.clone());
    parts.join(", ")
}

/// Which devices read each other's memory, if there are several.
pub(super) fn peers(machine: &Machine) -> Option<String> {
    let apart = machine.peers.iter().filter(|peer| !peer.direct);
    let apart: Vec<String> = apart.map(|peer| format!("cuda:{} from cuda:{}", peer.to, peer.from)).collect();
    match (machine.peers.is_empty(), apart.len()) {
        (true, _) => None,
        (_, 0) => Some("every GPU has direct access to the others' memory".to_owned()),
        (_, all) if all == machine.peers.len() => {
            Some("no GPU has direct access to another's memory".to_owned())
        }
        _ => Some(format!("no direct access: {}", apart.join(", "))),
    }
}

/// What was tried on the device.
pub(super) fn tried(device: &Device) -> Vec<String> {
    let word = |ok| if ok { "works" } else { "fails" };
    let checks =
        device.checks.iter().map(|check| format!("{} {}: {}", check.name, word(check.ok), check.detail));
    let allocations = device
        .allocations
        .iter()
        .map(|tried| format!("allocating {} {}: {}", gibibytes(tried.bytes), word(tried.ok), tried.detail));
    checks.chain(allocations).collect()
}

pub(super) fn python(machine: &Machine) -> (Mark, &'static str, String) {
    let python = &machine.python;
    let version = python.version.as_ref().map(|version| format!("{version}, ")).unwrap_or_default();
    match (&python.prefix, &python.found_by) {
        (Some(prefix), Some(by)) => (Mark::Right, "Python", format!("{version}{prefix} (found by {by})")),
        _ => (Mark::Doubtful, "Python", "no environment found".to_owned()),
    }
}

pub(super) fn torch(machine: &Machine) -> (Mark, &'static str, String) {
    let Some(torch) = &machine.torch else {
        return (Mark::Wrong, "PyTorch", "not installed in this Python".to_owned());
    };
    let version = torch.version.as_deref().unwrap_or("of unknown version");
    let built = match torch.build {
        Build::Cuda => torch.cuda.map_or_else(|| "CUDA".to_owned(), |cuda| format!("CUDA {cuda}")),
        Build::Rocm => "ROCm".to_owned(),
        Build::Cpu if torch.xpu.is_some() => "Intel's GPUs (XPU)".to_owned(),
        Build::Cpu => "the CPU only".to_owned(),
        Build::Unknown => "nobody knows what".to_owned(),
    };
    let mark = match torch.build {
        Build::Cuda if torch.broken.is_empty() => Mark::Right,
        Build::Cpu if torch.xpu.is_none() => Mark::Wrong,
        _ => Mark::Doubtful,
    };
    let archs = if torch.archs.is_empty() { String::new() } else { format!(" ({})", torch.archs.join(" ")) };
    (mark, "PyTorch", format!("{version}, built for {built}{archs}, in {}", torch.path))
}

fn tell(problem: &Problem, look: Look, out: &mut dyn Write) -> io::Result<()> {
    let (word, color) = match problem.gravity {
        Gravity::Error => ("error", AnsiColor::Red),
        Gravity::Warning => ("warning", AnsiColor::Yellow),
        Gravity::Note => ("note", AnsiColor::Cyan),
    };
    let style = if look.color { Style::new().bold().fg_color(Some(color.into())) } else { Style::new() };
    writeln!(out, "{style}{word}[{}]{style:#} {}", problem.id, one_line(&problem.cause))?;
    for evidence in problem.evidence.iter().filter(|evidence| !evidence.is_empty()) {
        writeln!(out, "    {}", one_line(evidence))?;
    }
    if let Some(message) = &problem.message {
        writeln!(out, "  message: {}", one_line(message))?;
    }
    if !problem.remedy.is_empty() {
        writeln!(out, "  help: {}", one_line(&problem.remedy))?;
    }
    match &problem.command {
        Some(command) => writeln!(out, "      $ {}", one_line(command)),
        None => Ok(()),
    }
}
