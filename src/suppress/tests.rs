//! From a text with comments and findings to the remaining findings, and to the text without unused suppressions.

use super::{Outcome, suppress};
use crate::config::sample::pages;
use crate::finding::{Applicability, Code, Finding, Label, Role};
use crate::lower::Comment;
use crate::source::{Source, Sources};
use crate::span::{FileId, Place, Span};
use crate::world::World;

/// The comments as `lower` finds them, if every statement is on one line and no string contains a `#`.
fn comments(text: &str) -> Vec<Comment> {
    let mut comments = Vec::new();
    let mut start = 0;
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    let span = |from: usize, to: usize| Span::new(from as u32, to as u32);
    for (row, line) in lines.iter().enumerate() {
        let end = start + line.trim_end_matches(['\n', '\r']).len();
        if let Some(at) = line.find('#') {
            let own_line = line[..at].trim().is_empty();
            let next = lines.get(row + 1).map_or(0, |next| next.len());
            let after = start + line.len();
            let covers = if own_line { span(after, after + next) } else { span(start, end) };
            comments.push(Comment { span: span(start + at, end), own_line, covers });
        }
        start += line.len();
    }
    comments
}

fn finding(source: &Source, file: FileId, code: u16, row: usize) -> Finding {
    let start = source.line_starts()[row - 1];
    let place = Place { file, span: Span::new(start, start + 1) };
    Finding::new(Code(code), World::Always, "m", Label::new(place, String::new()))
}

struct Case {
    kept: Vec<String>,
    suppressed: usize,
    fixed: String,
    safe: bool,
}

/// Runs the station on these findings, each a code and a row. SD307 and SD606 are off.
fn run(text: &str, found: &[(u16, usize)]) -> Case {
    let mut sources = Sources::default();
    let file = sources.add(Source::new("x.py".into(), "x.py".into(), text.to_owned()));
    let findings = found.iter().map(|&(code, row)| finding(sources.get(file), file, code, row)).collect();
    let on = |_, code: Code| Some(![307, 606].contains(&code.0));
    let outcome = suppress(findings, &[(file, comments(text))], &sources, pages(), &on);
    case(&outcome, &sources, text)
}

fn case(outcome: &Outcome, sources: &Sources, text: &str) -> Case {
    let describe = |f: &Finding| match f.code.0 {
        2 => f.message.clone(),
        _ => format!(
            "{}@{}",
            f.code,
            sources.get(f.primary.place.file).position(f.primary.place.span.start).row
        ),
    };
    let fixes: Vec<_> = outcome.findings.iter().filter_map(|f| f.fix.as_ref()).collect();
    let mut spans: Vec<_> = fixes.iter().flat_map(|fix| &fix.edits).map(|edit| edit.place.span).collect();
    spans.sort();
    let mut fixed = text.to_owned();
    for span in spans.iter().rev() {
        fixed.replace_range(span.start as usize..span.end as usize, "");
    }
    Case {
        kept: outcome.findings.iter().map(describe).collect(),
        suppressed: outcome.suppressed,
        fixed,
        safe: fixes.iter().all(|fix| fix.applicability == Applicability::Safe),
    }
}

#[test]
fn comments_suppress_what_they_cover() {
    let text = "a = 1  # samedevice: ignore[SD101] why\n# samedevice: ignore\nb\nc  # noqa\nd\n";
    let case = run(text, &[(101, 1), (203, 3), (201, 4), (101, 5), (102, 1)]);
    assert_eq!(case.kept, ["SD101@5", "SD102@1"]);
    assert_eq!(case.suppressed, 3);
}

#[test]
fn a_comment_at_any_place_of_the_finding_counts_in_any_file() {
    let text = "a  # samedevice: ignore[SD2]\n";
    let mut sources = Sources::default();
    let near = sources.add(Source::new("near.py".into(), "near.py".into(), "x\n".to_owned()));
    let far = sources.add(Source::new("far.py".into(), "far.py".into(), text.to_owned()));
    let other = Place { file: far, span: Span::new(0, 1) };
    let found = finding(sources.get(near), near, 201, 1).related(other, "made here");
    let outcome = suppress(vec![found], &[(far, comments(text))], &sources, pages(), &|_, _| Some(true));
    assert_eq!((outcome.findings.len(), outcome.suppressed), (0, 1));
}

