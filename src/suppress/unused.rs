//! SD002: suppressions that suppress nothing, and the edits that remove them.

use super::directive::{Item, Kind};
use super::{Active, Comments, UNUSED};
use crate::config::Selector;
use crate::finding::{Applicability, Code, Edit, Finding, Fix, Label};
use crate::rules::page::Page;
use crate::source::Source;
use crate::span::{FileId, Place, Span};
use crate::world::World;

/// Why an item should not be in its list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Unknown,
    Unused,
}

/// A finding for each suppression with a fault. `itself`: if true, checks only items that name SD002; if false, only the others.
pub(super) fn report(
    comments: &Comments,
    source: &Source,
    is_on: &dyn Fn(Code) -> bool,
    pages: &[Page],
    itself: bool,
) -> Vec<Finding> {
    let file = comments.file;
    let mut findings = Vec::new();
    if !itself {
        for malformed in &comments.malformed {
            findings
                .push(finding(file, malformed.span, malformed.message.clone()).help(malformed.help.clone()));
        }
    }
    for active in &comments.active {
        match &active.directive.items {
            // A bare `noqa` may be for other linters.
            None if itself || active.used || active.directive.kind == Kind::Noqa => {}
            None => findings.push(bare(active, file, source)),
            Some(items) => {
                let faults: Vec<_> = items
                    .iter()
                    .zip(&active.used_items)
                    .map(|(item, used)| {
                        fault(item, *used, is_on, pages).filter(|_| names_itself(item) == itself)
                    })
                    .collect();
                if faults.iter().any(Option::is_some) {
                    findings.push(listed(active, items, &faults, file, source));
                }
            }
        }
    }
    findings
}

fn names_itself(item: &Item) -> bool {
    matches!(&item.selector, Some(Ok(selector)) if *selector == Selector::Rule(UNUSED))
}

fn fault(item: &Item, used: bool, is_on: &dyn Fn(Code) -> bool, pages: &[Page]) -> Option<Fault> {
    match item.selector.as_ref()? {
        Err(_) => Some(Fault::Unknown),
        Ok(_) if used => None,
        Ok(selector) => {
            let on = pages.iter().any(|page| selector.matches(page.code) && is_on(page.code));
            // A rule that is off in this run may be on in another.
            on.then_some(Fault::Unused)
        }
    }
}

fn bare(active: &Active, file: FileId, source: &Source) -> Finding {
    let message = match active.directive.kind {
        Kind::FileIgnore => "unused suppression: there is no finding in this file",
        Kind::Ignore | Kind::Noqa => "unused suppression: there is no finding here",
    };
    let mut finding = finding(file, active.directive.span, message.to_owned());
    finding.fix = Some(fix(vec![whole(active, source)], file, Applicability::Safe, "Remove the comment"));
    finding
}

fn listed(
    active: &Active,
    items: &[Item],
    faults: &[Option<Fault>],
    file: FileId,
    source: &Source,
) -> Finding {
    let with = |wanted: Fault| {
        let texts = items.iter().zip(faults).filter(move |(_, fault)| **fault == Some(wanted));
        texts.map(|(item, _)| format!("`{}`", item.text)).collect::<Vec<_>>()
    };
    let place = if active.lines.is_none() { "in this file" } else { "here" };
    let parts = [
        (with(Fault::Unknown), "not a rule".to_owned(), "not rules".to_owned()),
        (with(Fault::Unused), format!("not reported {place}"), format!("not reported {place}")),
    ];
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|(texts, ..)| !texts.is_empty())
        .map(|(texts, one, many)| match texts.len() {
            1 => format!("{} is {one}", texts[0]),
            _ => format!("{} are {many}", texts.join(", ")),
        })
        .collect();
    let mut finding =
        finding(file, active.directive.span, format!("unused suppression: {}", parts.join("; ")));
    finding.help = items.iter().find_map(|item| match &item.selector {
        Some(Err(unknown)) => unknown.suggestion.as_ref().map(|s| format!("did you mean `{s}`?")),
        _ => None,
    });
    let applicability = Applicability::Safe;
    finding.fix = Some(if faults.iter().all(Option::is_some) {
        fix(vec![whole(active, source)], file, applicability, "Remove the comment")
    } else {
        let faulty: Vec<_> = faults.iter().map(Option::is_some).collect();
        fix(without(items, &faulty), file, applicability, "Remove the rule from the comment")
    });
    finding
}

fn finding(file: FileId, span: Span, message: String) -> Finding {
    let label = Label::new(Place { file, span }, String::new());
    Finding::new(UNUSED, World::Always, message, label)
}

fn fix(spans: Vec<Span>, file: FileId, applicability: Applicability, message: &str) -> Fix {
    let edit = |span| Edit { place: Place { file, span }, content: String::new() };
    Fix { message: message.to_owned(), applicability, edits: spans.into_iter().map(edit).collect() }
}

/// The range to delete so that the directive is gone: its line if the line contains nothing else, or the directive with the blanks around
/// it.
fn whole(active: &Active, source: &Source) -> Span {
    let (directive, comment) = (active.directive.span, active.comment);
    let (before, after) = (Span::new(0, directive.start), Span::new(directive.end, comment.span.end));
    let blank_after = after.slice(source.text()).len() - after.slice(source.text()).trim_start().len();
    let end = directive.end + u32::try_from(blank_after).unwrap_or(0);
    if end < comment.span.end {
        return Span::new(directive.start, end);
    }
    let starts = source.line_starts();
    let row = starts.partition_point(|&start| start <= directive.start);
    if comment.own_line && directive.start == comment.span.start {
        let length = u32::try_from(source.text().len()).unwrap_or(u32::MAX);
        let first = row.checked_sub(1).and_then(|row| starts.get(row)).copied().unwrap_or(0);
        return Span::new(first, starts.get(row).copied().unwrap_or(length));
    }
    let before = before.slice(source.text());
    let kept = before.trim_end_matches([' ', '\t']).len();
    Span::new(u32::try_from(kept).unwrap_or(directive.start), end)
}

/// The ranges to delete so that the faulty items and their separators are gone. At least one item stays.
fn without(items: &[Item], faulty: &[bool]) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut at = 0;
    while at < items.len() {
        let run = faulty[at..].iter().take_while(|faulty| **faulty).count();
        if run > 0 {
            spans.push(match (items.get(at + run), at.checked_sub(1)) {
                (Some(next), _) => Span::new(items[at].span.start, next.span.start),
                (None, Some(last)) => Span::new(items[last].span.end, items[at + run - 1].span.end),
                (None, None) => items[at].span,
            });
        }
        at += run + 1;
    }
    spans
}
