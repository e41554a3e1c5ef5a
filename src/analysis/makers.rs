//! Findings about modules of which the project says how they are made, called and moved: where it is an application, all
//! its files together.

use rustc_hash::FxHashMap;

use super::project::{IN_MODULE, Reading, projects};
use crate::finding::Finding;
use crate::flow::{FilledIn, OneGpu, class_of, function_at, moves_whole};
use crate::link::ClassKey;
use crate::span::FileId;
use crate::world::World;

/// The findings without those about parts of modules that the project makes itself and moves as a whole.
pub(super) fn moved_with_the_whole(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    let dependent: Vec<FileId> = findings.iter().filter_map(|f| f.part_of).map(|spot| spot.file).collect();
    for project in projects(dependent.into_iter(), inputs) {
        // Who uses a library may count on what it says of its device.
        if project.is_built() || !project.complete(reading, &|_| true) {
            continue;
        }
        let files = project.modules(reading);
        let program = &reading.program;
        let mut known: FxHashMap<ClassKey, bool> = FxHashMap::default();
        findings.retain(|f| {
            let spot = f.part_of.filter(|spot| project.holds(spot.file, inputs));
            let class = spot.and_then(|s| class_of(program, program.module_of(s.file)?, s.entry));
            let mut moved = |key| *known.entry(key).or_insert_with(|| moves_whole(program, &files, key));
            !class.is_some_and(&mut moved)
        });
    }
    findings
}

/// The findings without those about branches for what no call of a module in the project leaves out.
pub(super) fn on_what_is_left_out(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    let dependent: Vec<FileId> =
        findings.iter().filter(|f| !f.on_module.is_empty()).map(|f| f.primary.place.file).collect();
    for project in projects(dependent.into_iter(), inputs) {
        if project.is_built() || !project.complete(reading, &|_| true) {
            continue;
        }
        let files = project.modules(reading);
        let filled = FilledIn::of(&reading.program, &files);
        findings.retain(|f| {
            let here = !f.on_module.is_empty() && project.holds(f.primary.place.file, inputs);
            !(here && filled.contains(f.stray_from.unwrap_or(f.primary.place)))
        });
    }
    findings
}

/// The findings without those about modules that choose the current GPU where no program of the project knows another.
pub(super) fn on_one_gpu(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    let asks = |f: &Finding| f.code == IN_MODULE && f.world == World::Cuda;
    let dependent: Vec<FileId> = findings.iter().filter(|f| asks(f)).map(|f| f.primary.place.file).collect();
    for project in projects(dependent.into_iter(), inputs) {
        if project.is_built() || !project.complete(reading, &|_| true) {
            continue;
        }
        let files = project.modules(reading);
        let program = &reading.program;
        let devices = OneGpu::of(program, &files);
        findings.retain(|f| {
            let class = || {
                let (m, func) = function_at(program, f.primary.place)?;
                class_of(program, m, func)
            };
            let here = asks(f) && project.holds(f.primary.place.file, inputs);
            !(here && class().is_some_and(|class| devices.holds(class)))
        });
    }
    findings
}
