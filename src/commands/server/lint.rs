//! The findings in open files, as diagnostics.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{
    CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString,
    Range, Uri,
};
use rayon::ThreadPool;

use super::places::{Encoding, uri_of};
use crate::analysis::{Memo, analyze_again};
use crate::commands::{baseline, check::leave_as_it_is};
use crate::config::{ConfigError, Overrides, Resolver, Where};
use crate::discover::{Input, Options, virtual_file};
use crate::finding::{Finding, Fix, Severity};
use crate::fix::{offer, offer_ignores};
use crate::lower::STACK_BYTES;
use crate::refine::{Refined, refine};
use crate::report::message_with_world;
use crate::rules::registry::registry;
use crate::shield::shielded_with_threads;
use crate::source::encoding::encode;

/// An open file.
pub(super) struct Document {
    pub(super) uri: Uri,
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) version: i32,
}

/// A finding with all that the editor may ask of it.
pub(super) struct Shown {
    pub(super) finding: Finding,
    pub(super) path: PathBuf,
    pub(super) range: Range,
    /// The edits that suppress it.
    pub(super) ignore: Option<Fix>,
}

/// Lints the open files.
pub(super) struct Linter {
    folder: PathBuf,
    pub(super) encoding: Encoding,
    memo: Arc<Memo>,
    pool: Option<ThreadPool>,
    pub(super) shown: Vec<Shown>,
    /// The last run, for its texts.
    pub(super) last: Option<Refined>,
}

impl Linter {
    /// A linter for this folder.
    pub(super) fn new(folder: PathBuf, encoding: Encoding) -> Self {
        let pool = rayon::ThreadPoolBuilder::new().stack_size(STACK_BYTES).build().ok();
        Self { folder, encoding, memo: Arc::default(), pool, shown: Vec::new(), last: None }
    }

    /// Lints these files. The error is a message for the user.
    pub(super) fn lint(&mut self, open: &[Document]) -> Result<(), String> {
        let inputs = inputs(open, &self.folder).map_err(|error| error.with_place())?;
        let Some(pool) = &self.pool else { return Err("cannot start threads".to_owned()) };
        let (memo, folder) = (&mut self.memo, &self.folder);
        let run = || pool.install(|| refined(&inputs, memo, folder));
        match shielded_with_threads(run) {
            Ok(done) => {
                let (refined, ignores) = done?;
                self.shown = shown(&refined, ignores, open, self.encoding);
                self.last = Some(refined);
                Ok(())
            }
            Err(panic) => {
                self.memo = Arc::default();
                Err(format!("samedevice has a bug: {panic}"))
            }
        }
    }

    /// The diagnostics of an open file.
    pub(super) fn diagnostics(&self, path: &Path) -> Vec<Diagnostic> {
        let shown = self.shown.iter().filter(|shown| shown.path == path);
        shown.map(|shown| self.diagnostic(shown)).collect()
    }

    /// The diagnostic of a finding.
    pub(super) fn diagnostic(&self, shown: &Shown) -> Diagnostic {
        let finding = &shown.finding;
        let help = finding.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
        let page = registry().iter().find(|page| page.code == finding.code);
        let related: Vec<_> = finding.related.iter().filter_map(|label| self.related(label)).collect();
        Diagnostic {
            range: shown.range,
            severity: Some(match finding.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
                Severity::Info => DiagnosticSeverity::INFORMATION,
            }),
            code: Some(NumberOrString::String(finding.code.to_string())),
            code_description: page
                .and_then(|page| page.url().parse().ok())
                .map(|href| CodeDescription { href }),
            source: Some("samedevice".to_owned()),
            message: message_with_world(finding) + &help,
            related_information: (!related.is_empty()).then_some(related),
            ..Diagnostic::default()
        }
    }

    fn related(&self, label: &crate::finding::Label) -> Option<DiagnosticRelatedInformation> {
        let source = self.last.as_ref()?.sources.get(label.place.file);
        // A cell of a notebook has no place that an editor could open.
        let uri = uri_of(&source.path).filter(|_| source.notebook().is_none())?;
        let range = self.encoding.range(source, label.place.span);
        Some(DiagnosticRelatedInformation { location: Location { uri, range }, message: label.text.clone() })
    }
}

/// The open files as inputs. Excluded ones are left out.
fn inputs(open: &[Document], folder: &Path) -> Result<Vec<Input>, ConfigError> {
    let overrides = Overrides { force_exclude: true, ..Overrides::default() };
    let mut resolver = Resolver::new(folder, registry(), &Where::Search, overrides)?;
    let options = Options { cwd: folder.to_owned() };
    let mut inputs = Vec::new();
    for document in open {
        let text = document.text.as_bytes();
        // The bytes that the editor would save: in the encoding that the text declares.
        let bytes = encode(text, &document.text).unwrap_or_else(|_| text.to_vec());
        inputs.extend(virtual_file(&document.path, bytes, &options, &mut resolver)?);
    }
    Ok(inputs)
}

/// What `check` reports of these files, and for each finding the fix that suppresses it.
fn refined(
    inputs: &[Input],
    memo: &mut Arc<Memo>,
    folder: &Path,
) -> Result<(Refined, Vec<Option<Fix>>), String> {
    let analysis = analyze_again(inputs, true, &|| {}, memo);
    let mut refined = refine(analysis, inputs, registry());
    offer(&mut refined.findings, inputs, &refined.sources);
    leave_as_it_is(&mut refined, inputs);
    baseline::apply(&mut refined, inputs, &baseline::Options::quiet(folder))
        .map_err(|error| error.to_string())?;
    refined.leave_out(inputs);
    let mut ignored = refined.findings.clone();
    offer_ignores(&mut ignored, inputs, &refined.sources, "", registry());
    let ignores = ignored.into_iter().map(|finding| finding.fix).collect();
    Ok((refined, ignores))
}

/// The findings whose primary place is in an open file.
fn shown(refined: &Refined, ignores: Vec<Option<Fix>>, open: &[Document], encoding: Encoding) -> Vec<Shown> {
    let of = |(finding, ignore): (&Finding, Option<Fix>)| {
        let source = refined.sources.get(finding.primary.place.file);
        let range = encoding.range(source, finding.primary.place.span);
        let path = source.path.clone();
        let is_open = open.iter().any(|document| document.path == path);
        is_open.then(|| Shown { finding: finding.clone(), path, range, ignore })
    };
    refined.findings.iter().zip(ignores).filter_map(of).collect()
}
