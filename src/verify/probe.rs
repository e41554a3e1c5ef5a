//! The probe's own process: asks the driver and prints what it learns, one line after each step, so that the last
//! line before a crash or a hang still tells how far it came.

use std::io::Write;

use serde::{Deserialize, Serialize};

use super::driver::{self, CallError, Device, Driver};
use super::exercise;
use super::machine::{Allocation, Check, Peer};

/// What the probe is asked to do besides questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Use the devices: see [`exercise`].
    pub run: bool,
    /// Allocate these sizes, in bytes, and give them back.
    pub allocate: Vec<u64>,
}

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
    out: &'a mut dyn Write,
    pub(super) facts: Facts,
}

impl Progress<'_> {
    /// Says what comes next. That nobody reads is no reason to stop: devices must be given back.
    pub(super) fn doing(&mut self, what: &str) {
        self.line(Some(what.to_owned()));
    }

    fn line(&mut self, doing: Option<String>) {
        let snapshot = Snapshot { doing, facts: self.facts.clone() };
        if let Ok(text) = serde_json::to_string(&snapshot) {
            let _ = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
        }
    }
}

/// Asks the driver.
pub fn run(orders: &Orders, out: &mut dyn Write) {
    // cudarc's messages would be taken for the program's.
    std::panic::set_hook(Box::new(|_| {}));
    let mut progress = Progress { out, facts: Facts::default() };
    if let Err(error) = ask(orders, &mut progress) {
        let call = match error {
            CallError::Missing(call) | CallError::Code(call, _) => call.to_owned(),
        };
        progress.facts.failure = Some(Failure { call, code: error.code() });
    }
    progress.line(None);
}

fn ask(orders: &Orders, progress: &mut Progress) -> driver::Result<()> {
    progress.doing("loading the driver's library");
    if let Err(error) = driver::open() {
        progress.facts.load_error = Some(error);
        return Ok(());
    }
    progress.facts.loaded_from = mapped_libraries().into_iter().next();
    // PyTorch opens `libcuda.so.1`; cudarc tries `libcuda.so` first, which may be another file.
    progress.doing("loading the library under its other names");
    let driver = Driver::load();
    let first = progress.facts.loaded_from.clone();
    if let Some(other) = mapped_libraries().into_iter().find(|path| Some(path) != first.as_ref()) {
        progress.facts.other_library = Some(other);
        return Ok(());
    }
    progress.doing("asking for the driver's version");
    match driver.version() {
        Ok(version) => progress.facts.cuda = Some(version),
        // A driver that does not tell its version may still say what is wrong with it.
        Err(CallError::Code(..)) => {}
        Err(missing) => return Err(missing),
    }
    progress.doing("initializing the driver (`cuInit`)");
    driver.init()?;
    progress.doing("counting devices");
    let mut devices = Vec::new();
    for ordinal in 0..driver.device_count()? {
        progress.doing(&format!("asking device {ordinal}"));
        let device = driver.device(ordinal)?;
        progress.facts.devices.push(describe(device)?);
        devices.push(device);
    }
    progress.doing("asking which devices reach each other");
    progress.facts.peers = peers(&devices);
    if orders.run {
        exercise::run(&devices, &orders.allocate, progress);
    }
    Ok(())
}

fn describe(device: Device) -> driver::Result<Seen> {
    let capability = device.capability().ok();
    let capability = capability.and_then(|(a, b)| Some((u32::try_from(a).ok()?, u32::try_from(b).ok()?)));
    let pci = |(domain, bus, slot): (i32, i32, i32)| format!("{domain:04x}:{bus:02x}:{slot:02x}.0");
    Ok(Seen {
        name: device.name()?,
        uuid: device.uuid().ok(),
        capability,
        total_bytes: device.total_memory().ok(),
        compute_mode: device.compute_mode().ok(),
        integrated: device.integrated().ok(),
        pci: device.pci().ok().map(pci),
        ..Seen::default()
    })
}

fn peers(devices: &[Device]) -> Vec<Peer> {
    let mut peers = Vec::new();
    for (from, a) in (0..).zip(devices) {
        for (to, b) in (0..).zip(devices) {
            if from != to
                && let Ok(direct) = a.reaches(*b)
            {
                peers.push(Peer { from, to, direct });
            }
        }
    }
    peers
}

/// The driver libraries in this process, in the order of their first mapping. Only Linux tells.
fn mapped_libraries() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    for line in maps.lines() {
        let Some(path) = line.find('/').map(|at| &line[at..]) else { continue };
        let name = path.rsplit('/').next().unwrap_or_default();
        if name.starts_with("libcuda.so") && !found.iter().any(|known| known == path) {
            found.push(path.to_owned());
        }
    }
    found
}
