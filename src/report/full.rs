//! For people: each finding with the source lines that matter, drawn by miette, and a summary.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use rustc_hash::FxHashSet;

use crate::finding::{Applicability, Finding, Label, Severity};
use crate::rules::page::Page;

use super::Report;
use super::excerpt::{CONTEXT, Excerpt};
use super::words::{counted, doubt_clause, one_line, summary, verdict_clause, verdicts, world_clause};
use crate::fix::changed_lines;

/// The minimum width of wrapped text. Below it, text that overflows is easier to read.
const MIN_WIDTH: usize = 40;
/// The maximum width of prose, even on a wider terminal.
const MAX_WIDTH: usize = 120;
/// The tab width of most terminals, and of GitHub.
const TAB_WIDTH: usize = 4;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let handler = handler(report);
    let pages = report.page_index();
    let mut text = String::new();
    for finding in report.findings {
        let shown = Shown::new(report, finding, pages.get(&finding.code).copied());
        text.clear();
        handler.render_report(&mut text, &shown).map_err(io::Error::other)?;
        writeln!(out, "{}", text.trim_end_matches('\n'))?;
        difference(report, finding, out)?;
        writeln!(out)?;
    }
    ending(report, out)
}

/// Writes the summary and the next steps, if the report wants them.
pub(super) fn ending(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if !report.summary {
        return Ok(());
    }
    if report.fixed > 0 {
        writeln!(out, "Fixed {}.", counted(report.fixed, "finding"))?;
    }
    if let Some(summary) = summary(report) {
        writeln!(out, "{summary}")?;
    }
    if let Some(verdicts) = verdicts(report) {
        writeln!(out, "On the machine: {verdicts}")?;
    }
    hints(report, out)
}

fn handler(report: &Report) -> GraphicalReportHandler {
    let theme = match (report.color, report.unicode) {
        (true, true) => GraphicalTheme::unicode(),
        (true, false) => GraphicalTheme::ascii(),
        (false, true) => GraphicalTheme::unicode_nocolor(),
        (false, false) => GraphicalTheme::none(),
    };
    GraphicalReportHandler::new_themed(theme)
        .with_width(report.width.clamp(MIN_WIDTH, MAX_WIDTH))
        .with_context_lines(CONTEXT)
        // The code itself is the link.
        .with_link_display_text("")
        .tab_width(TAB_WIDTH)
}

/// Writes the changes of the fix, line by line.
fn difference(report: &Report, finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let Some(fix) = &finding.fix else { return Ok(()) };
    let note = match fix.applicability {
        Applicability::Safe => "fix",
        Applicability::Unsafe => "unsafe fix",
        Applicability::Display => "suggestion",
    };
    writeln!(out, "  {note}: {}", one_line(&fix.message))?;
    for line in changed_lines(report.sources, fix) {
        let (sign, rest) = line.split_at(1);
        let style = match sign {
            _ if !report.color => Style::new(),
            "-" => Style::new().fg_color(Some(AnsiColor::Red.into())),
            _ => Style::new().fg_color(Some(AnsiColor::Green.into())),
        };
        writeln!(out, "    {style}{sign}{}{style:#}", one_line(rest))?;
    }
    Ok(())
}

/// Writes the next steps.
fn hints(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = report.findings.first() else { return Ok(()) };
    let fixes = |wanted| {
        let has = |f: &&Finding| f.fix.as_ref().is_some_and(|fix| fix.applicability == wanted);
        report.findings.iter().filter(has).count()
    };
    let (safe, bold) = (fixes(Applicability::Safe), fixes(Applicability::Unsafe));
    match (safe, bold, report.unsafe_fixes) {
        (0, 0, _) => {}
        (_, _, true) => writeln!(out, "[*] {} fixable with `--fix --unsafe-fixes`.", safe + bold)?,
        (safe, 0, false) => writeln!(out, "[*] {safe} fixable with `--fix`.")?,
        (0, bold, false) => writeln!(out, "{bold} fixable with `--fix --unsafe-fixes`.")?,
        (safe, bold, false) => {
            writeln!(out, "[*] {safe} fixable with `--fix` ({bold} more with `--unsafe-fixes`).")?;
        }
    }
    let rules: FxHashSet<_> = report.findings.iter().map(|f| f.code).collect();
    let this = if rules.len() == 1 { "this rule" } else { "a rule" };
    writeln!(out, "Run `samedevice rule {}` to read about {this}.", first.code)
}

/// A finding in miette's form.
#[derive(Debug)]
struct Shown<'a> {
    finding: &'a Finding,
    page: Option<&'a Page>,
    /// The rule's page on the web, in terminals that show links.
    url: Option<String>,
    fixable: bool,
    notes: Option<Note>,
    excerpt: Excerpt,
    labels: Vec<LabeledSpan>,
}

impl<'a> Shown<'a> {
    fn new(report: &Report, finding: &'a Finding, page: Option<&'a Page>) -> Self {
        let mut labels: Vec<&Label> = vec![&finding.primary];
        for label in &finding.related {
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        let places: Vec<_> = labels.iter().map(|label| label.place).collect();
        let (excerpt, spans) = Excerpt::new(report.sources, &places, report.unicode);
        let labels = labels.iter().zip(spans).enumerate().map(|(i, (label, span))| {
            let text = Some(label.text.as_str()).filter(|text| !text.is_empty());
            let text = text.map(|text| one_line(text).into_owned());
            if i == 0 {
                LabeledSpan::new_primary_with_span(text, span)
            } else {
                LabeledSpan::new_with_span(text, span)
            }
        });
        let labels = labels.collect();
        let url = page.filter(|_| report.links).map(Page::url);
        Self {
            finding,
            page,
            url,
            fixable: report.is_fixable(finding),
            notes: Note::chain(finding),
            excerpt,
            labels,
        }
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.finding.message))
    }
}

impl Error for Shown<'_> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.notes.as_ref().map(|note| note as &dyn Error)
    }
}

impl Diagnostic for Shown<'_> {
    fn code<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        let (severity, code) = (self.finding.severity.name(), self.finding.code);
        let name = self.page.map_or("", |page| page.name);
        let mark = if self.fixable { " [*]" } else { "" };
        Some(Box::new(format!("{severity}[{code}]{mark} {name}").trim_end().to_owned()))
    }

    fn url<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        self.url.as_ref().map(|url| Box::new(url) as Box<dyn fmt::Display>)
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.finding.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Info => miette::Severity::Advice,
        })
    }

    fn help<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        let fix = || self.finding.fix.as_ref().map(|fix| fix.message.as_str());
        let help = self.finding.help.as_deref().or_else(fix)?;
        Some(Box::new(one_line(help)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.excerpt)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

/// A line below the message. miette draws the chain of an error's sources there. That suits the world: it is the reason why the message is
/// true.
#[derive(Debug)]
struct Note {
    text: String,
    next: Option<Box<Note>>,
}

impl Note {
    fn chain(finding: &Finding) -> Option<Self> {
        let verdict = finding.verdict.as_ref().map(verdict_clause);
        let notes = [world_clause(finding), doubt_clause(finding), verdict];
        notes.into_iter().flatten().rfold(None, |below, text| Some(Self { text, next: below.map(Box::new) }))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Note {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.next.as_deref().map(|note| note as &dyn Error)
    }
}
