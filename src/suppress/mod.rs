//! Suppression comments: removes the findings that they cover. A comment that covers no finding becomes a finding itself (SD002).
//!
//! A comment at a finding's primary place, or on the flow that leads there, suppresses the finding. A comment at another place of the same
//! cause removes only that place. If the primary place is suppressed and other places are left, the finding is reported at the first of
//! them (`places.rs`).

pub mod directive;
mod places;
#[cfg(test)]
mod tests;
mod unused;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use self::directive::{Directive, Kind, Malformed};
use self::places::Judged;
use crate::config::Selector;
use crate::finding::{Code, Finding};
use crate::lower::Comment;
use crate::rules::page::Page;
use crate::silence::{Ranges, Silencer};
use crate::source::{Source, Sources};
use crate::span::{FileId, Place, Span};

/// The rule that reports suppressions that suppress nothing.
pub const UNUSED: Code = Code(2);

/// A file with a syntax error was only read in part. A suppression that is unused now may be used after the error is fixed.
const SYNTAX_ERROR: Code = Code(1);

/// The result of [`suppress`].
#[derive(Debug)]
pub struct Outcome {
    /// The findings that no comment covers, and findings about the comments themselves.
    pub findings: Vec<Finding>,
    /// How many were suppressed.
    pub suppressed: usize,
}

/// What the comments of a file suppress. `ignore[SD002]` suppresses only findings about suppressions.
pub fn silencers(comments: &[Comment], source: &Source, pages: &[Page]) -> Vec<Silencer> {
    let all: Arc<[Code]> = pages.iter().map(|page| page.code).collect();
    let codes = |directive: &Directive| match &directive.items {
        None => Arc::clone(&all),
        Some(items) => {
            let selectors = || items.iter().filter_map(|item| item.selector.as_ref()?.as_ref().ok());
            let selected = |code: &&Code| selectors().any(|selector| selector.matches(**code));
            all.iter().filter(selected).copied().collect()
        }
    };
    let mut found = Vec::new();
    for comment in comments {
        let text = comment.span.slice(source.text());
        for directive in directive::parse(text, comment.span.start, pages).into_iter().flatten() {
            if let Some(lines) = lines(directive.kind, *comment, source) {
                found.push(Silencer { lines, codes: codes(&directive) });
            }
        }
    }
    found
}

/// Applies the comments of all files, and switches off rules by the settings. `is_on`: whether a rule is on in a file; `None`: the file is
/// not linted, so neither its findings nor its comments are reported.
pub fn suppress(
    findings: Vec<Finding>,
    comments: &[(FileId, Vec<Comment>)],
    sources: &Sources,
    pages: &[Page],
    is_on: &dyn Fn(FileId, Code) -> Option<bool>,
) -> Outcome {
    let broken: FxHashSet<FileId> =
        findings.iter().filter(|f| f.code == SYNTAX_ERROR).map(|f| f.primary.place.file).collect();
    let mut files: FxHashMap<FileId, Comments> = FxHashMap::default();
    for (file, comments) in comments {
        files.insert(*file, Comments::parse(*file, comments, sources.get(*file), pages));
    }
    let mut judged = Judged::default();
    for finding in findings {
        judged.add(finding, &mut |code, place| covers(code, place, &mut files, false), is_on);
    }
    let (mut kept, mut suppressed) = judged.finish();

    // The order of the inputs is stable; the order of the hash table is not.
    for (file, _) in comments {
        let Some(comments) = files.get(file) else { continue };
        if broken.contains(file) || is_on(*file, UNUSED) != Some(true) {
            continue;
        }
        let is_on = |code| is_on(*file, code) == Some(true);
        let source = sources.get(*file);
        let reports: Vec<_> = unused::report(comments, source, &is_on, pages, false);
        for report in reports {
            if covers(report.code, report.primary.place, &mut files, true) {
                suppressed += 1;
            } else {
                kept.push(report);
            }
        }
        // All findings of SD002 are known now, so it is also known which suppressions of SD002 were used.
        if let Some(comments) = files.get(file) {
            kept.extend(unused::report(comments, source, &is_on, pages, true));
        }
    }
    Outcome { findings: kept, suppressed }
}

