//! From findings with remedies to fixes, and from fixes to changed files.
//!
//! A rule describes the change that fixes a finding ([`Remedy`]). `edits` turns it into edits of the file's syntax, or offers no fix if no
//! single edit certainly does what the remedy says. [`rounds`] applies fixes until nothing changes, and [`mod@write`] writes the files.
//!
//! A fix is *safe* if it never changes what working code does. On a machine where the code runs, it does the same. Where the code raised an
//! error, or did not do what it says, it now works. All other fixes are *unsafe*.

pub mod apply;
pub mod diff;
mod edits;
mod ignores;
mod names;
pub mod rounds;
mod syntax;
pub mod write;

pub use self::ignores::offer_ignores;

use rustc_hash::FxHashMap;

use self::apply::Change;
use self::syntax::Syntax;
use crate::config::Settings;
use crate::discover::Input;
use crate::finding::{Applicability, Edit, Finding, Fix};
use crate::lower::Kind;
use crate::remedy::Remedy;
use crate::shield::shielded;
use crate::source::Sources;
use crate::span::FileId;

/// A fix of one file that is not complete yet.
struct Draft {
    title: String,
    applicability: Applicability,
    changes: Vec<Change>,
}

/// Adds fixes to findings, where the edits for their remedies are certain and the settings of the files allow them. Only inputs, which are
/// the first of the sources, are edited. The thread must have a stack of [`crate::lower::STACK_BYTES`].
pub fn offer(findings: &mut [Finding], inputs: &[Input], sources: &Sources) {
    let mut files: FxHashMap<FileId, Option<Syntax<'_>>> = FxHashMap::default();
    for finding in findings {
        let settings = settings_of(finding.primary.place.file, inputs);
        if settings.is_some_and(|s| !s.may_fix(finding.code)) {
            finding.fix = None;
            continue;
        }
        for n in 0..finding.remedies.len() {
            if finding.fix.is_some() {
                break;
            }
            let remedy = &finding.remedies[n];
            let file = edits::file(remedy);
            if settings_of(file, inputs).is_none() {
                continue;
            }
            let syntax = files.entry(file).or_insert_with(|| {
                let source = sources.get(file);
                Syntax::new(file, source.text(), Kind::of(source))
            });
            let Some(syntax) = syntax else { continue };
            // A bug in this code must not lose the finding.
            finding.fix = shielded(|| fix(syntax, remedy, finding)).ok().flatten();
        }
    }
}

fn settings_of(file: FileId, inputs: &[Input]) -> Option<&Settings> {
    inputs.get(file.0 as usize).map(|input| &*input.settings)
}

fn fix(syntax: &Syntax<'_>, remedy: &Remedy, finding: &Finding) -> Option<Fix> {
    let draft = edits::draft(syntax, remedy, finding)?;
    let loses = |c: &Change| syntax.has_comment(c.span) || edits::breaks_text(syntax, c);
    if draft.changes.is_empty() || draft.changes.iter().any(loses) {
        return None;
    }
    let edit = |c: Change| Edit { place: syntax.place(c.span), content: c.content };
    Some(Fix {
        message: draft.title,
        applicability: draft.applicability,
        edits: draft.changes.into_iter().map(edit).collect(),
    })
}

/// The lines of a file that a fix removes and adds, each with its sign; at most as many as fit on a screen.
pub fn changed_lines(sources: &Sources, fix: &Fix) -> Vec<String> {
    const MAX_LINES: usize = 12;
    let mut changes: Vec<Change> = fix.edits.iter().map(Change::from).collect();
    changes.sort();
    let Some(file) = fix.edits.first().map(|edit| edit.place.file) else { return Vec::new() };
    let text = sources.get(file).text();
    let mut lines = apply::changed(text, &changes).map_or_else(Vec::new, |new| diff::lines(text, &new));
    if lines.len() > MAX_LINES {
        lines.truncate(MAX_LINES);
        lines.push("  …".to_owned());
    }
    lines
}
