//! Workflow commands of GitHub Actions. GitHub shows them as annotations of the changed lines.
//!
//! It shows only the first ten errors, warnings and notices of a step, so the most severe come first.

use std::cmp::Reverse;
use std::io::{self, Write};

use crate::finding::{Finding, Severity};

use super::Report;
use super::place::{file_extent, relative_name};
use super::words::{in_full, one_line};

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
    writeln!(out, "::{}", data(&in_full(report, finding)))
}

/// Escapes the text after the second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
