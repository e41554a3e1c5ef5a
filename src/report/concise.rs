//! One line per finding: `path:row:col: error: SD101 message (on which machines) [name]`; in a notebook `path:cell N:row:col: …`.
//!
//! The format is that of GCC's messages, so that editors and problem matchers understand it. The matchers in `editors/` and `.github/` also
//! read the severity and the code.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::finding::{Code, Finding, Severity};
use crate::rules::page::Page;

use super::Report;
use super::words::{message_with_world, one_line};

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let pages = report.page_index();
    for finding in report.findings {
        line(report, finding, pages.get(&finding.code).copied(), out)?;
    }
    Ok(())
}

fn line(report: &Report, finding: &Finding, page: Option<&Page>, out: &mut dyn Write) -> io::Result<()> {
    let source = report.sources.get(finding.primary.place.file);
    let at = source.position(finding.primary.place.span.start);
    let bold = if report.color { Style::new().bold() } else { Style::new() };
    let tint = tint(report, finding.severity);
    let name = source.name_at(finding.primary.place.span.start);
    write!(out, "{bold}{}{bold:#}:{}:{}: ", one_line(&name), at.row, at.column)?;
    write!(out, "{tint}{}: {}{tint:#} ", finding.severity.name(), linked(report, finding.code, page))?;
    let mark = if report.is_fixable(finding) { "[*] " } else { "" };
    write!(out, "{mark}{}", message_with_world(finding))?;
    // The one line must say that the place only leads to the cause.
    if let Some(&root) = finding.roots.first() {
        let there = report.sources.get(root.file);
        let name = there.name_at(root.span.start);
        write!(out, ", in {}:{}", one_line(&name), there.position(root.span.start).row)?;
    }
    match page {
        Some(page) => writeln!(out, " [{}]", page.name),
        None => writeln!(out),
    }
}

/// The colour of a severity.
pub(super) fn tint(report: &Report, severity: Severity) -> Style {
    if report.color { Style::new().bold().fg_color(Some(color(severity).into())) } else { Style::new() }
}

/// The code. Terminals that support it show a link to the rule's page (OSC 8).
pub(super) fn linked(report: &Report, code: Code, page: Option<&Page>) -> String {
    match page {
        Some(page) if report.links => format!("\u{1b}]8;;{}\u{1b}\\{code}\u{1b}]8;;\u{1b}\\", page.url()),
        _ => code.to_string(),
    }
}

const fn color(severity: Severity) -> AnsiColor {
    match severity {
        Severity::Error => AnsiColor::Red,
        Severity::Warning => AnsiColor::Yellow,
        Severity::Info => AnsiColor::Cyan,
    }
}
