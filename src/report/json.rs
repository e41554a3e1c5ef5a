//! JSON with the field names of Ruff, so that tools for Ruff's output can read it, and with additional fields.

use std::borrow::Cow;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

use crate::finding::{Applicability, Code, Finding, Fix};
use crate::rules::page::Page;
use crate::span::Place;

use super::Report;
use super::fingerprint::{Fingerprint, fingerprints};
use super::place::{JsonPosition, cell, extent};
use super::words::verdict_name;

/// Writes an array.
pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &Items(Document::new(report)))?;
    writeln!(out)
}

/// Writes one object per line.
pub(super) fn write_lines(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for item in Document::new(report).items() {
        serde_json::to_writer(&mut *out, &item)?;
        writeln!(out)?;
    }
    Ok(())
}

struct Document<'a> {
    report: &'a Report<'a>,
    pages: FxHashMap<Code, &'a Page>,
    fingerprints: Vec<Fingerprint>,
}

impl<'a> Document<'a> {
    fn new(report: &'a Report<'a>) -> Self {
        let fingerprints = fingerprints(report.sources, report.root, report.findings);
        Self { report, pages: report.page_index(), fingerprints }
    }

    fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.report
            .findings
            .iter()
            .zip(&self.fingerprints)
            .map(|(finding, &fingerprint)| Item::new(self, finding, fingerprint))
    }
}

/// Serialises the items one by one, so that the whole array is never in memory.
struct Items<'a>(Document<'a>);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.items())
    }
}

#[derive(Serialize)]
struct Item<'a> {
    filename: Cow<'a, str>,
    code: String,
    name: Option<&'a str>,
    severity: &'static str,
    confidence: &'static str,
    /// The reasons why the confidence is not higher.
    confidence_reasons: &'a [String],
    message: &'a str,
    location: JsonPosition,
    end_location: JsonPosition,
    world: String,
    condition: Option<&'a str>,
    related: Vec<Related<'a>>,
    help: Option<&'a str>,
    fix: Option<JsonFix<'a>>,
    fingerprint: Fingerprint,
    verdict: Option<&'static str>,
    /// The fact about the machine that decides the verdict.
    verdict_reason: Option<&'a str>,
    /// The rule's page on the web. `samedevice rule CODE` also prints it.
    url: Option<String>,
    /// The cell of a notebook.
    cell: Option<usize>,
    /// The row at whose end a suppression comment takes effect.
    noqa_row: usize,
}

impl<'a> Item<'a> {
    fn new(document: &'a Document, finding: &'a Finding, fingerprint: Fingerprint) -> Self {
        let report = document.report;
        let place = finding.primary.place;
        let (start, end) = extent(report.sources, place);
        Self {
            filename: report.sources.get(place.file).path.to_string_lossy(),
            code: finding.code.to_string(),
            name: document.pages.get(&finding.code).map(|page| page.name),
            severity: finding.severity.name(),
            confidence: finding.confidence.name(),
            confidence_reasons: &finding.doubts,
            message: &finding.message,
            location: start.into(),
            end_location: end.into(),
            world: finding.world.to_string(),
            condition: finding.condition.as_deref(),
            related: finding.related.iter().map(|l| Related::new(report, l.place, &l.text)).collect(),
            help: finding.help.as_deref(),
            fix: finding.fix.as_ref().map(|fix| JsonFix::new(report, fix, place)),
            fingerprint,
            verdict: finding.verdict.as_ref().map(|judgement| verdict_name(judgement.verdict)),
            verdict_reason: finding.verdict.as_ref().map(|judgement| judgement.reason.as_str()),
            url: document.pages.get(&finding.code).map(|page| page.url()),
            cell: cell(report.sources, place),
            noqa_row: start.row,
        }
    }
}

#[derive(Serialize)]
struct Related<'a> {
    filename: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<usize>,
    location: JsonPosition,
    end_location: JsonPosition,
    message: &'a str,
}

impl<'a> Related<'a> {
    fn new(report: &'a Report, place: Place, message: &'a str) -> Self {
        let (start, end) = extent(report.sources, place);
        let filename = report.sources.get(place.file).path.to_string_lossy();
        let cell = cell(report.sources, place);
        Self { filename, cell, location: start.into(), end_location: end.into(), message }
    }
}

#[derive(Serialize)]
struct JsonFix<'a> {
    applicability: &'static str,
    message: &'a str,
    edits: Vec<JsonEdit<'a>>,
}

impl<'a> JsonFix<'a> {
    fn new(report: &'a Report, fix: &'a Fix, primary: Place) -> Self {
        let edits = fix.edits.iter().map(|edit| {
            let (start, end) = extent(report.sources, edit.place);
            let elsewhere = edit.place.file != primary.file;
            let filename = elsewhere.then(|| report.sources.get(edit.place.file).path.to_string_lossy());
            let (content, cell) = (edit.content.as_str(), cell(report.sources, edit.place));
            JsonEdit { filename, cell, content, location: start.into(), end_location: end.into() }
        });
        let applicability = match fix.applicability {
            Applicability::Safe => "safe",
            Applicability::Unsafe => "unsafe",
            Applicability::Display => "display",
        };
        Self { applicability, message: &fix.message, edits: edits.collect() }
    }
}

#[derive(Serialize)]
struct JsonEdit<'a> {
    /// Present only if it differs from the file of the finding, because tools for Ruff's output assume that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<usize>,
    content: &'a str,
    location: JsonPosition,
    end_location: JsonPosition,
}
