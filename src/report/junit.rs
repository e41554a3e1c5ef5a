//! JUnit's XML, which most continuous integration shows as test results: a file is a suite, a finding a failed test of it.
//!
//! It is made to satisfy the schema that the JUnit plugins of Jenkins use. That has no place for rows and columns, so they are
//! in the name of the test: readers that merge tests of one name would lose findings otherwise.

use std::io::{self, Write};

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use crate::finding::{Code, Finding, Severity};
use crate::rules::page::Page;

use super::Report;
use super::place::relative_name;
use super::words::{in_full, message_with_world};

/// The rules that say that a file was not checked: errors rather than failures.
const UNCHECKED: [Code; 2] = [Code(1), Code(3)];

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut document = quick_junit::Report::new("samedevice");
    let pages = report.page_index();
    let same_file = |a: &Finding, b: &Finding| a.primary.place.file == b.primary.place.file;
    for group in report.findings.chunk_by(same_file) {
        let Some(first) = group.first() else { continue };
        let name = relative_name(report.root, report.sources.get(first.primary.place.file));
        let mut suite = TestSuite::new(name.as_str());
        suite.add_test_cases(group.iter().map(|f| test(report, f, pages.get(&f.code).copied(), &name)));
        document.add_test_suite(suite);
    }
    if report.findings.is_empty() {
        // Some readers take a report without tests for a broken one.
        let mut suite = TestSuite::new("samedevice");
        let mut test = TestCase::new("nothing found", TestCaseStatus::success());
        test.set_classname("samedevice");
        suite.add_test_case(test);
        document.add_test_suite(suite);
    }
    document.serialize(&mut *out).map_err(io::Error::other)
}

fn test(report: &Report, finding: &Finding, page: Option<&Page>, file: &str) -> TestCase {
    let at = report.sources.get(finding.primary.place.file).position(finding.primary.place.span.start);
    let name = page.map_or("", |page| page.name);
    let text = in_full(report, finding);
    let mut status = match finding.severity {
        // What is only worth knowing fails no test.
        Severity::Info => TestCaseStatus::success(),
        _ if UNCHECKED.contains(&finding.code) => TestCaseStatus::non_success(NonSuccessKind::Error),
        _ => TestCaseStatus::non_success(NonSuccessKind::Failure),
    };
    let fails = finding.severity != Severity::Info;
    if fails {
        status
            .set_type(finding.severity.name())
            .set_message(message_with_world(finding))
            .set_description(text.as_str());
    }
    let mut test = TestCase::new(format!("{} {name} ({}:{})", finding.code, at.row, at.column), status);
    test.set_classname(file);
    if !fails {
        test.set_system_out(text);
    }
    test
}
