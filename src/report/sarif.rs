//! SARIF 2.1.0 for code scanning: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>.
//!
//! This does not use `serde-sarif`: its code generator needs two more versions of `syn` at build time, and its types own every string. A
//! test checks the output against the official schema.

use std::io::{self, Write};
use std::path::Path;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::finding::{Applicability, Code, Confidence, Finding, Fix, Label, Severity};
use crate::rules::page::{FixKind, Page};
use crate::source::{Position, Source};
use crate::span::{FileId, Place};

use super::Report;
use super::fingerprint::{Fingerprint, fingerprints};
use super::place::{below, file_extent};
use super::ways::ways;
use super::words::{message_with_world, one_line, verdict_name};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The base of relative URIs, under the name that GitHub's tools use.
const ROOT: &str = "%SRCROOT%";
/// The fingerprint's name. Its number increases when the definition changes. GitHub's own name (`primaryLocationLineHash`) is not used: its
/// upload action computes that one, and warns if it finds another value.
const FINGERPRINT: &str = "samedevice/v2";
/// The length of the longest text that the log repeats.
const MAX_SNIPPET: usize = 2000;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &Log { report })?;
    writeln!(out)
}

struct Log<'a> {
    report: &'a Report<'a>,
}

impl Serialize for Log<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Root<'a> {
            #[serde(rename = "$schema")]
            schema: &'static str,
            version: &'static str,
            runs: [Run<'a>; 1],
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Run<'a> {
            tool: Value,
            #[serde(skip_serializing_if = "Option::is_none")]
            invocations: Option<Value>,
            column_kind: &'static str,
            original_uri_base_ids: Value,
            results: Results<'a>,
        }
        let report = self.report;
        let rules: Vec<_> = hit(report).map(rule).collect();
        let driver = json!({
            "name": "samedevice",
            "version": report.version,
            "semanticVersion": report.version,
            "rules": rules,
        });
        let base = format!("{}/", file_uri(report.root).trim_end_matches('/'));
        let run = Run {
            tool: json!({"driver": driver}),
            invocations: (!report.not_checked.is_empty()).then(|| invocations(report)),
            column_kind: "unicodeCodePoints",
            original_uri_base_ids: json!({ROOT: {"uri": base}}),
            results: Results { report },
        };
        Root { schema: SCHEMA, version: "2.1.0", runs: [run] }.serialize(serializer)
    }
}

/// The parts that were not checked, in SARIF's form.
fn invocations(report: &Report) -> Value {
    let notification = |line: &String| json!({"level": "warning", "message": {"text": format!("not checked: {}", one_line(line))}});
    let notifications: Vec<Value> = report.not_checked.iter().map(notification).collect();
    json!([{"executionSuccessful": !report.failed, "toolExecutionNotifications": notifications}])
}

/// The pages of the rules with findings, in the order of their codes. Other rules are left out, because a log is uploaded with every run
/// and readers have limits.
fn hit<'a>(report: &Report<'a>) -> impl Iterator<Item = &'a Page> {
    let codes: FxHashSet<Code> = report.findings.iter().map(|finding| finding.code).collect();
    report.pages.iter().filter(move |page| codes.contains(&page.code))
}

fn rule(page: &Page) -> Value {
    let help = format!("{}\n\n`samedevice rule {}` prints all of the rule's page.", page.why(), page.code);
    let mut tags = vec!["pytorch", "device-placement"];
    if page.fix != FixKind::None {
        tags.push("fixable");
    }
    json!({
        "id": page.code.to_string(),
        "name": page.name,
        "shortDescription": {"text": one_line(page.summary)},
        "fullDescription": {"text": one_line(page.summary)},
        "helpUri": page.url(),
        "help": {"text": help, "markdown": help},
        "defaultConfiguration": {"enabled": page.default_on, "level": level(page.severity)},
        "properties": {
            "tags": tags,
            // A rule is only on by default if at least 19 of 20 findings are right.
            "precision": if page.default_on { "high" } else { "medium" },
            "problem.severity": problem_severity(page.severity),
            "world": page.world,
        },
    })
}

/// The priority of a result, from 0 to 100 (SARIF 2.1.0, 3.27.25).
const fn rank(confidence: Confidence) -> f64 {
    match confidence {
        Confidence::Low => 10.0,
        Confidence::Likely => 50.0,
        Confidence::Certain => 90.0,
    }
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// CodeQL's name for the severity, which GitHub reads.
const fn problem_severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "recommendation",
    }
}

/// Serialises the results one by one, so that they are never all in memory.
struct Results<'a> {
    report: &'a Report<'a>,
}

impl Serialize for Results<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = self.report;
        let prints = fingerprints(report.sources, report.root, report.findings);
        let mut writer = Writer {
            report,
            rules: hit(report).enumerate().map(|(i, page)| (page.code, i)).collect(),
            artifacts: FxHashMap::default(),
        };
        let mut seq = serializer.serialize_seq(Some(report.findings.len()))?;
        for (finding, &print) in report.findings.iter().zip(&prints) {
            seq.serialize_element(&writer.result(finding, print))?;
        }
        seq.end()
    }
}

struct Writer<'a> {
    report: &'a Report<'a>,
    /// The index of each rule in the driver's array.
    rules: FxHashMap<Code, usize>,
    /// Each file's `artifactLocation`.
    artifacts: FxHashMap<FileId, Value>,
}

