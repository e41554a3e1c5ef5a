//! Suppression comments, and the whole stage that applies them.

use samedevice::config::Selector;
use samedevice::finding::{Code, Finding, Label};
use samedevice::lower::{Comment, Kind, STACK_BYTES, lower};
use samedevice::rules::registry::registry;
use samedevice::source::{Source, Sources};
use samedevice::span::{FileId, Place, Span};
use samedevice::suppress::{UNUSED, directive, suppress};
use samedevice::world::World;

use super::lies_within;

/// A Python file with comments. Its first byte says which findings it has.
pub fn check(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(rest).into_owned();
    // The parser recurses.
    let worker = std::thread::Builder::new().stack_size(STACK_BYTES);
    let worker = worker.spawn(move || of_file(first, text)).expect("a thread");
    if let Err(panic) = worker.join() {
        std::panic::resume_unwind(panic);
    }
}

fn of_file(first: u8, text: String) {
    let comments = lower(FileId(0), &text, Kind::Script).comments;
    for comment in &comments {
        of_comment(comment, &text);
    }
    let mut sources = Sources::default();
    let file = sources.add(Source::new("x.py".into(), "x.py".into(), text.clone()));
    let findings = findings(first, sources.get(file), file);
    let total = findings.len();
    let outcome = suppress(findings, &[(file, comments)], &sources, registry(), &|_, _| Some(true));
    let (about_comments, kept): (Vec<_>, Vec<_>) = outcome.findings.iter().partition(|f| f.code == UNUSED);
    // Reports about comments can be suppressed as well.
    assert!(kept.len() <= total && total - kept.len() <= outcome.suppressed);
    for finding in about_comments {
        of_report(finding, &text);
    }
}

/// Of what is read in a comment, all is in it, and what is written out is read as the same.
fn of_comment(comment: &Comment, text: &str) {
    lies_within(comment.span, text);
    lies_within(comment.covers, text);
    let content = comment.span.slice(text);
    assert!(content.starts_with('#') && !content.contains(['\n', '\r']), "{content:?}");
    for parsed in directive::parse(content, comment.span.start, registry()) {
        match parsed {
            Err(malformed) => assert!(comment.span.contains(malformed.span)),
            Ok(directive) => {
                assert!(comment.span.contains(directive.span));
                lies_within(directive.span, text);
                of_directive(&directive, text);
            }
        }
    }
}

fn of_directive(directive: &directive::Directive, text: &str) {
    for item in directive.items.iter().flatten() {
        assert!(directive.span.contains(item.span) && item.span.slice(text) == item.text, "{item:?}");
        if let Some(Ok(selector)) = &item.selector {
            assert_eq!(Selector::parse(&selector.to_string(), registry()).as_ref(), Ok(selector));
        }
    }
    let again = directive::parse(&written(directive), 0, registry());
    let [Ok(again)] = again.as_slice() else { panic!("{directive:?} is read as {again:?}") };
    assert_eq!((again.kind, texts(again)), (directive.kind, texts(directive)));
}

fn texts(directive: &directive::Directive) -> Option<Vec<&str>> {
    Some(directive.items.as_ref()?.iter().map(|item| item.text.as_str()).collect())
}

fn written(directive: &directive::Directive) -> String {
    let items = texts(directive).map(|texts| texts.join(", "));
    match (directive.kind, items) {
        (directive::Kind::Noqa, None) => "# noqa".to_owned(),
        (directive::Kind::Noqa, Some(items)) => format!("# noqa: {items}"),
        (directive::Kind::Ignore, None) => "# samedevice: ignore".to_owned(),
        (directive::Kind::Ignore, Some(items)) => format!("# samedevice: ignore[{items}]"),
        (directive::Kind::FileIgnore, None) => "# samedevice: file-ignore".to_owned(),
        (directive::Kind::FileIgnore, Some(items)) => format!("# samedevice: file-ignore[{items}]"),
    }
}

/// What is said of a comment is in the file, and so is what its fix takes away, one piece after the other.
fn of_report(report: &Finding, text: &str) {
    lies_within(report.primary.place.span, text);
    let Some(fix) = &report.fix else { return };
    let mut spans: Vec<Span> = fix.edits.iter().map(|edit| edit.place.span).collect();
    spans.sort_unstable();
    spans.iter().for_each(|span| lies_within(*span, text));
    assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start), "{spans:?}");
}

/// Findings in every row or so, each with another place two rows below.
fn findings(first: u8, source: &Source, file: FileId) -> Vec<Finding> {
    let starts = source.line_starts();
    let step = usize::from(first % 4) + 1;
    let place = |row: usize| {
        let start = starts[row.min(starts.len() - 1)];
        Place { file, span: Span::new(start, start) }
    };
    let codes: Vec<Code> = registry().iter().map(|page| page.code).filter(|&code| code != UNUSED).collect();
    let one = |row: usize| {
        let code = codes[(row * 7 + usize::from(first / 4)) % codes.len()];
        let label = Label::new(place(row), "");
        Finding::new(code, World::Always, "m", label).related(place(row + 2), "n")
    };
    (0..starts.len()).step_by(step).map(one).collect()
}
