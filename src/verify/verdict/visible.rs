//! What `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER` do to the devices.

use super::{Case, Draft};
use crate::verify::machine::Problem;
use crate::verify::shorten;

/// The identifiers of this file's problems.
pub(super) const IDS: &[&str] = &["visible-devices-cut", "device-order-unknown", "device-order"];
/// The values that CUDA knows.
const ORDERS: [&str; 2] = ["FASTEST_FIRST", "PCI_BUS_ID"];

/// The variable hides every device that there is.
pub(super) fn hides_all(case: &Case) -> Draft {
    let visible = &case.machine.visible;
    let value = visible.value.as_deref().unwrap_or_default();
    let physical = visible.physical.unwrap_or_default();
    let reason = match &visible.because {
        Some(_) if value.starts_with("MIG-") => {
            format!("no MIG instance is called {value}; `nvidia-smi -L` lists them")
        }
        Some(reason) => reason.clone(),
        None => "the driver accepts none of its elements".to_owned(),
    };
    let shown = shorten::cut(value, ',');
    Draft::error("hidden-by-visible-devices", format!("`CUDA_VISIBLE_DEVICES={shown}` hides every GPU"))
        .seen(format!(
            "without it, there {}",
            if physical == 1 { "is 1".to_owned() } else { format!("are {physical}") }
        ))
        .seen(reason)
        .remedy("unset it, or set it to numbers that exist, before the program starts")
        .command("unset CUDA_VISIBLE_DEVICES")
}

pub(super) fn problems(case: &Case) -> Vec<Problem> {
    [cut(case), order(case), order_by_speed(case)].into_iter().flatten().map(Problem::from).collect()
}

/// Some are visible, and others that are named are not.
fn cut(case: &Case) -> Option<Draft> {
    let visible = &case.machine.visible;
    let (value, count, reason) = (visible.value.as_deref()?, visible.count?, visible.because.clone()?);
    // With one MIG instance all is as it was meant.
    if count == 0 || (value.starts_with("MIG-") && !value.contains(',')) {
        return None;
    }
    let (named, value) = (value.split(',').count(), shorten::cut(value, ','));
    Some(
        Draft::warning(
            "visible-devices-cut",
            format!("`CUDA_VISIBLE_DEVICES={value}` names {named} devices, but the driver shows {count}"),
        )
        .seen(reason)
        .remedy("name only existing devices, each once, all by number or all by UUID")
        .command("nvidia-smi -L"),
    )
}

fn order(case: &Case) -> Option<Draft> {
    let order = case.machine.visible.order.as_deref()?;
    if ORDERS.contains(&order) {
        return None;
    }
    Some(
        Draft::warning(
            "device-order-unknown",
            format!("`CUDA_DEVICE_ORDER={order}` is not a value that CUDA knows"),
        )
        .seen("CUDA knows FASTEST_FIRST, the default, and PCI_BUS_ID, the order of nvidia-smi")
        .remedy("set one of these two")
        .command("export CUDA_DEVICE_ORDER=PCI_BUS_ID"),
    )
}

/// The numbers of CUDA and of `nvidia-smi` differ.
fn order_by_speed(case: &Case) -> Option<Draft> {
    let different = case.machine.devices.iter().filter_map(|device| {
        let uuid = device.uuid.as_deref()?;
        let gpu = case.listed.gpus.iter().find(|gpu| gpu.uuid == uuid)?;
        let physical = device.physical_index?;
        (gpu.index != physical).then(|| {
            format!("cuda:{} is the {} with number {} in nvidia-smi", device.index, device.name, gpu.index)
        })
    });
    let different: Vec<String> = different.collect();
    if different.is_empty() {
        return None;
    }
    Some(
        Draft::note("device-order", "CUDA and nvidia-smi number the GPUs differently")
            .seen_all(different)
            .remedy("make CUDA use the order of nvidia-smi if you copy numbers from there")
            .command("export CUDA_DEVICE_ORDER=PCI_BUS_ID"),
    )
}
