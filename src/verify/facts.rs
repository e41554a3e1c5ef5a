//! What the probe's own process prints: the facts so far, as a line of JSON after each step.

use std::io::Write;

use serde::{Deserialize, Serialize};

use super::machine::{Allocation, Check, Peer};

/// A line of the probe's output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// What comes next; `None` when all is done.
    pub doing: Option<String>,
    /// What is known so far.
    pub facts: Facts,
}

/// What the driver says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Why the library could not be loaded.
    pub load_error: Option<String>,
    /// The file that `libcuda.so.1` is.
    pub loaded_from: Option<String>,
    /// Another library that cudarc would have taken instead: then nothing was asked, and the probe wants to be
    /// started again with a search path on which both are the same.
    pub other_library: Option<String>,
    /// `cuDriverGetVersion`: 12040 for 12.4.
    pub cuda: Option<i32>,
    /// The call that ended it all.
    pub failure: Option<Failure>,
    /// The visible devices.
    pub devices: Vec<Seen>,
    /// Who reaches whom.
    pub peers: Vec<Peer>,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The function.
    pub call: String,
    /// Its code; `None` if the library does not have it.
    pub code: Option<i32>,
}

/// A device as the driver describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// Its UUID.
    pub uuid: Option<String>,
    /// Its compute capability.
    pub capability: Option<(u32, u32)>,
    /// In bytes.
    pub total_bytes: Option<u64>,
    /// In bytes; needs a context.
    pub free_bytes: Option<u64>,
    /// `CUcomputemode`.
    pub compute_mode: Option<i32>,
    /// Does it share the host's memory?
    pub integrated: Option<bool>,
    /// `0000:3b:00.0`.
    pub pci: Option<String>,
    /// What came of using it.
    pub checks: Vec<Check>,
    /// What came of allocating.
    pub allocations: Vec<Allocation>,
}

/// Prints the facts after each step.
pub(super) struct Progress<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) facts: Facts,
}

impl Progress<'_> {
    /// Says what comes next. That nobody reads is no reason to stop: devices must be given back.
    pub(super) fn doing(&mut self, what: &str) {
        self.line(Some(what.to_owned()));
    }

    /// Writes what is known, and what comes next.
    pub(super) fn line(&mut self, doing: Option<String>) {
        let snapshot = Snapshot { doing, facts: self.facts.clone() };
        if let Ok(text) = serde_json::to_string(&snapshot) {
            let _ = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
        }
    }
}
