//! Findings that hang on what callers in the project give to a function.

use rustc_hash::FxHashSet;

use super::project::{COPIED, DOUBLE_ON_MPS, Reading, causes, projects_of};
use crate::finding::Finding;
use crate::flow::{NamedCalls, StandIns, Target, function_at};
use crate::ir::is_private;
use crate::link::Program;
use crate::sym::Sym;

/// The findings without those about copies that only stand in for what callers always give.
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
        let files = project.with_callers(reading, &names);
        let stand_ins = StandIns::of(&reading.program, &files, &names, project.is_built());
        findings.retain(|f| !here(f) || !causes(f).into_iter().all(|place| stand_ins.holds(place)));
    }
    findings
}

/// The findings without those about MPS in functions that the project only calls where a device is known not to be MPS.
pub(super) fn off_mps(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    for project in projects_of(&findings, |f, _| f.code == DOUBLE_ON_MPS, reading) {
        let here = |f: &Finding| f.code == DOUBLE_ON_MPS && project.holds(f.primary.place.file, inputs);
        let targets = |f: &Finding, program: &Program| -> Option<Vec<Target>> {
            causes(f).into_iter().map(|place| function_at(program, place)).collect()
        };
        let found =
            findings.iter().filter(|f| here(f)).filter_map(|f| targets(f, &reading.program)).flatten();
        let name = |(m, f): Target, program: &Program| program.get(m).ir.function(f).name;
        let names: FxHashSet<Sym> = found.map(|target| name(target, &reading.program)).collect();
        let files = project.with_callers(reading, &names);
        let (program, sources) = (&reading.program, &reading.analysis.sources);
        let calls = NamedCalls::of(program, &files, &names);
        // Anybody may call what a library offers.
        let own = |(m, f): Target| {
            let function = program.get(m).ir.function(f);
            let file = sources.get(program.get(m).ir.file).path.file_stem();
            let hidden = || file.and_then(|stem| stem.to_str()).is_some_and(is_private);
            !function.name.as_str().starts_with("__")
                && (!project.is_built() || function.is_private() || hidden())
        };
        findings.retain(|f| {
            let off = |target: Target| calls.off_mps(program, &files, target, &own);
            !here(f) || !targets(f, program).is_some_and(|targets| targets.into_iter().all(off))
        });
    }
    findings
}
