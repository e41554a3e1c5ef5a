//! Workflow commands of GitHub Actions, which it shows as annotations of the changed lines.
//!
//! GitHub shows only the first ten errors, warnings and notices of a step, so the worst come first.

use std::cmp::Reverse;
use std::io::{self, Write};

use crate::finding::{Finding, Severity};

use super::Report;
use super::place::{extent, file_extent, relative_name, with_cell};
use super::words::{message_with_world, one_line};

/// How many annotations of one kind GitHub shows for a step.
const SHOWN: usize = 10;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut findings: Vec<_> = report.findings.iter().collect();
    findings.sort_by_key(|f| Reverse(f.severity));
    for finding in &findings {
        annotation(report, finding, out)?;
    }
    let hidden: usize = [Severity::Error, Severity::Warning, Severity::Info]
        .into_iter()
        .map(|severity| findings.iter().filter(|f| f.severity == severity).count().saturating_sub(SHOWN))
        .sum();
    if hidden > 0 {
        writeln!(
            out,
            "GitHub annotates at most {SHOWN} errors and {SHOWN} warnings in a step; {hidden} more are only \
             in this log."
        )?;
    }
    Ok(())
}

fn annotation(report: &Report, finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let place = finding.primary.place;
    let file = relative_name(report.root, report.sources.get(place.file));
    let file = one_line(&file);
    let (start, end) = file_extent(report.sources, place);
    let command = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    write!(out, "::{command} title=samedevice ({}),file={}", finding.code, property(&file))?;
    write!(out, ",line={},endLine={}", start.row, end.row)?;
    // GitHub refuses columns of an annotation over several lines.
    if start.row == end.row {
        write!(out, ",col={},endColumn={}", start.column, end.column)?;
    }
    // The log shows the text without the properties, hence the place once more.
    let (at, _) = extent(report.sources, place);
    let shown = with_cell(&file, report.sources, place);
    let mut text = format!("{shown}:{}:{}: {} ", at.row, at.column, finding.code);
    text.push_str(&message_with_world(finding));
    for label in &finding.related {
        let source = report.sources.get(label.place.file);
        let at = source.position(label.place.span.start);
        let file = relative_name(report.root, source);
        let file = with_cell(&one_line(&file), report.sources, label.place);
        text.push_str(&format!("\n  {file}:{}:{}: {}", at.row, at.column, one_line(&label.text)));
    }
    if let Some(help) = &finding.help {
        text.push_str(&format!("\n  help: {}", one_line(help)));
    }
    writeln!(out, "::{}", data(&text))
}

/// Escapes the text after the second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
