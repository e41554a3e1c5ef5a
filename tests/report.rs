//! The output formats, on the same inputs.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod samples;

use samedevice::finding::{Code, Finding, Label};
use samedevice::report::{Format, statistics};
use samedevice::span::{Place, Span};
use samedevice::work::take;
use samedevice::world::World;
use samples::{Sample, render};

const FORMATS: [Format; 10] = [
    Format::Full,
    Format::Concise,
    Format::Grouped,
    Format::Json,
    Format::JsonLines,
    Format::Github,
    Format::Gitlab,
    Format::Sarif,
    Format::Junit,
    Format::Rdjson,
];

#[test]
fn every_format_on_every_sample() {
    let samples = [
        ("plain", samples::plain()),
        ("rich", samples::rich()),
        ("at_the_end", samples::at_the_end()),
        ("columns", samples::columns()),
    ];
    for (name, sample) in samples {
        for format in FORMATS {
            let text = sample.render(format);
            insta::assert_snapshot!(format!("{name}__{format:?}"), text);
        }
    }
}

#[test]
fn nothing_found() {
    let mut sample = Sample::new();
    sample.checked = 12;
    assert_eq!(sample.render(Format::Full), "No findings: 12 files checked.\n");
    sample.suppressed = 3;
    sample.checked = 1;
    assert_eq!(sample.render(Format::Full), "No findings: 1 file checked; 3 suppressed.\n");
    let quiet = samedevice::report::Report { summary: false, ..sample.report() };
    assert_eq!(render(Format::Full, &quiet), "");
    assert_eq!(sample.render(Format::Json), "[]\n");
    for format in [Format::Concise, Format::JsonLines, Format::Github] {
        assert_eq!(sample.render(format), "");
    }
    let sarif: serde_json::Value = serde_json::from_str(&sample.render(Format::Sarif)).unwrap();
    assert_eq!(sarif["runs"][0]["results"], serde_json::json!([]));
}

#[test]
fn colours_and_ascii() {
    let sample = samples::rich();
    let plain = samedevice::report::Report { unicode: false, ..sample.report() };
    let text = render(Format::Full, &plain);
    insta::assert_snapshot!("ascii", text);
    assert!(text.is_ascii());
    for format in [Format::Full, Format::Concise] {
        let colored = samedevice::report::Report { color: true, ..sample.report() };
        let colored = render(format, &colored);
        assert!(colored.contains("\u{1b}["));
        assert_eq!(without_escapes(&colored), sample.render(format));
    }
}

/// The text without SGR sequences.
fn without_escapes(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn rules_are_counted() {
    let mut sample = samples::rich();
    sample.findings.push(sample.findings[1].clone());
    let counted = |format| {
        let mut out = Vec::new();
        statistics::write(format, &sample.report(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        counted(Format::Full),
        "2\tSD601\tcreated-then-moved\n1\tSD201\tmixed-device-operation\n1\tSD602\tnon-blocking-without-pinned-memory\n"
    );
    let rows: serde_json::Value = serde_json::from_str(&counted(Format::Json)).unwrap();
    assert_eq!(rows[0], serde_json::json!({"code": "SD601", "name": "created-then-moved", "count": 2}));
    assert_eq!(rows.as_array().unwrap().len(), 3);
}

/// A finding on a range of bytes, wherever that is.
fn on(sample: &mut Sample, file: samedevice::span::FileId, start: usize, end: usize) {
    let span = Span::new(u32::try_from(start).unwrap(), u32::try_from(end).unwrap());
    let label = Label::new(Place { file, span }, "here");
    let mut finding = Finding::new(Code(101), World::NoCuda, "wrong", label);
    if let Some(last) = sample.findings.last() {
        finding = finding.related(last.primary.place, "there");
    }
    sample.findings.push(finding);
}

#[test]
fn a_long_line_is_shown_around_the_place() {
    let mut sample = Sample::new();
    let text = format!("x = ['é', {}y.cuda(), {}]\nz = 1\n", "1, ".repeat(300_000), "2, ".repeat(100_000));
    let file = sample.file("generated.py", &text);
    let label = sample.label(file, "y.cuda()", "here");
    sample.findings.push(Finding::new(Code(101), World::NoCuda, "wrong", label));
    let text = sample.render(Format::Full);
    insta::assert_snapshot!("long_line", text);
    assert!(sample.render(Format::Sarif).len() < 10_000);
}

#[test]
fn any_range_can_be_shown() {
    let texts = ["", "\n", "a", "é\r\n\r\tb\r", "x = 1\ny = (\n  2,\n)\n", "\u{1b}日本\u{202e}\n\n\n\n\nz"];
    for text in texts {
        let mut sample = Sample::new();
        let file = sample.file("a.py", text);
        for start in 0..=text.len() + 2 {
            for end in start.saturating_sub(1)..=text.len() + 2 {
                on(&mut sample, file, start, end);
            }
        }
        for format in FORMATS {
            sample.render(format);
        }
    }
    let mut sample = Sample::new();
    let long = format!("{}\n{}\n", "é".repeat(700), "ab\t".repeat(300));
    let file = sample.file("a.py", &long);
    for start in (0..long.len()).step_by(7) {
        on(&mut sample, file, start, start + start % 400);
    }
    sample.render(Format::Full);
}

/// So many findings in one file of as many rows.
fn many(n: usize) -> Sample {
    let mut sample = Sample::new();
    let file = sample.file("m.py", &"    x = a.cuda() + torch.zeros(3)\n".repeat(n));
    (0..n).for_each(|row| on(&mut sample, file, row * 34 + 8, row * 34 + 16));
    sample
}

#[test]
fn twice_as_many_findings_take_twice_the_work() {
    for format in FORMATS {
        let steps = |n: usize| {
            let sample = many(n);
            take();
            assert!(!sample.render(format).is_empty());
            take()
        };
        let (once, twice) = (steps(1_000), steps(2_000));
        println!("{format:?}: {once} {twice}");
        assert!(once >= 1_000 && twice * 2 <= once * 5, "{format:?}: {once} steps become {twice}");
    }
}