#[test]
fn file_ignores_cover_everything() {
    let case = run("# samedevice: file-ignore[SD1]\na\nb\n", &[(101, 2), (102, 3), (201, 3)]);
    assert_eq!(case.kept, ["SD201@3"]);
    assert_eq!(run("a\n  # samedevice: file-ignore\nb\n", &[(101, 1)]).kept, [""; 0]);
}

#[test]
fn what_suppresses_nothing_is_told_and_can_be_removed() {
    let case = run("a  # samedevice: ignore[SD101, SD203] why\n", &[(203, 1)]);
    assert_eq!(case.kept, ["unused suppression: `SD101` is not reported here"]);
    assert_eq!(case.fixed, "a  # samedevice: ignore[SD203] why\n");
    assert!(case.safe);

    let case = run("a  # samedevice: ignore[SD203, SD101, SD102, SD201] why\n", &[(203, 1), (102, 1)]);
    assert_eq!(case.kept, ["unused suppression: `SD101`, `SD201` are not reported here"]);
    assert_eq!(case.fixed, "a  # samedevice: ignore[SD203, SD102] why\n");

    let case = run("a  # samedevice: ignore[SD101] why\r\n    # samedevice: ignore\r\nb", &[]);
    assert_eq!(case.fixed, "a\r\nb");

    let case = run("a  # samedevice: file-ignore", &[]);
    assert_eq!(case.kept, ["unused suppression: there is no finding in this file"]);
    assert_eq!(case.fixed, "a");
}

#[test]
fn the_kinds_of_fault_are_told_apart() {
    let case = run("a  # samedevice: ignore[SD999, SD307, SD101, SD203]\n", &[(203, 1)]);
    assert_eq!(
        case.kept,
        ["unused suppression: `SD999` is not a rule; `SD101` is not reported here"],
        "SD307 may be wanted in another run"
    );
    assert_eq!(case.fixed, "a  # samedevice: ignore[SD307, SD203]\n");
    assert!(run("a  # samedevice: ingore\n", &[]).kept[0].starts_with("malformed suppression"));
}

#[test]
fn other_pragmas_stay() {
    let fixed = |text| run(text, &[]).fixed;
    assert_eq!(fixed("a  # type: ignore # samedevice: ignore\n"), "a  # type: ignore\n");
    assert_eq!(fixed("a  # samedevice: ignore # type: ignore\n"), "a  # type: ignore\n");
    assert_eq!(fixed("a  # noqa: E501, SD101\n"), "a  # noqa: E501\n");
    assert_eq!(fixed("a  # noqa: SD101, E501 # x\n"), "a  # noqa: E501 # x\n");
    assert_eq!(fixed("a  # noqa: SD101\n"), "a\n");
    assert_eq!(fixed("a  # noqa\n"), "a  # noqa\n");
    assert_eq!(fixed("# samedevice: ignore[SD101] # type: ignore\na\n"), "# type: ignore\na\n");
}

#[test]
fn a_report_about_suppressions_can_be_suppressed_by_its_code_only() {
    assert_eq!(run("a  # samedevice: ignore[SD101, SD002]\n", &[]).kept, [""; 0]);
    assert_eq!(
        run("a  # samedevice: ignore[SD101]\n# samedevice: file-ignore[unused-suppression]\n", &[]).kept,
        [""; 0]
    );
    assert_eq!(
        run("a  # samedevice: ignore[SD002]\n", &[]).kept,
        ["unused suppression: `SD002` is not reported here"]
    );
    assert_eq!(run("a  # samedevice: ignore\n", &[]).kept, ["unused suppression: there is no finding here"]);
}

