//! The probe from outside: starts it, with and without `CUDA_VISIBLE_DEVICES`, and reads what it printed.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use super::facts::{Facts, Snapshot};
use super::probe::Orders;
use super::process::{Running, start};

/// The variable that hides devices.
pub const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";
/// Where the loader looks first.
const SEARCH_PATH: &str = "LD_LIBRARY_PATH";

/// What a probe left.
#[derive(Clone, Debug)]
pub struct Answered {
    /// What it learnt before it ended.
    pub facts: Facts,
    /// How it ended.
    pub ending: Ending,
}

/// How a probe ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It came to its end.
    Done,
    /// It was brought down.
    Crashed {
        /// What it was doing.
        during: String,
        /// "signal 11", "exit code 134".
        how: String,
    },
    /// It ran out of time.
    TimedOut {
        /// What it was doing.
        during: String,
        /// The limit.
        seconds: u64,
    },
    /// It could not be started.
    NotStarted(String),
}

/// Asks the driver in a process of its own: as the environment has it, and, if `CUDA_VISIBLE_DEVICES` is set, once
/// more without.
pub fn ask(orders: &Orders, limit: Duration) -> (Answered, Option<Answered>) {
    let look = Orders::default();
    let deadline = Instant::now() + limit;
    let hidden = std::env::var_os(VISIBLE).is_some();
    let bare = hidden.then(|| Probe { orders: &look, bare: true, deadline }.start(None));
    let shown = Probe { orders, bare: false, deadline };
    let shown = shown.finish(shown.start(None), limit);
    let bare = bare.map(|running| Probe { orders: &look, bare: true, deadline }.finish(running, limit));
    (shown, bare)
}

struct Probe<'a> {
    orders: &'a Orders,
    /// Without the variable?
    bare: bool,
    deadline: Instant,
}

impl Probe<'_> {
    fn start(&self, first: Option<&Path>) -> Result<Running, String> {
        let limit = self.deadline.saturating_duration_since(Instant::now());
        let command = command(self.orders, self.bare, first);
        command.and_then(|command| start(command, limit)).map_err(|error| error.to_string())
    }

    fn finish(&self, running: Result<Running, String>, limit: Duration) -> Answered {
        let answered = wait(running, limit);
        let Some(library) = answered.facts.loaded_from.clone() else { return answered };
        let elsewhere = "loading the library under its other names";
        let other = match &answered.ending {
            Ending::Done => answered.facts.other_library.clone(),
            Ending::Crashed { during, .. } if during == elsewhere => Some("libcuda.so".to_owned()),
            _ => None,
        };
        let Some(other) = other else { return answered };
        // Once more, with a folder in front in which both names are the library that PyTorch opens.
        let Ok(folder) = same_library(&library) else { return answered };
        let mut again = wait(self.start(Some(folder.path())), limit);
        again.facts.loaded_from = Some(library);
        again.facts.other_library = Some(other);
        again
    }
}

fn wait(running: Result<Running, String>, limit: Duration) -> Answered {
    let running = match running {
        Ok(running) => running,
        Err(reason) => return Answered { facts: Facts::default(), ending: Ending::NotStarted(reason) },
    };
    let ended = running.wait();
    let Snapshot { doing, facts } = last_snapshot(&ended.output);
    let ending = match (doing, ended.status) {
        // What was learnt counts, even if the driver's clean-up hangs or crashes.
        (None, _) => Ending::Done,
        (Some(during), None) => Ending::TimedOut { during, seconds: limit.as_secs() },
        (Some(during), Some(status)) => Ending::Crashed { during, how: how(status) },
    };
    Answered { facts, ending }
}

fn command(orders: &Orders, bare: bool, first: Option<&Path>) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(COMMAND);
    if orders.run {
        command.arg("--run");
    }
    for bytes in &orders.allocate {
        command.arg("--allocate").arg(bytes.to_string());
    }
    if bare {
        command.env_remove(VISIBLE);
    }
    if let Some(first) = first {
        let rest = std::env::var_os(SEARCH_PATH).unwrap_or_default();
        let folders = std::iter::once(first.to_owned()).chain(std::env::split_paths(&rest));
        let joined = std::env::join_paths(folders.filter(|folder| *folder != PathBuf::new()));
        command.env(SEARCH_PATH, joined.map_err(std::io::Error::other)?);
    }
    Ok(command)
}

/// The hidden command that is the probe.
pub const COMMAND: &str = "__probe";

/// A folder in which the other name of the library leads to it.
#[cfg(unix)]
fn same_library(library: &str) -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for name in ["libcuda.so", "libcuda.so.1"] {
        std::os::unix::fs::symlink(library, folder.path().join(name))?;
    }
    Ok(folder)
}

#[cfg(not(unix))]
fn same_library(_library: &str) -> std::io::Result<tempfile::TempDir> {
    Err(std::io::Error::other("there is one name only"))
}

/// The last whole line. The driver may print, too.
fn last_snapshot(output: &[u8]) -> Snapshot {
    let text = String::from_utf8_lossy(output);
    text.lines()
        .rev()
        .find_map(|line| serde_json::from_str(line).ok())
        .unwrap_or_else(|| Snapshot { doing: Some("starting".to_owned()), facts: Facts::default() })
}

/// How the process ended: "signal 11", "exit status: 3".
#[cfg(unix)]
pub fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => status.to_string(),
    }
}

/// How the process ended.
#[cfg(not(unix))]
pub fn how(status: ExitStatus) -> String {
    status.to_string()
}
