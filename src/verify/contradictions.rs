//! What in a report cannot all be true: reports are edited, and put together from several machines.

use super::machine::{Build, Holds, Machine, Outcome};

/// The contradictions, as sentences without a full stop. A report that this program has written has none.
pub fn of(machine: &Machine) -> Vec<String> {
    let mut found = Vec::new();
    counts(machine, &mut found);
    availability(machine, &mut found);
    devices(machine, &mut found);
    found
}

fn counts(machine: &Machine, found: &mut Vec<String>) {
    let visible = &machine.visible;
    let devices = u32::try_from(machine.devices.len()).unwrap_or(u32::MAX);
    if let (Some(count), Some(physical)) = (visible.count, visible.physical)
        && count > physical
        // Instances of one GPU are each counted.
        && !machine.devices.iter().any(|device| device.mig == Some(true))
    {
        found.push(format!("`visible.count` is {count}, and `visible.physical` only {physical}"));
    }
    if let Some(count) = visible.count
        && count != devices
        && matches!(machine.driver.outcome, Outcome::Answered)
    {
        found.push(format!("`visible.count` is {count}, and `devices` has {devices} in it"));
    }
    // AMD's GPUs are not in NVIDIA's count.
    let amd = machine.torch.as_ref().is_some_and(|torch| torch.build == Build::Rocm);
    if let (Holds::Yes, Some(gpus), Some(count)) =
        (machine.worlds.cuda.holds, machine.worlds.gpus, visible.count)
        && gpus != count
        && !amd
    {
        found.push(format!("`worlds.gpus` is {gpus}, and `visible.count` is {count}"));
    }
}

fn availability(machine: &Machine, found: &mut Vec<String>) {
    let system = &machine.system;
    if machine.worlds.cuda.holds == Holds::Yes {
        let build = machine.torch.as_ref().map(|torch| torch.build);
        let reason = match (&machine.driver.outcome, build) {
            (Outcome::NoLibrary, Some(Build::Cuda) | None) => Some("`driver.outcome.kind` is `no-library`"),
            (_, Some(Build::Cpu)) => Some("`torch.build` is `cpu`"),
            _ if machine.worlds.gpus == Some(0) => Some("`worlds.gpus` is 0"),
            _ => None,
        };
        found.extend(reason.map(|reason| format!("`worlds.cuda.holds` is `yes`, and {reason}")));
    }
    let mps = machine.worlds.backends.get("mps").is_some_and(|mps| mps.holds == Holds::Yes);
    if mps && system.os != "macos" {
        found.push(format!("`worlds.backends.mps.holds` is `yes`, and `system.os` is `{}`", system.os));
    }
}

fn devices(machine: &Machine, found: &mut Vec<String>) {
    for (place, device) in (0..).zip(&machine.devices) {
        if device.index != place {
            found.push(format!("`devices[{place}].index` is {}", device.index));
        }
        if let (Some(free), Some(total)) = (device.free_bytes, device.total_bytes)
            // `nvidia-smi` counts what the driver keeps for itself, too.
            && free > total.max(device.nvidia_smi_total_bytes.unwrap_or(0))
        {
            found.push(format!("`devices[{place}]` has more free than in all: {free} of {total} bytes"));
        }
    }
    let count = u32::try_from(machine.devices.len()).unwrap_or(u32::MAX);
    let beyond = machine.peers.iter().find(|peer| peer.from >= count || peer.to >= count);
    found.extend(
        beyond.map(|peer| {
            format!("`peers` names cuda:{}, and there are {count} devices", peer.from.max(peer.to))
        }),
    );
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::verify::parse;

    #[test]
    fn what_cannot_all_be_true_is_told() {
        let report = include_str!("../../fixtures/machines/one-gpu.json");
        assert_eq!(of(&parse(report).unwrap()), [""; 0]);
        for (from, to, says) in [
            ("\"count\": 1", "\"count\": 3", "`visible.count` is 3, and `visible.physical` only 1"),
            ("\"kind\": \"answered\"", "\"kind\": \"no-library\"", "`driver.outcome.kind` is `no-library`"),
            ("\"build\": \"cuda\"", "\"build\": \"cpu\"", "`torch.build` is `cpu`"),
            ("\"index\": 0", "\"index\": 2", "`devices[0].index` is 2"),
            ("\"gpus\": 1", "\"gpus\": 2", "`worlds.gpus` is 2, and `visible.count` is 1"),
        ] {
            assert!(report.contains(from), "{from}");
            let told = of(&parse(&report.replacen(from, to, 1)).unwrap());
            assert!(told.iter().any(|text| text.contains(says)), "{says}: {told:?}");
        }
    }
}
