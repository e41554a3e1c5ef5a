//! Suppression comments: findings that they cover go, and comments that cover none become findings (SD002).
//!
//! A comment at a finding's primary place, or on the flow that leads there, suppresses the finding. At another place of the same cause
//! it takes away that place alone. Where only such places are left the finding is told at the first of them (`places.rs`).

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

/// A file whose syntax is wrong was read in part; what suppresses nothing now may do so once it is right.
const SYNTAX_ERROR: Code = Code(1);

/// What is left.
#[derive(Debug)]
pub struct Outcome {
    /// The findings that no comment covers, and those about the comments.
    pub findings: Vec<Finding>,
    /// How many were suppressed.
    pub suppressed: usize,
}

/// What a file's comments silence. Those about suppressions themselves silence nothing else.
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

/// Applies the comments of all files, and what the settings leave out. `is_on` tells whether a rule is on in a file; `None`: the
/// file is not linted, so nothing is told there, nor of its comments.
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

    // In the order of the input, not of the hash table.
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
        // Only now is it known which suppressions of SD002 itself were needed.
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
    /// The numbers of those for the whole file.
    whole: Vec<usize>,
    /// The lines of the others, and their numbers.
    lines: Ranges,
    some: Vec<usize>,
}

/// A directive and what became of it.
struct Active {
    directive: Directive,
    /// The whole comment that it is in, and whether that stands alone.
    comment: Comment,
    /// The lines that it covers; `None`: the whole file.
    lines: Option<Span>,
    /// Did it suppress anything, and if it has a list, which items did?
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

    /// Does one of them cover the place, for this rule? Every one that does is used.
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

    /// Does it suppress this rule? Notes what did. A report about suppressions must be meant by its code.
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

/// Does a suppression cover a line of the place, for this rule? Every one that does is used.
fn covers(code: Code, at: Place, files: &mut FxHashMap<FileId, Comments>, about_suppressions: bool) -> bool {
    files.get_mut(&at.file).is_some_and(|comments| comments.cover(code, at.span, about_suppressions))
}

/// The lines that a directive covers, from the first one's beginning to the last one's end, or `Some(None)` for the whole file;
/// nothing if it covers none.
fn lines(kind: Kind, comment: Comment, source: &Source) -> Option<Option<Span>> {
    match kind {
        Kind::FileIgnore => Some(None),
        // Alone on its line it is about that line only, on which there is nothing.
        Kind::Noqa if comment.own_line => None,
        Kind::Noqa | Kind::Ignore => Some(Some(whole_lines(comment.covers, source))),
    }
}

/// A range from its first line's beginning to its last line's end.
fn whole_lines(span: Span, source: &Source) -> Span {
    let starts = source.line_starts();
    let row = |offset: u32| starts.partition_point(|&start| start <= offset);
    // A range that ends with a line end does not touch the next line.
    let (first, last) = (row(span.start), row(span.end.saturating_sub(1).max(span.start)));
    let start = first.checked_sub(1).and_then(|n| starts.get(n)).copied().unwrap_or(0);
    Span::new(start, starts.get(last).copied().unwrap_or(u32::MAX))
}
