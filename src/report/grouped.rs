//! For people with many findings: the name of each file, followed by its findings, one per line.

use std::io::{self, Write};

use anstyle::Style;

use crate::finding::Finding;
use crate::rules::page::Page;

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
        let place = |f: &Finding| {
            let at = source.position(f.primary.place.span.start);
            let cell = source.cell(f.primary.place.span.start);
            let row = cell.map_or(at.row.to_string(), |cell| format!("cell {cell}:{}", at.row));
            (row, at.column.to_string())
        };
        let places: Vec<(String, String)> = group.iter().map(place).collect();
        let rows = places.iter().map(|(row, _)| row.len()).max().unwrap_or(0);
        let columns = places.iter().map(|(_, column)| column.len()).max().unwrap_or(0);
        for (finding, (row, column)) in group.iter().zip(places) {
            write!(out, "  {row:>rows$}:{column:<columns$}  ")?;
            line(report, finding, pages.get(&finding.code).copied(), out)?;
        }
        writeln!(out)?;
    }
    ending(report, out)
}

/// Writes the line of a finding after its place.
fn line(report: &Report, finding: &Finding, page: Option<&Page>, out: &mut dyn Write) -> io::Result<()> {
    let tint = tint(report, finding.severity);
    let code = linked(report, finding.code, page);
    let mark = if report.is_fixable(finding) { "[*] " } else { "" };
    write!(out, "{tint}{} {code}{tint:#} {mark}{}", finding.severity.name(), message_with_world(finding))?;
    match page {
        Some(page) => writeln!(out, " [{}]", page.name),
        None => writeln!(out),
    }
}
