//! Refutes findings about loads of files that the project, or the project around it, saved itself.

use super::around::files_around;
use super::project::{Reading, mentions, projects};
use super::refuters::{LOAD, causes};
use crate::finding::Finding;
use crate::flow::{Load, Writers};
use crate::link::Program;

/// Removes findings about loads of files that the project saved from the CPU.
pub(super) fn saved_elsewhere(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    let known = |f: &Finding, program: &Program| -> Option<Vec<Load>> {
        let loads = causes(f).into_iter().map(|place| Load::at(program, place));
        loads.collect::<Option<Vec<Load>>>().filter(|_| f.code == LOAD)
    };
    let dependent = findings.iter().filter(|f| known(f, &reading.program).is_some());
    let files = dependent.map(|f| f.primary.place.file);
    for project in projects(files.collect::<Vec<_>>().into_iter(), reading) {
        // Examples load what the programs of the framework around them have saved.
        let around = files_around(&project, reading);
        let project = project.and(around);
        let here = |f: &Finding| project.holds(f.primary.place.file, inputs);
        let loads: Vec<Load> = findings
            .iter()
            .filter(|f| here(f))
            .filter_map(|f| known(f, &reading.program))
            .flatten()
            .collect();
        let words: Vec<&str> = loads.iter().filter_map(Load::word).collect();
        project.complete(reading, &|text| mentions(text, &words));
        let graph = project.with_helpers(reading);
        let program = &reading.program;
        let writers = Writers::of(program, &graph);
        findings.retain(|f| {
            let loads = known(f, program).filter(|_| here(f));
            !loads.is_some_and(|loads| loads.iter().all(|load| writers.on_the_host(load)))
        });
    }
    findings
}
