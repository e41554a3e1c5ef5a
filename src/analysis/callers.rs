//! Findings that hang on what callers in the project give to a function.

use rustc_hash::FxHashSet;

use super::project::{COPIED, Reading, causes, projects_of};
use crate::finding::Finding;
use crate::flow::StandIns;
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
