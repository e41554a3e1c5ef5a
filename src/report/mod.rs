//! Findings → bytes. One file a format, each a pure function of a [`Report`]; nothing here reads the
//! environment, asks the terminal or decides which findings there are.

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

/// The text without what a terminal would act on, for what else is printed.
pub(crate) use words::{is_dangerous, one_line};

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

/// What a run found, and how to show it.
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
    /// Would fixes that may change what the program means be applied?
    pub unsafe_fixes: bool,
    /// How many findings are not sure enough to be told.
    pub low: usize,
    /// Did something that was asked for fail, such as a path that is not there?
    pub failed: bool,
    /// What was not looked at, or not wholly, one line each.
    pub not_checked: &'a [String],
    /// The version of this program.
    pub version: &'a str,
    /// Should the full format end with a summary and what to do next?
    pub summary: bool,
    /// May the people's formats use colours?
    pub color: bool,
    /// May they draw with more than ASCII?
    pub unicode: bool,
    /// May they make links of the rules' codes?
    pub links: bool,
    /// The width of the terminal in columns.
    pub width: usize,
    /// What the machine formats' paths are relative to: the working directory, or, where the reader is known
    /// to want another folder (GitHub's workspace), that one. Absolute.
    pub root: &'a Path,
}

impl<'a> Report<'a> {
    /// Would `--fix` mend the finding?
    fn is_fixable(&self, finding: &Finding) -> bool {
        finding.fix.as_ref().is_some_and(|fix| fix.applicability.is_wanted(self.unsafe_fixes))
    }

    /// The rules' pages by code.
    fn page_index(&self) -> FxHashMap<Code, &'a Page> {
        self.pages.iter().map(|page| (page.code, page)).collect()
    }
}

/// Writes the findings to `out`, which needs no buffer of its own.
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
