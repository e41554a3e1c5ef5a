//! Suppression comments: findings that they cover go, and comments that cover none become findings (SD002).

pub mod directive;
#[cfg(test)]
mod tests;
mod unused;

use rustc_hash::{FxHashMap, FxHashSet};

use self::directive::{Directive, Kind, Malformed};
use crate::config::Selector;
use crate::finding::{Code, Finding};
use crate::lower::Comment;
use crate::rules::page::Page;
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

/// Applies the comments of all files. `is_on` tells whether a rule is on in a file; `None`: the file is not
/// linted, so nothing is said about its comments.
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
    let total = findings.len();
    let mut kept: Vec<_> = findings.into_iter().filter(|f| !covered(f, &mut files, sources, false)).collect();
    let mut suppressed = total - kept.len();

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
            if covered(&report, &mut files, sources, true) {
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
}

/// A directive and what became of it.
struct Active {
    directive: Directive,
    /// The whole comment that it is in, and whether that stands alone.
    comment: Comment,
    /// First and last row that it covers; `None`: the whole file.
    rows: Option<(usize, usize)>,
    /// Did it suppress anything, and if it has a list, which items did?
    used: bool,
    used_items: Vec<bool>,
}

impl Comments {
    fn parse(file: FileId, comments: &[Comment], source: &Source, pages: &[Page]) -> Self {
        let mut this = Self { file, active: Vec::new(), malformed: Vec::new() };
        for comment in comments {
            let text = comment.span.slice(source.text());
            for parsed in directive::parse(text, comment.span.start, pages) {
                match parsed {
                    Ok(directive) => this.add(directive, *comment, source),
                    Err(malformed) => this.malformed.push(malformed),
                }
            }
        }
        this
    }

    fn add(&mut self, directive: Directive, comment: Comment, source: &Source) {
        let rows = match directive.kind {
            Kind::FileIgnore => None,
            // Alone on its line it is about that line only, on which there is nothing.
            Kind::Noqa if comment.own_line => return,
            Kind::Noqa | Kind::Ignore => Some(rows(comment.covers, source)),
        };
        let items = directive.items.as_ref().map_or(0, Vec::len);
        self.active.push(Active { directive, comment, rows, used: false, used_items: vec![false; items] });
    }
}

impl Active {
    /// Does it cover these rows?
    fn touches(&self, (first, last): (usize, usize)) -> bool {
        self.rows.is_none_or(|(from, to)| from <= last && first <= to)
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

/// Does a suppression cover a line of any place of the finding? Every one that does is used.
fn covered(
    finding: &Finding,
    files: &mut FxHashMap<FileId, Comments>,
    sources: &Sources,
    about_suppressions: bool,
) -> bool {
    let mut any = false;
    for Place { file, span } in finding.places() {
        let Some(comments) = files.get_mut(&file) else { continue };
        if comments.active.is_empty() {
            continue;
        }
        let rows = rows(span, sources.get(file));
        for active in &mut comments.active {
            any |= active.touches(rows) && active.suppresses(finding.code, about_suppressions);
        }
    }
    any
}

/// The first and the last row of a range, from 1.
fn rows(span: Span, source: &Source) -> (usize, usize) {
    let row = |offset: u32| source.line_starts().partition_point(|&start| start <= offset);
    // A range that ends with a line end does not touch the next line.
    (row(span.start), row(span.end.saturating_sub(1).max(span.start)))
}