impl Writer<'_> {
    fn result(&mut self, finding: &Finding, print: Fingerprint) -> Value {
        let mut result = json!({
            "ruleId": finding.code.to_string(),
            "level": level(finding.severity),
            "message": {"text": message(finding)},
            "locations": [{"physicalLocation": self.location(finding.primary.place)}],
            "partialFingerprints": {FINGERPRINT: print},
            "fingerprints": {FINGERPRINT: print},
            "rank": rank(finding.confidence),
            "properties": {
                "world": finding.world.to_string(),
                "confidence": finding.confidence.name(),
            },
        });
        if let Some(index) = self.rules.get(&finding.code) {
            result["ruleIndex"] = json!(index);
        }
        if !finding.related.is_empty() {
            let related = finding.related.iter().enumerate().map(|(i, l)| self.related(i + 1, l));
            result["relatedLocations"] = related.collect();
        }
        let flows: Vec<Value> = ways(finding).iter().map(|way| self.flow(finding, way)).collect();
        if !flows.is_empty() {
            result["codeFlows"] = json!(flows);
        }
        if let Some(fix) = finding.fix.as_ref().filter(|fix| fix.applicability != Applicability::Display) {
            result["fixes"] = json!([self.fix(fix)]);
        }
        if let Some(condition) = &finding.condition {
            result["properties"]["condition"] = json!(condition);
        }
        if !finding.doubts.is_empty() {
            result["properties"]["confidenceReasons"] = json!(finding.doubts);
        }
        if let Some(judgement) = &finding.verdict {
            result["properties"]["verdict"] = json!(verdict_name(judgement.verdict));
            result["properties"]["verdictReason"] = json!(judgement.reason);
        }
        result
    }

    fn related(&mut self, id: usize, label: &Label) -> Value {
        let location = self.location(label.place);
        json!({"id": id, "physicalLocation": location, "message": {"text": label.text}})
    }

    /// A flow to the finding, in SARIF's form.
    fn flow(&mut self, finding: &Finding, way: &[&Label]) -> Value {
        let steps = way.iter().map(|label| {
            let own = label.place == finding.primary.place;
            let text = if label.text.is_empty() { one_line(&finding.message) } else { one_line(&label.text) };
            json!({
                "location": {"physicalLocation": self.bare_location(label.place), "message": {"text": text}},
                "importance": if own { "essential" } else { "important" },
            })
        });
        let steps: Vec<Value> = steps.collect();
        json!({"threadFlows": [{"locations": steps}]})
    }

    fn location(&mut self, place: Place) -> Value {
        let mut location = self.bare_location(place);
        let text = self.report.sources.text(place);
        if !text.is_empty() && text.len() <= MAX_SNIPPET {
            location["region"]["snippet"] = json!({"text": text});
        }
        location
    }

    fn bare_location(&mut self, place: Place) -> Value {
        json!({"artifactLocation": self.artifact(place.file), "region": region(file_extent(self.report.sources, place))})
    }

    fn artifact(&mut self, file: FileId) -> Value {
        let report = self.report;
        self.artifacts.entry(file).or_insert_with(|| artifact(report.root, report.sources.get(file))).clone()
    }

    fn fix(&mut self, fix: &Fix) -> Value {
        let mut files: Vec<FileId> = fix.edits.iter().map(|edit| edit.place.file).collect();
        files.sort_unstable();
        files.dedup();
        let changes = files.into_iter().map(|file| {
            let source = self.report.sources.get(file);
            let edits = fix.edits.iter().filter(|edit| edit.place.file == file);
            let edits: Vec<_> = edits.map(|edit| (edit.place.span, edit.content.clone())).collect();
            let changes = source.file_changes(edits).into_iter();
            let replacements: Vec<_> = changes
                .map(|(extent, text)| json!({"deletedRegion": region(extent), "insertedContent": {"text": text}}))
                .collect();
            json!({"artifactLocation": self.artifact(file), "replacements": replacements})
        });
        let changes: Vec<_> = changes.collect();
        json!({"description": {"text": fix.message}, "artifactChanges": changes})
    }
}

fn region((start, end): (Position, Position)) -> Value {
    json!({
        "startLine": start.row,
        "startColumn": start.column,
        "endLine": end.row,
        "endColumn": end.column,
    })
}

/// The message with links to the related locations: GitHub shows only those that the text links to.
fn message(finding: &Finding) -> String {
    let mut text = message_with_world(finding);
    // Readers would take "](" for a link, and code such as `layers[0](x)` contains it.
    if text.contains("](") {
        text = text.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
    }
    text.push('.');
    for (i, label) in finding.related.iter().enumerate() {
        let words = if label.text.is_empty() { "see" } else { &label.text };
        let words = words.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
        text.push_str(&format!(" [{words}]({}).", i + 1));
    }
    if let Some(help) = &finding.help {
        text.push_str(&format!(" Help: {}.", help.trim_end_matches('.')));
    }
    text
}

fn artifact(root: &Path, source: &Source) -> Value {
    match below(root, &source.path) {
        Some(path) => json!({"uri": encoded(&path), "uriBaseId": ROOT}),
        None if source.path.is_absolute() => json!({"uri": file_uri(&source.path)}),
        None => json!({"uri": encoded(&source.name)}),
    }
}

fn file_uri(path: &Path) -> String {
    let path = path.to_string_lossy();
    // Only Windows has such paths: `C:\x`, and `\\?\C:\x` in canonical form.
    let path = if cfg!(windows) { path.trim_start_matches(r"\\?\").replace('\\', "/") } else { path.into() };
    let slash = if path.starts_with('/') { "" } else { "/" };
    format!("file://{slash}{}", encoded(&path))
}

/// The characters that RFC 3986 does not allow in a path, and `:`, which the first segment of a relative path must not contain.
const RESERVED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b':');

fn encoded(path: &str) -> String {
    utf8_percent_encode(path, RESERVED).to_string()
}
