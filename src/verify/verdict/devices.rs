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
                format!("cuda:{index} rejects all processes: its compute mode is Prohibited"),
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
                    format!("cuda:{index} is in use: its compute mode allows one process at a time"),
                )
            } else {
                Draft::warning("exclusive-mode", format!("cuda:{index} takes one process at a time"))
            };
            Some(
                draft
                    .seen("the compute mode is Exclusive_Process")
                    .seen_all(device.processes.iter().map(holder))
                    .remedy("stop the process that uses it, or allow several processes")
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
            .remedy("stop the process that uses it; if there is none, reset the GPU or reboot"),
        (_, Some(2)) => {
            Draft::error("low-memory", format!("cuda:{index} has too little free memory to create a context"))
                .seen_all(device.processes.iter().map(holder))
                .remedy("stop the process that uses its memory")
                .command("nvidia-smi")
        }
        (_, Some(214)) => {
            Draft::error("memory-errors", format!("cuda:{index} has memory errors that cannot be corrected"))
                .remedy("stop its jobs and reset it; if the errors come back, replace the GPU")
                .command(format!("nvidia-smi -i {} -q -d ECC,ROW_REMAPPER", physical(device)))
        }
        ("copy" | "kernel", None) => {
            Draft::error("wrong-results", format!("cuda:{index} computes or copies wrongly"))
                .remedy("do not use this GPU: its memory or its PCIe connection is defective")
        }
        ("peer-copy", _) => {
            Draft::warning("peer-copy-failed", format!("copies from cuda:{index} to another GPU fail"))
                .remedy("disable peer access for NCCL; disable the IOMMU (or ACS) in the firmware")
                .command("export NCCL_P2P_DISABLE=1")
        }
        _ => Draft::error("device-fails", format!("cuda:{index} exists but cannot be used"))
            .remedy("read the kernel log and reboot")
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
            .remedy("stop the process that uses it, or choose another GPU with `CUDA_VISIBLE_DEVICES`")
            .command("nvidia-smi"),
    )
}

fn no_bfloat16(device: &Device) -> Option<Draft> {
    let capability = device.capability?;
    if device.dtypes?.bfloat16 {
        return None;
    }
    Some(
        Draft::note("no-bfloat16", format!("cuda:{} does not support bfloat16 in hardware", device.index))
            .seen(format!("its compute capability is {capability}; bfloat16 needs 8.0, float8 needs 8.9"))
            .remedy("use float16: PyTorch emulates bfloat16 slowly, and some libraries reject it"),
    )
}
