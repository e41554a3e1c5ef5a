//! From raw findings to reported findings: only rules that are on, not suppressed, with the configured severity, in a stable order.

mod cause;

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::analysis::{Analysis, FailedPass, LargeProject};
use crate::config::Settings;
use crate::discover::Input;
use crate::finding::Finding;
use crate::flow::Exhausted;
use crate::rules::page::Page;
use crate::source::Sources;
use crate::span::FileId;
use crate::suppress::{Outcome, suppress};

/// The result of [`refine`].
#[derive(Debug)]
pub struct Refined {
    /// All files, including those that were only imported.
    pub sources: Sources,
    /// Sorted by file, position and code.
    pub findings: Vec<Finding>,
    /// How many findings comments suppressed.
    pub suppressed: usize,
    /// The functions that ran out of budget, see [`Analysis::exhausted`].
    pub exhausted: Vec<Exhausted>,
    /// The files that are too large, see [`Analysis::too_large`].
    pub too_large: Vec<FileId>,
    /// The notebooks in other languages, see [`Analysis::other_languages`].
    pub other_languages: Vec<(FileId, String)>,
    /// Cells that were not read, see [`Analysis::unknown_cells`].
    pub unknown_cells: Vec<(FileId, usize, String)>,
    /// The projects that are too large, see [`Analysis::large_projects`].
    pub large_projects: Vec<LargeProject>,
    /// The passes that a bug has stopped, see [`Analysis::failed_passes`].
    pub failed_passes: Vec<FailedPass>,
}

impl Refined {
    /// Removes findings with less confidence than the settings of their file ask for, and returns their number.
    pub fn leave_out(&mut self, inputs: &[Input]) -> usize {
        let before = self.findings.len();
        let told: Vec<bool> = {
            let level = Level::of(inputs);
            self.findings.iter().map(|finding| level.tells(finding, &self.sources)).collect()
        };
        let mut told = told.into_iter();
        self.findings.retain(|_| told.next().unwrap_or(true));
        before - self.findings.len()
    }
}

/// The confidence that findings must have, by file.
pub struct Level<'a>(FxHashMap<&'a Path, &'a Settings>);

impl<'a> Level<'a> {
    /// The level of each file, from the settings of these inputs.
    pub fn of(inputs: &'a [Input]) -> Self {
        Self(inputs.iter().map(|input| (input.path.as_path(), input.settings.as_ref())).collect())
    }

    /// Is the finding confident enough to be reported?
    pub fn tells(&self, finding: &Finding, sources: &Sources) -> bool {
        let path = sources.get(finding.primary.place.file).path.as_path();
        self.0.get(path).is_none_or(|settings| settings.tells(finding.code, finding.confidence))
    }
}

/// Applies settings and suppression comments.
pub fn refine(analysis: Analysis, inputs: &[Input], pages: &[Page]) -> Refined {
    let Analysis {
        sources, findings, comments, exhausted, too_large, other_languages, unknown_cells, ..
    } = analysis;
    let Analysis { large_projects, failed_passes, .. } = analysis;
    let by_path: FxHashMap<_, _> = inputs.iter().map(|input| (input.path.as_path(), input)).collect();
    let input = |file: FileId| by_path.get(sources.get(file).path.as_path()).copied();
    // Files that are not inputs were only read because of imports. Another run reports their findings.
    let is_on = |file, code| input(file).map(|i| i.settings.is_on(code, &i.path));
    let Outcome { mut findings, suppressed } = suppress(findings, &comments, &sources, pages, &is_on);
    sort(&mut findings, &sources);
    let mut findings = cause::told_at_cause(findings, &|file, code| is_on(file, code) == Some(true));
    for finding in &mut findings {
        let page = pages.binary_search_by_key(&finding.code, |page| page.code).ok().map(|at| &pages[at]);
        let configured =
            input(finding.primary.place.file).and_then(|i| i.settings.severity.get(&finding.code));
        let usual = page.map(|page| page.severity_of(finding.confidence));
        if let Some(severity) = configured.copied().or(usual) {
            finding.severity = severity;
        }
    }
    sort(&mut findings, &sources);
    Refined {
        sources,
        findings,
        suppressed,
        exhausted,
        too_large,
        other_languages,
        unknown_cells,
        large_projects,
        failed_passes,
    }
}

/// Sorts findings by file, place and rule.
pub(crate) fn sort(findings: &mut [Finding], sources: &Sources) {
    findings.sort_by(|a, b| {
        let key = |f: &Finding| (f.primary.place.span, f.code);
        let path = |f: &Finding| &sources.get(f.primary.place.file).path;
        path(a).cmp(path(b)).then_with(|| key(a).cmp(&key(b))).then_with(|| a.message.cmp(&b.message))
    });
}
