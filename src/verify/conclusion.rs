//! The whole in a sentence or two. It promises no more than is true of every single GPU.

use super::machine::{ComputeMode, Device, Gravity, Holds, Machine, Status};

/// What PyTorch can use on the machine, or why it cannot.
pub fn conclusion(machine: &Machine) -> String {
    let because = &machine.worlds.cuda.because;
    match (machine.status, machine.worlds.cuda.holds) {
        (Status::Usable, Holds::Yes) => usable(machine),
        (Status::Usable, _) => "PyTorch can use Apple's GPU here (`mps`).".to_owned(),
        // What there may be is another back end.
        (Status::Unknown, Holds::No) => {
            format!("Unknown: {}.", may_be_there(machine).unwrap_or(because))
        }
        (Status::Unknown, _) => format!("Unknown: {because}."),
        (Status::Problem, _) if machine.torch.is_none() => {
            let driver = match machine.worlds.cuda.holds {
                Holds::Yes => format!(", though the driver works: {because}"),
                _ => String::new(),
            };
            let other = machine
                .problems
                .first()
                .filter(|first| first.gravity == Gravity::Error && first.id != "no-pytorch");
            match other {
                Some(first) => format!(
                    "PyTorch cannot use a GPU here: {}; and no PyTorch was found.{}",
                    first.cause,
                    first_error(machine)
                ),
                None => format!("There is no PyTorch here{driver}.{}", first_error(machine)),
            }
        }
        (Status::Problem, Holds::Yes) => {
            format!(
                "`torch.cuda.is_available()` is true here, but operations on the GPU fail.{}",
                first_error(machine)
            )
        }
        (Status::Problem, _) => {
            // The first error of the list, so that the sentence and the list agree.
            let first = machine.problems.first().filter(|problem| problem.gravity == Gravity::Error);
            let because = first.map_or(because, |problem| &problem.cause);
            format!("PyTorch cannot use a GPU here: {because}.{}", first_error(machine))
        }
    }
}

/// Why it is not known whether there is a back end besides CUDA.
fn may_be_there(machine: &Machine) -> Option<&String> {
    let unknown = machine.worlds.backends.values().find(|answer| answer.holds == Holds::Unknown);
    unknown.map(|answer| &answer.because)
}

fn first_error(machine: &Machine) -> &'static str {
    let error = machine.problems.first().is_some_and(|problem| problem.gravity == Gravity::Error);
    if error { " Fix the first error above first." } else { "" }
}

fn usable(machine: &Machine) -> String {
    let (good, bad): (Vec<&Device>, Vec<&Device>) =
        machine.devices.iter().partition(|device| is_usable(device));
    let all = machine.worlds.gpus.unwrap_or_else(|| u32::try_from(machine.devices.len()).unwrap_or(u32::MAX));
    if bad.is_empty() {
        let gpus = if all == 1 { "1 GPU".to_owned() } else { format!("{all} GPUs") };
        return format!("PyTorch can use {gpus} here.");
    }
    let names = |devices: &[&Device]| {
        let names: Vec<String> = devices.iter().map(|device| format!("cuda:{}", device.index)).collect();
        names.join(", ")
    };
    format!("PyTorch can use {} of {all} GPUs here: {}, but not {}.", good.len(), names(&good), names(&bad))
}

/// Can programs use it, as far as is known?
fn is_usable(device: &Device) -> bool {
    let closed = match device.compute_mode {
        Some(ComputeMode::Prohibited) => true,
        Some(ComputeMode::ExclusiveProcess) => !device.processes.is_empty(),
        _ => false,
    };
    // A GPU whose copies to another one fail is of use alone.
    let fails = device.checks.iter().any(|check| !check.ok && check.name != "peer-copy");
    device.in_build != Some(false) && !closed && !fails
}
