//! From findings to bytes. There is one file per format, and each is a pure function of a [`Report`]. This folder never reads the
//! environment or the terminal, and never selects findings.

mod concise;
mod excerpt;
pub mod fingerprint;
mod full;
mod github;
mod gitlab;
mod grouped;
mod json;
mod junit;
mod place;
mod rdjson;
mod sarif;
pub mod statistics;
mod ways;
mod words;

use std::io::{self, BufWriter, Write};
use std::path::Path;

use rustc_hash::FxHashMap;

use crate::finding::{Code, Finding};
use crate::rules::page::Page;
use crate::source::Sources;

/// Removes characters that a terminal would interpret; also for other output.
pub(crate) use words::{is_dangerous, message_with_world, one_line};

/// The output formats, with the names that the command line knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Format {
    /// For people: each finding with its source lines.
    #[default]
    Full,
    /// One line per finding: `path:row:col: error: SD101 message [name]`.
    Concise,
    /// One line per finding, grouped by file.
    Grouped,
    /// A JSON array.
    Json,
    /// One JSON object per line.
    JsonLines,
    /// Annotations for GitHub Actions.
    Github,
    /// A code quality report for GitLab.
    Gitlab,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit XML: each finding is a failed test.
    Junit,
    /// The JSON format of reviewdog.
    Rdjson,
}

/// The results of a run, and how to show them.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The files that the findings are in.
    pub sources: &'a Sources,
    /// The findings, sorted.
    pub findings: &'a [Finding],
    /// The pages of all rules.
    pub pages: &'a [Page],
    /// How many files were checked.
    pub checked: usize,
    /// How many findings comments suppressed.
    pub suppressed: usize,
    /// How many findings the baseline accepts.
    pub accepted: usize,
    /// How many findings have been fixed.
    pub fixed: usize,
    /// Whether fixes that may change the meaning of the program would be applied.
    pub unsafe_fixes: bool,
    /// How many findings were left out because of their confidence.
    pub low: usize,
    /// Whether part of the request failed, such as a path that does not exist.
    pub failed: bool,
    /// What was not checked, or not completely; one line each.
    pub not_checked: &'a [String],
    /// The version of this program.
    pub version: &'a str,
    /// Whether the full format ends with a summary and the next steps.
    pub summary: bool,
    /// Whether the formats for people may use colours.
    pub color: bool,
    /// Whether they may use characters other than ASCII.
    pub unicode: bool,
    /// Whether they may link the codes of rules.
    pub links: bool,
    /// The width of the terminal in columns.
    pub width: usize,
    /// The absolute folder to which paths in the machine formats are relative. It is the working directory, unless the reader needs another
    /// folder (GitHub's workspace).
    pub root: &'a Path,
}

impl<'a> Report<'a> {
    /// Would `--fix` fix the finding?
    fn is_fixable(&self, finding: &Finding) -> bool {
        finding.fix.as_ref().is_some_and(|fix| fix.applicability.is_wanted(self.unsafe_fixes))
    }

    /// The rules' pages by code.
    fn page_index(&self) -> FxHashMap<Code, &'a Page> {
        self.pages.iter().map(|page| (page.code, page)).collect()
    }
}

/// Writes the findings to `out`, which need not be buffered.
pub fn write(format: Format, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    match format {
        Format::Full => full::write(report, &mut out)?,
        Format::Concise => concise::write(report, &mut out)?,
        Format::Grouped => grouped::write(report, &mut out)?,
        Format::Json => json::write(report, &mut out)?,
        Format::JsonLines => json::write_lines(report, &mut out)?,
        Format::Github => github::write(report, &mut out)?,
        Format::Gitlab => gitlab::write(report, &mut out)?,
        Format::Sarif => sarif::write(report, &mut out)?,
        Format::Junit => junit::write(report, &mut out)?,
        Format::Rdjson => rdjson::write(report, &mut out)?,
    }
    out.flush()
}
