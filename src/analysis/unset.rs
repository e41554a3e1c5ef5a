//! Findings that nobody comes to, for an attribute is read before that nothing in the project sets.
//!
//! A file that has findings, and reads such an attribute, is interpreted again, now that this is known: what is not found any more is
//! not told.

use super::judged::{findings_of, importer};
use super::project::{Reading, mentions, projects};
use crate::finding::Finding;
use crate::flow::{BY_NAME, Relevance, Unset};
use crate::link::{ModIdx, Program};
use crate::rules::Found;
use crate::span::FileId;

/// Takes out of `found` what comes after reading what is not there.
pub(super) fn come_to(found: &mut Found, reading: &mut Reading<'_>, relevance: &mut Relevance) {
    let inputs = reading.inputs;
    let reads = |file: FileId, found: &Found, program: &Program| {
        let findings = found.get(&file).map_or(&[][..], |findings| findings);
        let unset = Unset::of(program, &around(program, file, findings));
        (!unset.is_empty()).then_some(unset)
    };
    let mut files: Vec<FileId> =
        found.keys().copied().filter(|&file| reads(file, found, &reading.program).is_some()).collect();
    files.sort_unstable();
    for project in projects(files.clone().into_iter(), inputs) {
        let here = || files.iter().copied().filter(|&file| project.holds(file, inputs));
        let unset = here().filter_map(|file| reads(file, found, &reading.program));
        let names: Vec<&str> = unset.flat_map(|unset| unset.names()).map(|name| name.as_str()).collect();
        let words: Vec<&str> = names.into_iter().chain(BY_NAME).collect();
        let size = reading.program.modules.len();
        project.complete(reading, &|text| mentions(text, &words));
        if reading.program.modules.len() != size {
            *relevance = Relevance::of(&reading.program);
        }
        let all = project.modules(reading);
        let of_files: Vec<(FileId, Unset)> =
            here().filter_map(|file| Some((file, reads(file, found, &reading.program)?))).collect();
        let whole = of_files.iter().fold(Unset::default(), |whole, (_, unset)| whole.and(unset));
        let whole = whole.after(&reading.program, &all);
        for (file, unset) in of_files {
            // What other files read is their business, whether or not they are linted.
            relevance.unset = whole.within(&unset);
            let sources = &reading.analysis.sources;
            let Some(input) = importer(&sources.get(file).path, inputs) else { continue };
            if relevance.unset.is_empty() {
                continue;
            }
            let told = findings_of(file, input, &reading.program, relevance, sources);
            if let Some(findings) = found.get_mut(&file) {
                findings
                    .retain(|f| told.iter().any(|t| t.code == f.code && t.primary.place == f.primary.place));
            }
        }
        relevance.unset = Unset::default();
    }
}

/// The file, and those that its findings come past.
fn around(program: &Program, file: FileId, findings: &[Finding]) -> Vec<ModIdx> {
    let mut files: Vec<ModIdx> = findings
        .iter()
        .flat_map(|f| f.places())
        .map(|place| place.file)
        .chain((!findings.is_empty()).then_some(file))
        .filter_map(|file| program.module_of(file))
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}
