//! For people with many findings: below the name of each file its findings, one line each.

use std::io::{self, Write};

use anstyle::Style;

use crate::finding::Finding;
use crate::rules::page::Page;
use crate::source::Position;

use super::Report;
use super::concise::{linked, tint};
use super::full::ending;
use super::words::{message_with_world, one_line};

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let pages = report.page_index();
    let same_file = |a: &Finding, b: &Finding| a.primary.place.file == b.primary.place.file;
    for group in report.findings.chunk_by(same_file) {
        let Some(first) = group.first() else { continue };
        let source = report.sources.get(first.primary.place.file);
        let bold = if report.color { Style::new().bold() } else { Style::new() };
        writeln!(out, "{bold}{}{bold:#}", one_line(&source.name))?;
        let places: Vec<Position> =
            group.iter().map(|f| source.position(f.primary.place.span.start)).collect();
        let rows = places.iter().map(|at| digits(at.row)).max().unwrap_or(0);
        let columns = places.iter().map(|at| digits(at.column)).max().unwrap_or(0);
        for (finding, at) in group.iter().zip(places) {
            write!(out, "  {:>rows$}:{:<columns$}  ", at.row, at.column)?;
            line(report, finding, pages.get(&finding.code).copied(), out)?;
        }
        writeln!(out)?;
    }
    ending(report, out)
}

/// What follows the place.
fn line(report: &Report, finding: &Finding, page: Option<&Page>, out: &mut dyn Write) -> io::Result<()> {
    let tint = tint(report, finding.severity);
    let code = linked(report, finding.code, page);
    write!(out, "{tint}{} {code}{tint:#} {}", finding.severity.name(), message_with_world(finding))?;
    match page {
        Some(page) => writeln!(out, " [{}]", page.name),
        None => writeln!(out),
    }
}

/// How many characters the number takes.
fn digits(number: usize) -> usize {
    number.to_string().len()
}