/// The suppressions of one file.
struct Comments {
    file: FileId,
    active: Vec<Active>,
    malformed: Vec<Malformed>,
    /// The indices of the suppressions for the whole file.
    whole: Vec<usize>,
    /// The lines of the other suppressions; and next, their indices.
    lines: Ranges,
    some: Vec<usize>,
}

/// A directive, and whether it was used.
struct Active {
    directive: Directive,
    /// The whole comment that contains it.
    comment: Comment,
    /// The lines that it covers; `None`: the whole file.
    lines: Option<Span>,
    /// Whether it suppressed anything; and next, the same for each item of its list.
    used: bool,
    used_items: Vec<bool>,
}

impl Comments {
    fn parse(file: FileId, comments: &[Comment], source: &Source, pages: &[Page]) -> Self {
        let (mut active, mut malformed) = (Vec::new(), Vec::new());
        for comment in comments {
            let text = comment.span.slice(source.text());
            for parsed in directive::parse(text, comment.span.start, pages) {
                match parsed {
                    Ok(directive) => active.extend(Active::new(directive, *comment, source)),
                    Err(slip) => malformed.push(slip),
                }
            }
        }
        let (whole, some): (Vec<usize>, Vec<usize>) =
            (0..active.len()).partition(|&n| active[n].lines.is_none());
        let lines = Ranges::new(active.iter().filter_map(|a| a.lines));
        Self { file, active, malformed, whole, lines, some }
    }

    /// Whether a suppression covers the place for this rule. Marks all that do as used.
    fn cover(&mut self, code: Code, at: Span, about_suppressions: bool) -> bool {
        let touching = self.lines.touching(at).filter_map(|n| self.some.get(n));
        let mut any = false;
        for &n in self.whole.iter().chain(touching) {
            any |= self.active[n].suppresses(code, about_suppressions);
        }
        any
    }
}

impl Active {
    fn new(directive: Directive, comment: Comment, source: &Source) -> Option<Self> {
        let lines = lines(directive.kind, comment, source)?;
        let items = directive.items.as_ref().map_or(0, Vec::len);
        Some(Self { directive, comment, lines, used: false, used_items: vec![false; items] })
    }

    /// Whether the directive suppresses this rule. Marks it and its items as used. A finding about suppressions is only suppressed by its
    /// code.
    fn suppresses(&mut self, code: Code, about_suppressions: bool) -> bool {
        let Some(items) = &self.directive.items else {
            self.used |= !about_suppressions;
            return !about_suppressions;
        };
        let mut any = false;
        for (item, used) in items.iter().zip(&mut self.used_items) {
            let matches = match &item.selector {
                Some(Ok(selector)) if about_suppressions => *selector == Selector::Rule(UNUSED),
                Some(Ok(selector)) => selector.matches(code),
                _ => false,
            };
            *used |= matches;
            any |= matches;
        }
        self.used |= any;
        any
    }
}

/// Whether a suppression in the file covers a line of the place for this rule. Marks all that do as used.
fn covers(code: Code, at: Place, files: &mut FxHashMap<FileId, Comments>, about_suppressions: bool) -> bool {
    files.get_mut(&at.file).is_some_and(|comments| comments.cover(code, at.span, about_suppressions))
}

/// The lines that a directive covers, from the beginning of the first line to the end of the last; `Some(None)` for the whole file, `None`
/// if it covers no line.
fn lines(kind: Kind, comment: Comment, source: &Source) -> Option<Option<Span>> {
    match kind {
        Kind::FileIgnore => Some(None),
        // A `noqa` alone on a line covers only that line, which contains no code.
        Kind::Noqa if comment.own_line => None,
        Kind::Noqa | Kind::Ignore => Some(Some(whole_lines(comment.covers, source))),
    }
}

/// Extends a range to whole lines.
fn whole_lines(span: Span, source: &Source) -> Span {
    let starts = source.line_starts();
    let row = |offset: u32| starts.partition_point(|&start| start <= offset);
    // A range that ends with a line end does not touch the next line.
    let (first, last) = (row(span.start), row(span.end.saturating_sub(1).max(span.start)));
    let start = first.checked_sub(1).and_then(|n| starts.get(n)).copied().unwrap_or(0);
    Span::new(start, starts.get(last).copied().unwrap_or(u32::MAX))
}
