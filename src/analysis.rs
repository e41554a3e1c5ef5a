//! The middle of the way, from files to findings: read, lower, follow imports, link, interpret, judge.

mod given;
mod intake;
mod project;

use std::path::Path;

use rayon::prelude::*;

pub use self::intake::Analysis;
use self::intake::{Intake, Loaded, file_id, internal_error, load, plain_finding};
use crate::discover::Input;
use crate::finding::{Code, Finding};
use crate::flow::Relevance;
use crate::link::Program;
use crate::rules::{Context, Found, Limits};
use crate::shield::shielded;
use crate::source::Sources;
use crate::span::{FileId, Place, Span};

/// Analyzes files on the current thread pool. Every input gets a source, an empty one if it has no text.
pub fn analyze(inputs: &[Input]) -> Analysis {
    let mut analysis = Analysis::default();
    let mut intake = Intake::default();
    let first: Vec<Loaded> =
        inputs.par_iter().enumerate().map(|(i, input)| load(input, file_id(i))).collect();
    let asked = first.len();
    let wanted = intake.take(first, &mut analysis);
    // Imports are followed through the project, so that linting one file finds what linting all of them does.
    intake.follow(wanted, &mut analysis);
    let mut program = intake.link();
    let mut relevance = Relevance::of(&program);
    let mut found: Found = inputs
        .par_iter()
        .enumerate()
        .map(|(i, input)| {
            let file = file_id(i);
            (file, findings_of(file, input, &program, &relevance, &analysis.sources))
        })
        .collect();
    given::decided_elsewhere(&mut found, inputs, &mut program, &mut relevance, &mut intake, &mut analysis);
    // What an imported file says of itself need not be said again where it is used, whether or not it is linted.
    let others: Found = crate::rules::refers_to(&found)
        .into_par_iter()
        .filter(|file| !found.contains_key(file))
        .filter_map(|file| {
            let input = importer(&analysis.sources.get(file).path, inputs)?;
            Some((file, findings_of(file, input, &program, &relevance, &analysis.sources)))
        })
        .collect();
    let findings = crate::rules::told_once(found, &others);
    let findings = project::reached_without_cuda(findings, inputs, &mut program, &mut intake, &mut analysis);
    let findings = project::saved_elsewhere(findings, inputs, &mut program, &mut intake, &mut analysis);
    analysis.findings.extend(findings);
    analysis.comments.retain(|(file, _)| (file.0 as usize) < asked);
    // The process ends soon: to free this piece by piece takes longer than to leave it.
    std::mem::forget((program, relevance));
    analysis
}

/// An input of the project that the file is in, for its settings.
fn importer<'a>(path: &Path, inputs: &'a [Input]) -> Option<&'a Input> {
    inputs.iter().find(|input| path.starts_with(&input.root)).or(inputs.first())
}

fn findings_of(
    file: FileId,
    input: &Input,
    program: &Program,
    relevance: &Relevance,
    sources: &Sources,
) -> Vec<Finding> {
    let Some(module) = program.module_of(file) else { return Vec::new() };
    let judged = shielded(|| {
        let outcome = crate::flow::run_module(program, relevance, module);
        let limits = Limits {
            oom_threshold: input.settings.oom_threshold,
            max_accelerator_memory: input.settings.max_accelerator_memory,
        };
        let cx = Context {
            file,
            root: &input.root,
            sources,
            program,
            cuda_only: outcome.cuda_only,
            refuses: outcome.refuses,
            limits,
        };
        crate::rules::judge(&outcome, &cx)
    });
    match judged {
        Ok(findings) => findings,
        Err(panic) => {
            let place = Place { file, span: Span::default() };
            vec![plain_finding(Code(1), internal_error(&panic), place)]
        }
    }
}
