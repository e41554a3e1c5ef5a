//! Findings with remedies → fixes, and fixes → changed files.
//!
//! A rule says what would mend a finding ([`Remedy`]); `edits` turns that into edits, from the syntax of the file, or leaves it where there
//! is no single edit that is certain to do what the remedy says. [`rounds`] applies fixes until nothing changes, [`write`] writes the files.
//!
//! A fix is *safe* if it never changes what code does that works today: on a machine where the code runs, it does the same; where it
//! raised, or did not do what it says, it works. Everything else is *unsafe*.

mod apply;
pub mod diff;
mod edits;
mod names;
pub mod rounds;
mod syntax;
pub mod write;

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

/// A fix of one file, on its way.
struct Draft {
    title: String,
    applicability: Applicability,
    changes: Vec<Change>,
}

/// Gives findings their fixes, where edits for their remedies are certain and the settings of the files do not forbid them. Only files
/// that were asked for, the first of the sources, are edited. Call it on a thread with a stack of [`crate::lower::STACK_BYTES`].
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
            // A bug here must not take the finding away.
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

/// The lines of a file that a fix takes out and those that it puts in, each with its sign; at most as many as fit on a screen.
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
