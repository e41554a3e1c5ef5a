//! One file, interpreted and judged.

use std::path::Path;

use super::intake::{internal_error, plain_finding};
use crate::discover::Input;
use crate::finding::{Code, Finding};
use crate::flow::{Exhausted, Relevance};
use crate::ir::Import;
use crate::link::Program;
use crate::rules::{Context, Limits};
use crate::shield::shielded;
use crate::source::Sources;
use crate::span::{FileId, Place, Span};
use crate::words::Words;

/// An input of the project that contains the file. Its settings apply.
pub(super) fn importer<'a>(path: &Path, inputs: &'a [Input]) -> Option<&'a Input> {
    inputs.iter().find(|input| path.starts_with(&input.root)).or(inputs.first())
}

/// The result of interpreting a file.
#[derive(Clone, Default)]
pub(super) struct Judged {
    pub(super) findings: Vec<Finding>,
    pub(super) exhausted: Vec<Exhausted>,
}

/// The findings of the rules in a file.
pub(super) fn findings_of(
    file: FileId,
    input: &Input,
    program: &Program,
    relevance: &Relevance,
    sources: &Sources,
) -> Vec<Finding> {
    judged(file, input, program, relevance, sources).findings
}

/// The findings in a file, and the functions that ran out of budget.
pub(super) fn judged(
    file: FileId,
    input: &Input,
    program: &Program,
    relevance: &Relevance,
    sources: &Sources,
) -> Judged {
    let Some(module) = program.module_of(file) else { return Judged::default() };
    if is_of_another_framework(&program.get(module).ir.imports) {
        return Judged::default();
    }
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
        Judged { findings: crate::rules::judge(&outcome, &cx), exhausted: outcome.exhausted }
    });
    judged.unwrap_or_else(|panic| {
        let place = Place { file, span: Span::default() };
        Judged { findings: vec![plain_finding(Code(1), internal_error(&panic), place)], ..Judged::default() }
    })
}

static OTHER_FRAMEWORKS: Words = Words::of("other frameworks");

/// Do these imports name another framework and not PyTorch? Then the losses and tensors are not PyTorch's.
fn is_of_another_framework(imports: &[Import]) -> bool {
    let package = |i: &Import| {
        let name = i.module.as_str();
        if i.level == 0 { name.split('.').next().unwrap_or(name) } else { "" }
    };
    imports.iter().any(|i| OTHER_FRAMEWORKS.has(package(i)))
        && !imports.iter().any(|i| package(i).contains("torch") || package(i) == "lightning")
}