#[test]
fn a_file_that_was_read_in_part_keeps_its_comments() {
    assert_eq!(run("a  # samedevice: ignore[SD101]\nb\n", &[(1, 2)]).kept, ["SD001@2"]);
}

/// A finding in row 1 with other places of the same cause; each has a row and the rows of the calls that lead there.
fn with_others(text: &str, others: &[(usize, &[usize])]) -> Outcome {
    let mut sources = Sources::default();
    let file = sources.add(Source::new("x.py".into(), "x.py".into(), text.to_owned()));
    let source = sources.get(file);
    let place = |row: usize| {
        let start = source.line_starts()[row - 1];
        Place { file, span: Span::new(start, start + 1) }
    };
    let mut found = finding(source, file, 101, 1);
    for &(row, through) in others {
        let through = through.iter().map(|&row| place(row)).collect();
        found.related.push(Label { role: Role::Repeated { through }, ..Label::new(place(row), "too") });
    }
    suppress(vec![found], &[(file, comments(text))], &sources, pages(), &|_, _| Some(true))
}

/// The rows of a finding's places.
fn rows(f: &Finding, text: &str) -> Vec<usize> {
    f.places().map(|p| text[..p.span.start as usize].matches('\n').count() + 1).collect()
}

#[test]
fn a_comment_on_another_place_takes_that_away_alone() {
    let text = "a\nb  # samedevice: ignore\nc\n";
    let outcome = with_others(text, &[(2, &[]), (3, &[])]);
    assert_eq!(outcome.findings.len(), 1, "the comment is used");
    assert_eq!(rows(&outcome.findings[0], text), [1, 3]);
    assert_eq!(outcome.suppressed, 0);
}

#[test]
fn the_next_place_is_told_where_the_first_is_suppressed() {
    let text = "a  # samedevice: ignore\nb  # samedevice: ignore\nc\nd\n";
    let outcome = with_others(text, &[(2, &[]), (3, &[]), (4, &[1])]);
    assert_eq!(outcome.findings.len(), 1);
    assert_eq!(rows(&outcome.findings[0], text), [3], "row 1 leads to row 4");
    let outcome = with_others(text, &[(2, &[])]);
    assert_eq!((outcome.findings.len(), outcome.suppressed), (0, 1));
}

#[test]
fn places_in_files_whose_rule_is_off_are_taken_away() {
    let mut sources = Sources::default();
    let file = |name: &str, sources: &mut Sources| {
        sources.add(Source::new(name.into(), name.into(), "x\n".to_owned()))
    };
    let (off, on) = (file("off.py", &mut sources), file("on.py", &mut sources));
    let is_on = |file, _| Some(file == on);
    for (first, second, told) in [(off, on, vec![on]), (on, off, vec![on]), (off, off, vec![])] {
        let mut found = finding(sources.get(first), first, 101, 1);
        let place = Place { file: second, span: Span::new(0, 1) };
        let role = Role::Repeated { through: Vec::new() };
        found.related.push(Label { role, ..Label::new(place, "too") });
        let outcome = suppress(vec![found], &[], &sources, pages(), &is_on);
        let files: Vec<FileId> = outcome.findings.iter().flat_map(|f| f.places().map(|p| p.file)).collect();
        assert_eq!((files, outcome.suppressed), (told, 0));
    }
}

#[test]
fn what_comes_of_it_later_is_never_told_for_itself() {
    let text = "a  # samedevice: ignore\nb\n";
    let mut sources = Sources::default();
    let file = sources.add(Source::new("x.py".into(), "x.py".into(), text.to_owned()));
    let mut found = finding(sources.get(file), file, 101, 1);
    let place = Place { file, span: Span::new(24, 25) };
    found.related.push(Label { role: Role::Consequence, ..Label::new(place, "so this fails") });
    let outcome = suppress(vec![found], &[(file, comments(text))], &sources, pages(), &|_, _| Some(true));
    assert_eq!((outcome.findings.len(), outcome.suppressed), (0, 1));
}
