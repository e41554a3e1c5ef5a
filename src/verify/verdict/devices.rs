//! What is wrong with single devices.

use super::{Case, Draft};
use crate::verify::machine::{Check, ComputeMode, Device, Problem, Process};
use crate::world::gibibytes;

/// The identifiers of this file's problems.
pub(super) const IDS: &[&str] = &[
    "prohibited-mode",
    "exclusive-mode",
    "low-memory",
    "memory-errors",
    "wrong-results",
    "peer-copy-failed",
    "device-fails",
    "no-bfloat16",
];
/// Less free memory than this is worth a word, in bytes: a context and its libraries take about as much.
const LITTLE: u64 = 1 << 30;
/// So is less than one part in this many.
const LITTLE_PART: u64 = 10;

pub(super) fn problems(case: &Case) -> Vec<Problem> {
    let one = |device: &Device| {
        [mode(device), failed_check(device), low_memory(device), no_bfloat16(device)]
            .into_iter()
            .flatten()
            .collect()
    };
    case.machine.devices.iter().flat_map(|device| -> Vec<Draft> { one(device) }).map(Problem::from).collect()
}

fn mode(device: &Device) -> Option<Draft> {
    let index = device.index;
    match device.compute_mode? {
        ComputeMode::Default => None,
        ComputeMode::Prohibited => Some(
            Draft::error(
                "prohibited-mode",
                format!("cuda:{index} is closed: its compute mode lets nobody in"),
            )
            .seen("the compute mode is Prohibited")
            .remedy("open it")
            .command(format!("sudo nvidia-smi -i {} -c DEFAULT", physical(device))),
        ),
        ComputeMode::ExclusiveProcess => {
            let taken =
                device.checks.iter().any(|check| check.code == Some(46)) || !device.processes.is_empty();
            let draft = if taken {
                Draft::error(
                    "device-unavailable",
                    format!("cuda:{index} is busy: it takes one process at a time"),
                )
            } else {
                Draft::warning("exclusive-mode", format!("cuda:{index} takes one process at a time"))
            };
            Some(
                draft
                    .seen("the compute mode is Exclusive_Process")
                    .seen_all(device.processes.iter().map(holder))
                    .remedy("end the process that has it, or let several in")
                    .command(format!("sudo nvidia-smi -i {} -c DEFAULT", physical(device))),
            )
        }
    }
}

fn physical(device: &Device) -> u32 {
    device.physical_index.unwrap_or(device.index)
}

fn holder(process: &Process) -> String {
    let used = process.used_bytes.map(|bytes| format!(" holds {}", gibibytes(bytes))).unwrap_or_default();
    format!("process {} ({}){used}", process.pid, process.name)
}

fn failed_check(device: &Device) -> Option<Draft> {
    let failed: Vec<&Check> = device.checks.iter().filter(|check| !check.ok).collect();
    let first = failed.first()?;
    let index = device.index;
    if first.code == Some(46) && device.compute_mode == Some(ComputeMode::ExclusiveProcess) {
        return None;
    }
    let seen = failed.iter().map(|check| format!("{}: {}", check.name, check.detail));
    let draft = match (first.name.as_str(), first.code) {
        (_, Some(46)) => Draft::error("device-unavailable", format!("cuda:{index} is busy or unavailable"))
            .remedy("end the process that has it; without one, reset it or reboot"),
        (_, Some(2)) => {
            Draft::error("low-memory", format!("cuda:{index} has too little memory even for a context"))
                .seen_all(device.processes.iter().map(holder))
                .remedy("end what holds its memory")
                .command("nvidia-smi")
        }
        (_, Some(214)) => {
            Draft::error("memory-errors", format!("cuda:{index} has memory errors that cannot be corrected"))
                .remedy("drain it and reset it; if it comes again, have it replaced")
                .command(format!("nvidia-smi -i {} -q -d ECC,ROW_REMAPPER", physical(device)))
        }
        ("copy" | "kernel", None) => {
            Draft::error("wrong-results", format!("cuda:{index} computes or copies wrongly"))
                .remedy("take it out of use: its memory or its bus is broken")
        }
        ("peer-copy", _) => {
            Draft::warning("peer-copy-failed", format!("copies from cuda:{index} to another GPU fail"))
                .remedy("switch off peer access for NCCL, and the IOMMU in the firmware (or its ACS)")
                .command("export NCCL_P2P_DISABLE=1")
        }
        _ => Draft::error("device-fails", format!("cuda:{index} is there, and cannot be used"))
            .remedy("look into the kernel's log, and reboot")
            .command("sudo dmesg | grep -iE 'nvrm|xid'"),
    };
    Some(draft.seen_all(seen))
}

fn low_memory(device: &Device) -> Option<Draft> {
    let (free, total) = (device.free_bytes?, device.total_bytes?);
    if free >= LITTLE && free >= total / LITTLE_PART {
        return None;
    }
    let cause = format!("cuda:{} has only {} of {} free", device.index, gibibytes(free), gibibytes(total));
    let mut processes: Vec<&Process> = device.processes.iter().collect();
    processes.sort_by_key(|process| std::cmp::Reverse(process.used_bytes));
    let seen = processes.into_iter().map(holder);
    let unseen = device
        .processes
        .is_empty()
        .then(|| "nvidia-smi shows no process; in a container it cannot".to_owned());
    Some(
        Draft::warning("low-memory", cause)
            .seen_all(seen)
            .seen_all(unseen)
            .remedy("end what holds it, or take another GPU with `CUDA_VISIBLE_DEVICES`")
            .command("nvidia-smi"),
    )
}

fn no_bfloat16(device: &Device) -> Option<Draft> {
    let capability = device.capability?;
    if device.dtypes?.bfloat16 {
        return None;
    }
    Some(
        Draft::note("no-bfloat16", format!("cuda:{} has no bfloat16 in hardware", device.index))
            .seen(format!(
                "its compute capability is {capability}; bfloat16 begins with 8.0, float8 with 8.9"
            ))
            .remedy("use float16: PyTorch emulates bfloat16, slowly, and libraries refuse it"),
    )
}
