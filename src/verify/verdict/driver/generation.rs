//! The kernel module is loaded, and is not for this generation of GPUs.

use super::{Case, DROPPED, Draft};
use crate::verify::machine::{Family, Flavor, PciGpu};

/// The generations of all GPUs on the bus, if they are known, with the number of the driver's series.
fn all(case: &Case) -> Option<(Vec<Family>, u32)> {
    let gpus = &case.machine.system.nvidia_gpus;
    let families: Option<Vec<Family>> = gpus.iter().map(|gpu| gpu.family).collect();
    let families = families.filter(|families| case.no_reason() && !families.is_empty())?;
    let version = case.machine.driver.version.as_deref()?;
    Some((families, version.split('.').next()?.parse().ok()?))
}

pub(super) fn dropped(case: &Case) -> Option<Draft> {
    let (families, series) = all(case)?;
    let last = families.iter().map(|family| family.last_driver().filter(|last| *last < series));
    // One driver for all of them is the oldest that one of them needs.
    let last = last.collect::<Option<Vec<u32>>>()?.into_iter().min()?;
    let name = families.first()?.name();
    // `PYTORCH_RELEASES_CODE_CC` in `torch/cuda/__init__.py` of 2.15.
    let torch = if last == 580 { "; only the PyTorch builds for CUDA 12.6 support it" } else { "" };
    Some(
        Draft::error("gpu-dropped-by-driver", format!("driver {series} no longer supports the GPU ({name})"))
            .seen_all(case.on_the_bus())
            .seen(format!("the last drivers that support it are those of series {last}"))
            .seen_all(case.smi_error())
            .says(legacy(last))
            .remedy(format!("install a driver of series {last} and do not upgrade it{torch}"))
            .command(package(last)),
    )
}

/// Of several GPUs the driver shows some, and has dropped others.
pub(super) fn some(case: &Case) -> Option<Draft> {
    let gpus = &case.machine.system.nvidia_gpus;
    let shown = usize::try_from(case.machine.visible.physical?).ok().filter(|shown| *shown > 0)?;
    let series: u32 = case.machine.driver.version.as_deref()?.split('.').next()?.parse().ok()?;
    let of = |gpu: &PciGpu| gpu.family.and_then(|family| Some((family, family.last_driver()?)));
    let dropped = gpus.iter().filter_map(|gpu| Some((gpu, of(gpu)?))).find(|(_, (_, last))| *last < series);
    let (gpu, (family, last)) = dropped.filter(|_| shown < gpus.len())?;
    let cause = format!("driver {series} no longer supports the GPU {} ({})", gpu.address, family.name());
    Some(
        Draft::warning(DROPPED, cause)
            .seen_all(case.on_the_bus())
            .seen(format!("the driver shows {shown} of {}", gpus.len()))
            .says(legacy(last))
            .remedy(format!(
                "if you need that GPU, install a driver of series {last} that also supports the other GPUs"
            ))
            .command(package(last)),
    )
}

/// What the kernel's log has of it.
fn legacy(last: u32) -> String {
    format!("NVRM: … supported through the NVIDIA {last}.xx Legacy drivers")
}

fn package(last: u32) -> String {
    format!("sudo apt install nvidia-driver-{last}    # Ubuntu; elsewhere the packages of {last}")
}

pub(super) fn needs_proprietary(case: &Case) -> Option<Draft> {
    let (families, series) = all(case)?;
    let open = case.machine.system.kernel_module.flavor == Some(Flavor::Open);
    if !open || families.iter().any(|family| family.runs_open()) {
        return None;
    }
    let name = families.first()?.name();
    Some(
        Draft::error(
            "open-module-on-old-gpu",
            format!("the open kernel module does not support the GPU ({name})"),
        )
        .seen("/proc/driver/nvidia/version says \"Open Kernel Module\", which is for Turing and later")
        .seen_all(case.on_the_bus())
        .seen_all(case.smi_error())
        .says("NVRM: … is not supported by open nvidia.ko because it does not include the required GPU System Processor (GSP)")
        .remedy("install the proprietary module of the same driver, and reboot")
        .command(format!("sudo apt install nvidia-driver-{series}    # without `-open`")),
    )
}

pub(super) fn needs_open(case: &Case) -> Option<Draft> {
    let (families, series) = all(case)?;
    let closed = case.machine.system.kernel_module.flavor == Some(Flavor::Proprietary);
    if !closed || families.iter().any(|family| family.runs_proprietary()) {
        return None;
    }
    let name = families.first()?.name();
    // Drivers before that do not know it at all (README of the driver, chapter *Supported NVIDIA GPU Products*).
    let series = series.max(570);
    Some(
        Draft::error(
            "proprietary-module-on-new-gpu",
            format!("the proprietary kernel module does not support the GPU ({name})"),
        )
        .seen("/proc/driver/nvidia/version does not say \"Open Kernel Module\"")
        .seen_all(case.on_the_bus())
        .seen_all(case.smi_error())
        .says("NVRM: … requires use of the NVIDIA open kernel modules")
        .remedy("install the open module of the same driver, and reboot")
        .command(format!("sudo apt install nvidia-driver-{series}-open")),
    )
}
