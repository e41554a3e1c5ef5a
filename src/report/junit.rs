//! JUnit XML, which most continuous integration systems show as test results: a file is a suite, a finding is a failed test in it.
//!
//! It satisfies the schema of Jenkins's JUnit plugins. That schema has no rows and columns, so they are in the name of the test. Otherwise,
//! readers that merge tests with equal names would lose findings.

use std::borrow::Cow;
use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use crate::finding::{Code, Finding, Severity};
use crate::rules::page::Page;

use super::Report;
use super::place::{cell, relative_name};
use super::words::{in_full, message_with_world, one_line};

/// The rules that say that a file was not checked: they are errors, not failures.
const UNCHECKED: [Code; 2] = [Code(1), Code(3)];

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let root = xml.create_element("testsuites").with_attribute(("name", "samedevice"));
    if report.findings.is_empty() {
        // Some readers reject a report without tests.
        with_counts(root, 1, 0, 0).write_inner_content(|xml| {
            let suite = xml.create_element("testsuite").with_attribute(("name", "samedevice"));
            suite_of_nothing(with_counts(suite, 1, 0, 0))
        })?;
    } else {
        let of = |outcome| report.findings.iter().filter(|f| Outcome::of(f) == outcome).count();
        let root = with_counts(root, report.findings.len(), of(Outcome::Failure), of(Outcome::Error));
        root.write_inner_content(|xml| suites(report, xml))?;
    }
    writeln!(out)
}

type Xml<'a, 'b> = Writer<&'a mut (dyn Write + 'b)>;
type Element<'a, 'b, 'c> = quick_xml::writer::ElementWriter<'a, &'b mut (dyn Write + 'c)>;

fn with_counts<'a, 'b, 'c>(
    element: Element<'a, 'b, 'c>,
    tests: usize,
    failures: usize,
    errors: usize,
) -> Element<'a, 'b, 'c> {
    element
        .with_attribute(("tests", tests.to_string().as_str()))
        .with_attribute(("failures", failures.to_string().as_str()))
        .with_attribute(("errors", errors.to_string().as_str()))
}

fn suite_of_nothing(suite: Element) -> io::Result<()> {
    suite.write_inner_content(|xml| {
        let test = xml.create_element("testcase").with_attribute(("name", "nothing found"));
        test.with_attribute(("classname", "samedevice")).write_empty().map(drop)
    })?;
    Ok(())
}

/// The result of the test for a finding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Failure,
    Error,
    /// A finding that is only information fails no test.
    Success,
}

impl Outcome {
    fn of(finding: &Finding) -> Self {
        match finding.severity {
            Severity::Info => Self::Success,
            _ if UNCHECKED.contains(&finding.code) => Self::Error,
            _ => Self::Failure,
        }
    }
}

/// A suite for each file.
fn suites(report: &Report, xml: &mut Xml) -> io::Result<()> {
    let pages = report.page_index();
    let same_file = |a: &Finding, b: &Finding| a.primary.place.file == b.primary.place.file;
    for group in report.findings.chunk_by(same_file) {
        let Some(first) = group.first() else { continue };
        let name = relative_name(report.root, report.sources.get(first.primary.place.file));
        let name = allowed(&one_line(&name)).into_owned();
        let of = |outcome| group.iter().filter(|f| Outcome::of(f) == outcome).count();
        let suite = xml.create_element("testsuite").with_attribute(("name", name.as_str()));
        let suite = with_counts(suite, group.len(), of(Outcome::Failure), of(Outcome::Error));
        suite.write_inner_content(|xml| {
            let page = |f: &Finding| pages.get(&f.code).copied();
            group.iter().try_for_each(|f| test(report, f, page(f), &name, xml))
        })?;
    }
    Ok(())
}

fn test(report: &Report, f: &Finding, page: Option<&Page>, file: &str, xml: &mut Xml) -> io::Result<()> {
    let at = report.sources.get(f.primary.place.file).position(f.primary.place.span.start);
    let rule = page.map_or("", |page| page.name);
    let cell = cell(report.sources, f.primary.place).map_or(String::new(), |cell| format!("cell {cell}:"));
    let name = format!("{} {rule} ({cell}{}:{})", f.code, at.row, at.column);
    let test = xml.create_element("testcase");
    let test = test.with_attribute(("name", name.as_str())).with_attribute(("classname", file));
    let text = in_full(report, f);
    let text = BytesText::new(&allowed(&text)).into_owned();
    test.write_inner_content(|xml| {
        let element = match Outcome::of(f) {
            Outcome::Success => xml.create_element("system-out"),
            outcome => xml
                .create_element(if outcome == Outcome::Error { "error" } else { "failure" })
                .with_attribute(("type", f.severity.name()))
                .with_attribute(("message", allowed(&message_with_world(f)).as_ref())),
        };
        element.write_text_content(text).map(drop)
    })?;
    Ok(())
}

/// The text without characters that XML forbids.
fn allowed(text: &str) -> Cow<'_, str> {
    let missing =
        |c: char| matches!(c, '\u{fffe}' | '\u{ffff}') || c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    if !text.contains(missing) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if missing(c) { char::REPLACEMENT_CHARACTER } else { c }).collect())
}
