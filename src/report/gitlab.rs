//! GitLab's code quality report, which it shows in merge requests:
//! <https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

use crate::finding::{Finding, Severity};
use crate::source::Position;

use super::Report;
use super::fingerprint::{Fingerprint, fingerprints};
use super::place::{file_extent, relative_name};
use super::words::message_with_world;

/// Writes an array.
pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &Issues { report })?;
    writeln!(out)
}

struct Issues<'a> {
    report: &'a Report<'a>,
}

impl Serialize for Issues<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = self.report;
        let prints = fingerprints(report.sources, report.root, report.findings);
        let mut seen = FxHashMap::default();
        let issue =
            |(finding, print): (&Finding, Fingerprint)| Issue::new(report, finding, unique(print, &mut seen));
        serializer.collect_seq(report.findings.iter().zip(prints).map(issue))
    }
}

/// The fingerprint in GitLab's form. Equal fingerprints get a suffix, because GitLab shows only one finding for each.
fn unique(print: Fingerprint, seen: &mut FxHashMap<Fingerprint, usize>) -> String {
    let count = seen.entry(print).or_default();
    *count += 1;
    if *count == 1 { print.to_string() } else { format!("{print}-{count}") }
}

#[derive(Serialize)]
struct Issue {
    description: String,
    check_name: String,
    fingerprint: String,
    severity: &'static str,
    location: Location,
}

#[derive(Serialize)]
struct Location {
    /// From the root of the repository, without a `./` before it.
    path: String,
    positions: Positions,
}

#[derive(Serialize)]
struct Positions {
    begin: Point,
    end: Point,
}

#[derive(Serialize)]
struct Point {
    line: usize,
    column: usize,
}

impl From<Position> for Point {
    fn from(at: Position) -> Self {
        Self { line: at.row, column: at.column }
    }
}

impl Issue {
    fn new(report: &Report, finding: &Finding, fingerprint: String) -> Self {
        let place = finding.primary.place;
        let (begin, end) = file_extent(report.sources, place);
        Self {
            // The list of a merge request shows neither the rule nor its page.
            description: format!("{} {}", finding.code, message_with_world(finding)),
            check_name: finding.code.to_string(),
            fingerprint,
            severity: severity(finding.severity),
            location: Location {
                path: relative_name(report.root, report.sources.get(place.file)),
                positions: Positions { begin: begin.into(), end: end.into() },
            },
        }
    }
}

/// One of `info`, `minor`, `major`, `critical` and `blocker`. None is more than `major`, because the importance for the project is not
/// known.
const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "major",
        Severity::Warning => "minor",
        Severity::Info => "info",
    }
}
