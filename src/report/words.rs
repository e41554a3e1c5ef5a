//! Sentences and single lines, for the formats that people read.

use std::borrow::Cow;

use crate::finding::{Confidence, Finding, Judgement, Severity, Verdict};
use crate::span::Place;
use crate::world::World;

use super::Report;
use super::place::{relative_name, with_cell};

/// The text without line ends and without characters that a terminal interprets, because it comes from untrusted files.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_dangerous) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_dangerous(c) { replacement(c) } else { c }).collect())
}

/// Control characters, line separators, and marks that reorder the text around them (CVE-2021-42574).
pub(crate) fn is_dangerous(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn replacement(c: char) -> char {
    if c.is_whitespace() { ' ' } else { char::REPLACEMENT_CHARACTER }
}

/// The machines on which the finding occurs, for people: "on a machine without CUDA, when `args.gpu` is set". `None` if it occurs
/// everywhere, or if the message already says it.
pub(super) fn world_clause(finding: &Finding) -> Option<String> {
    let world = Some(finding.world).filter(|w| *w != World::Always).map(World::in_words);
    let parts = [world, finding.condition.as_deref().map(|c| one_line(c).into_owned())];
    let parts: Vec<_> =
        parts.into_iter().flatten().filter(|part| !finding.message.contains(part.as_str())).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The assumptions of a likely finding: "assumes that something calls `f`". For low confidence, its reasons: "low confidence: it is in a
/// test".
pub(super) fn doubt_clause(finding: &Finding) -> Option<String> {
    // The clause about the world names the condition.
    let named = |doubt: &str| finding.condition.as_ref().is_some_and(|when| doubt.ends_with(when.as_str()));
    let doubts: Vec<&str> = finding.doubts.iter().map(String::as_str).filter(|doubt| !named(doubt)).collect();
    if doubts.is_empty() {
        return None;
    }
    Some(
        one_line(&match finding.confidence {
            Confidence::Certain => return None,
            Confidence::Likely => format!("assumes that {}", listed(&doubts)),
            Confidence::Low => format!("low confidence: {}", doubts.join(", ")),
        })
        .into_owned(),
    )
}

/// "a", "a and that b", "a, that b, and that c".
fn listed(clauses: &[&str]) -> String {
    match clauses {
        [one, two] => format!("{one} and that {two}"),
        [first @ .., last] if !first.is_empty() => format!("{}, and that {last}", first.join(", that ")),
        _ => clauses.concat(),
    }
}

/// The verdict in the machine formats.
pub(super) const fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Confirmed => "confirmed",
        Verdict::Refuted => "refuted",
        Verdict::Open => "open",
    }
}

/// The verdict of the real machine: "confirmed: this machine has 1 device: …".
pub(super) fn verdict_clause(judgement: &Judgement) -> String {
    format!("{}: {}", verdict_name(judgement.verdict), one_line(&judgement.reason))
}

/// The message, with the machines on which the finding occurs, and the verdict. For formats with one text per finding.
pub fn message_with_world(finding: &Finding) -> String {
    let message = one_line(&finding.message);
    let clauses =
        [world_clause(finding), doubt_clause(finding), finding.verdict.as_ref().map(verdict_clause)];
    let clauses: Vec<_> = clauses.into_iter().flatten().collect();
    if clauses.is_empty() { message.into_owned() } else { format!("{message} ({})", clauses.join("; ")) }
}

/// The finding as plain text: place and message, then a line for each other place and for the help. Paths are relative as in the machine
/// formats.
pub(super) fn in_full(report: &Report, finding: &Finding) -> String {
    let line = |place: Place, words: &str| {
        let source = report.sources.get(place.file);
        let at = source.position(place.span.start);
        let name = with_cell(&relative_name(report.root, source), report.sources, place);
        format!("{}:{}:{}: {words}", one_line(&name), at.row, at.column)
    };
    let message = format!("{} {}", finding.code, message_with_world(finding));
    let mut text = line(finding.primary.place, &message);
    for label in &finding.related {
        text.push_str("\n  ");
        text.push_str(&line(label.place, &one_line(&label.text)));
    }
    if let Some(help) = &finding.help {
        text.push_str(&format!("\n  help: {}", one_line(help)));
    }
    text
}

/// "Found 3 problems (2 errors, 1 warning) in 12 files; 4 suppressed." `None` if nothing was checked.
pub(super) fn summary(report: &Report) -> Option<String> {
    if report.checked == 0 && report.findings.is_empty() {
        return None;
    }
    let files = counted(report.checked, "file");
    let more = if report.findings.is_empty() { "" } else { " more" };
    let mut left_out = match report.suppressed {
        0 => String::new(),
        n => format!("; {n}{more} suppressed"),
    };
    if report.accepted > 0 {
        let places = if report.accepted == 1 { "place" } else { "places" };
        left_out.push_str(&format!("; {} known {places} in the baseline", report.accepted));
    }
    if report.low > 0 {
        left_out
            .push_str(&format!("; {} with low confidence not shown (`--min-confidence low`)", report.low));
    }
    if report.findings.is_empty() {
        return Some(format!("No findings: {files} checked{left_out}."));
    }
    let of = |severity| report.findings.iter().filter(|f| f.severity == severity).count();
    let parts: Vec<_> =
        [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Info, "info")]
            .into_iter()
            .map(|(severity, word)| (of(severity), word))
            .filter(|(n, _)| *n > 0)
            .map(|(n, word)| if word == "info" { format!("{n} {word}") } else { counted(n, word) })
            .collect();
    let problems = counted(report.findings.len(), "problem");
    Some(format!("Found {problems} ({}) in {files}{left_out}.", parts.join(", ")))
}

/// "2 confirmed, 1 refuted." `None` if there are no verdicts.
pub(super) fn verdicts(report: &Report) -> Option<String> {
    let of = |verdict| {
        let judged = report.findings.iter().filter_map(|f| f.verdict.as_ref());
        judged.filter(|judgement| judgement.verdict == verdict).count()
    };
    let parts: Vec<_> = [Verdict::Confirmed, Verdict::Refuted, Verdict::Open]
        .into_iter()
        .map(|verdict| (of(verdict), verdict_name(verdict)))
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{n} {word}"))
        .collect();
    (!parts.is_empty()).then(|| format!("{}.", parts.join(", ")))
}

/// "1 file", "2 files".
pub(super) fn counted(n: usize, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") }
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn what_a_terminal_would_act_on_is_replaced() {
        assert_eq!(one_line("a\r\nb\tc\u{1b}[31m\u{202e}"), "a  b c\u{fffd}[31m\u{fffd}");
        assert_eq!(one_line("naïve 日本"), "naïve 日本");
    }
}
