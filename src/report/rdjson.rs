//! The format of reviewdog, which comments on changed lines in pull requests of many services:
//! <https://github.com/reviewdog/reviewdog/tree/master/proto/rdf>.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

use crate::finding::{Applicability, Code, Finding, Fix, Label, Severity};
use crate::rules::page::Page;
use crate::source::{Position, Source};
use crate::span::{FileId, Place, Span};

use super::Report;
use super::place::relative_name;
use super::words::{message_with_world, one_line};

/// A fix over more rows than this is not suggested, because a comment could not show it.
const MAX_ROWS: usize = 20;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let url = env!("CARGO_PKG_REPOSITORY");
    let result = DiagnosticResult {
        source: Tool { name: "samedevice", url },
        diagnostics: Diagnostics { report, pages: report.page_index() },
    };
    serde_json::to_writer_pretty(&mut *out, &result)?;
    writeln!(out)
}

#[derive(Serialize)]
struct DiagnosticResult<'a> {
    source: Tool,
    diagnostics: Diagnostics<'a>,
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    url: &'static str,
}

struct Diagnostics<'a> {
    report: &'a Report<'a>,
    pages: FxHashMap<Code, &'a Page>,
}

impl Serialize for Diagnostics<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let diagnostic =
            |finding| Diagnostic::new(self.report, finding, self.pages.get(&finding.code).copied());
        serializer.collect_seq(self.report.findings.iter().map(diagnostic))
    }
}

#[derive(Serialize)]
struct Diagnostic {
    message: String,
    location: Location,
    severity: &'static str,
    code: RuleCode,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suggestions: Vec<Suggestion>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<RelatedLocation>,
}

#[derive(Serialize)]
struct RuleCode {
    value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

#[derive(Serialize)]
struct Location {
    path: String,
    range: Range,
}

#[derive(Serialize)]
struct Range {
    start: Point,
    end: Point,
}

/// A row, and a byte in it, both from 1. The end of a range is exclusive.
#[derive(Serialize)]
struct Point {
    line: usize,
    column: usize,
}

#[derive(Serialize)]
struct Suggestion {
    range: Range,
    text: String,
}

#[derive(Serialize)]
struct RelatedLocation {
    message: String,
    location: Location,
}

impl Diagnostic {
    fn new(report: &Report, finding: &Finding, page: Option<&Page>) -> Self {
        let mut message = message_with_world(finding);
        if let Some(help) = &finding.help {
            message.push_str(&format!("\nhelp: {}", one_line(help)));
        }
        let related = |label: &Label| RelatedLocation {
            message: one_line(&label.text).into_owned(),
            location: location(report, label.place),
        };
        let suggestion =
            finding.fix.as_ref().and_then(|fix| suggestion(report, fix, finding.primary.place.file));
        Self {
            message,
            location: location(report, finding.primary.place),
            severity: match finding.severity {
                Severity::Error => "ERROR",
                Severity::Warning => "WARNING",
                Severity::Info => "INFO",
            },
            code: RuleCode { value: finding.code.to_string(), url: page.map(Page::url) },
            suggestions: suggestion.into_iter().collect(),
            related_locations: finding.related.iter().map(related).collect(),
        }
    }
}

/// The fix as one piece of text, because reviewdog would offer several suggestions as alternatives. `None` if the fix is too long, or
/// changes other files.
fn suggestion(report: &Report, fix: &Fix, file: FileId) -> Option<Suggestion> {
    if fix.applicability == Applicability::Display || fix.edits.iter().any(|edit| edit.place.file != file) {
        return None;
    }
    let mut edits: Vec<_> = fix.edits.iter().collect();
    edits.sort_by_key(|edit| edit.place.span.start);
    let (first, last) = (edits.first()?.place.span, edits.last()?.place.span);
    let source = report.sources.get(file);
    if source.notebook().is_some() {
        return None;
    }
    let range = range(source, Span::new(first.start, last.end));
    if range.end.line - range.start.line >= MAX_ROWS {
        return None;
    }
    let mut text = String::new();
    let mut at = first.start;
    for edit in edits {
        text.push_str(source.text().get(at as usize..edit.place.span.start as usize)?);
        text.push_str(&edit.content);
        at = edit.place.span.end;
    }
    Some(Suggestion { range, text })
}

fn location(report: &Report, place: Place) -> Location {
    let source = report.sources.get(place.file);
    Location { path: relative_name(report.root, source), range: range(source, place.span) }
}

fn range(source: &Source, span: Span) -> Range {
    // Readers of this format know nothing about cells, so the place is relative to the file.
    if source.notebook().is_some() {
        let (start, end) = source.file_extent(span);
        let point = |at: Position| Point { line: at.row, column: at.column };
        return Range { start: point(start), end: point(end) };
    }
    Range { start: point(source, span.start), end: point(source, span.end.max(span.start)) }
}

/// A position. Columns are bytes in this format; in the others they are characters.
fn point(source: &Source, offset: u32) -> Point {
    let offset = source.text().floor_char_boundary(offset as usize);
    let row = source.line_starts().partition_point(|&start| start as usize <= offset).max(1);
    let start = source.line_starts().get(row - 1).map_or(0, |&start| start as usize);
    Point { line: row, column: offset - start + 1 }
}
