//! The probe's own process: asks the driver and prints what it learns, one line after each step, so that the last
//! line before a crash or a hang still tells how far it came.

use std::io::Write;

use super::driver::{self, CallError, Device, Driver};
use super::exercise;
use super::facts::{Facts, Failure, Progress, Seen};
use super::machine::Peer;

/// What the probe is asked to do besides questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Use the devices: see `exercise`.
    pub run: bool,
    /// Allocate these sizes, in bytes, and give them back.
    pub allocate: Vec<u64>,
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
