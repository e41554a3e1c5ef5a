//! Refutes findings that depend on the arguments of callers in the project.

use rustc_hash::FxHashSet;

use super::project::{Reading, projects_of};
use super::refuters::{COPIED, DOUBLE_ON_MPS, answered_by_callers, causes};
use crate::finding::Finding;
use crate::flow::{Paths, StandIns, Target, function_at};
use crate::ir::is_private;
use crate::link::Program;
use crate::sym::Sym;

/// Removes findings about a copy that only happens if a caller omits an argument, where all callers give it.
pub(super) fn copied_instead(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    let words = |f: &Finding, program: &Program| -> FxHashSet<Sym> {
        causes(f).into_iter().flat_map(|place| StandIns::words(program, place)).collect()
    };
    let asks = |f: &Finding, program: &Program| f.code == COPIED && !words(f, program).is_empty();
    for project in projects_of(&findings, asks, reading) {
        let here = |f: &Finding| f.code == COPIED && project.holds(f.primary.place.file, inputs);
        let names: FxHashSet<Sym> =
            findings.iter().filter(|f| here(f)).flat_map(|f| words(f, &reading.program)).collect();
        let places = findings.iter().filter(|f| here(f)).flat_map(causes);
        let targets: Vec<Target> = places.filter_map(|place| function_at(&reading.program, place)).collect();
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        let graph = project.callers(reading, &targets, &names);
        let stand_ins = StandIns::of(Paths::of(&reading.program, &graph, project.is_built()));
        findings.retain(|f| !here(f) || !causes(f).into_iter().all(|place| stand_ins.holds(place)));
    }
    findings
}

/// Removes findings about MPS in functions that the project only calls where the device is known not to be MPS.
pub(super) fn off_mps(findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    answered_by_callers(findings, reading, &|f, _| f.code == DOUBLE_ON_MPS, &|f, paths, reading| {
        // Code outside the project may call what a library offers.
        let open = |(m, f): Target| {
            let ir = &reading.program.get(m).ir;
            let file = reading.analysis.sources.get(ir.file).path.file_stem();
            let hidden = || file.and_then(|stem| stem.to_str()).is_some_and(is_private);
            paths.is_shared() && !ir.function(f).is_private() && !hidden()
        };
        causes(f).into_iter().all(|place| {
            function_at(&reading.program, place).is_some_and(|target| paths.off_mps(target, &open))
        })
    })
}
