//! The middle of the way, from files to findings: read, lower, follow imports, link, interpret, judge.

mod around;
mod callers;
mod copies;
mod cuda_alone;
mod extensions;
mod given;
mod groups;
mod intake;
mod judged;
mod makers;
mod project;
mod saved;
mod silences;
mod unreached;

use rayon::prelude::*;

use self::copies::Copies;
pub use self::intake::{Analysis, LargeProject};
use self::intake::{Intake, Loaded, file_id, load};
use self::judged::{Judged, findings_of, importer, judged};
use self::project::Reading;
use crate::discover::Input;
use crate::flow::Relevance;
use crate::rules::Found;
use crate::span::FileId;
use crate::work;

/// Analyzes files on the current thread pool. Every input gets a source, an empty one if it has no text. `honor_comments`: do
/// comments suppress anything?
pub fn analyze(inputs: &[Input], honor_comments: bool) -> Analysis {
    let mut analysis = Analysis::default();
    let mut intake = Intake::new(inputs, honor_comments);
    let first: Vec<Loaded> =
        inputs.par_iter().enumerate().map(|(i, input)| load(input, file_id(i))).collect();
    let inputs_read = first.len();
    let wanted = intake.take(first, &mut analysis);
    // Imports are followed through the project, so that linting one file finds what linting all of them does.
    intake.follow(wanted, &mut analysis);
    let program = intake.link();
    let mut relevance = Relevance::of(&program);
    let first: Vec<Judged> = inputs
        .par_iter()
        .enumerate()
        .map(|(i, input)| judged(file_id(i), input, &program, &relevance, &analysis.sources))
        .collect();
    let mut found = Found::default();
    for (i, judged) in first.into_iter().enumerate() {
        found.insert(file_id(i), judged.findings);
        analysis.exhausted.extend(judged.exhausted);
    }
    let mut reading = Reading { inputs, program, intake, analysis };
    given::decided_elsewhere(&mut found, &mut reading, &mut relevance);
    let copies = Copies::of(&found, &mut reading, &mut relevance);
    // What an imported file says of itself need not be said again where it is used, whether or not it is linted.
    let mut asked: Vec<FileId> = crate::rules::refers_to(&found).into_iter().chain(copies.others()).collect();
    asked.sort_unstable();
    asked.dedup();
    let mut others: Found = asked
        .into_par_iter()
        .filter(|file| !found.contains_key(file))
        .filter_map(|file| {
            let sources = &reading.analysis.sources;
            let input = importer(&sources.get(file).path, inputs)?;
            Some((file, findings_of(file, input, &reading.program, &relevance, sources)))
        })
        .collect();
    groups::of_nccl(&mut found, &mut others, &mut reading);
    let copied = copies.told(&found, &others, &mut reading);
    let mut findings = crate::rules::told_once(found, &others);
    findings.retain_mut(|f| !copied.contains(&(f.code, f.primary.place)) || f.leave());
    copies.name_sources(&mut findings, &reading);
    let findings = project::reached_without_cuda(findings, &mut reading);
    let findings = project::only_in_groups(findings, &mut reading);
    let findings = callers::off_mps(findings, &mut reading);
    let findings = saved::saved_elsewhere(findings, &mut reading);
    let findings = project::made_by_default(findings, &mut reading);
    let findings = project::on_moved_modules(findings, &mut reading);
    let findings = makers::moved_by_others(findings, &mut reading);
    let findings = project::seen_to_by_callers(findings, &mut reading);
    let findings = project::copied_once(findings, &mut reading);
    let findings = callers::copied_instead(findings, &mut reading);
    let findings = unreached::doubt_unreached(findings, &mut reading);
    let findings = cuda_alone::told_once(findings, &mut reading);
    let is_on =
        |file: FileId, code| inputs.get(file.0 as usize).is_none_or(|i| i.settings.is_on(code, &i.path));
    let findings = crate::rules::one_on_a_line(findings, &reading.analysis.sources, &is_on);
    let Reading { program, mut analysis, .. } = reading;
    analysis.large_projects = project::too_large(&findings, inputs);
    analysis.findings.extend(findings);
    analysis.comments.retain(|(file, _)| (file.0 as usize) < inputs_read);
    analysis.work = rayon::broadcast(|_| work::take()).into_iter().sum();
    // The process ends soon: to free this piece by piece takes longer than to leave it.
    std::mem::forget((program, relevance));
    analysis
}
