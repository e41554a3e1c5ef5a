//! The problem matchers and Vim's error format read what `concise` writes: each is run by the engine that
//! will run it, Node for the regular expressions and Vim for its format. Where `CI` is set the engines must
//! be there; elsewhere a test without its engine says so and passes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod samples;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use samedevice::finding::{Code, Finding, Label, Severity};
use samedevice::report::Format;
use samedevice::span::{Place, Span};
use samedevice::world::World;
use samples::Sample;
use serde::Deserialize;

/// What an engine made of a line.
#[derive(Debug, PartialEq, Deserialize)]
struct Read {
    file: String,
    row: usize,
    column: usize,
    severity: String,
    text: String,
}

const NAMES: [&str; 5] =
    ["train.py", "src/my helpers.py", "größe 日本.py", "/opt/x/a-b_c.py", "v1.2/[x] (y).py"];
/// Only where no part of the path may contain what separates the fields.
const NAMES_WITH_COLONS: [&str; 2] = ["C:/proj/train.py", "odd:3.py"];

/// Findings of each severity in files of these names.
fn sample(names: &[&str]) -> Sample {
    let mut sample = Sample::new();
    let severities = [Severity::Error, Severity::Warning, Severity::Info];
    for (i, name) in names.iter().enumerate() {
        let file = sample.file(name, "import torch\n    x = y.cuda()\n");
        for (code, severity) in [101, 601, 602].into_iter().zip(severities) {
            let span = Span::new(21 + u32::try_from(i).unwrap(), 29);
            let label = Label::new(Place { file, span }, "");
            let message = "`x: y` is at 3:14: error: SD999, 100% [sic]";
            let mut finding = Finding::new(Code(code), World::NoCuda, message, label);
            finding.severity = severity;
            sample.findings.push(finding);
        }
    }
    sample
}

/// What should be read, with each engine's words for the severities.
fn expected(sample: &Sample, words: [&str; 3]) -> Vec<Read> {
    let read = |finding: &Finding| {
        let source = sample.sources.get(finding.primary.place.file);
        let at = source.position(finding.primary.place.span.start);
        let page = sample.pages.iter().find(|page| page.code == finding.code).unwrap();
        Read {
            file: source.name.clone(),
            row: at.row,
            column: at.column,
            severity: match finding.severity {
                Severity::Error => words[0],
                Severity::Warning => words[1],
                Severity::Info => words[2],
            }
            .to_owned(),
            text: format!("{} {} (on a machine without CUDA) [{}]", finding.code, finding.message, page.name),
        }
    };
    sample.findings.iter().map(read).collect()
}

/// The first of the programs that starts. `None`, with a note, where there is none and need not be.
fn engine(names: &[&'static str]) -> Option<&'static str> {
    let starts = |name: &&&str| {
        Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    let found = names.iter().find(starts).copied();
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "none of {names:?} is installed, and CI is set");
        eprintln!("skipped: none of {names:?} is installed");
    }
    found
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn node(kind: &str, matcher: &str, lines: &str) -> Option<Vec<Read>> {
    let script = repository().join("tests/matchers/match.mjs");
    let mut child = Command::new(engine(&["node"])?)
        .arg(script)
        .arg(kind)
        .arg(repository().join(matcher))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(serde_json::from_slice(&output.stdout).expect("each line is matched"))
}

#[test]
fn the_matcher_for_vs_code() {
    let sample = sample(&[&NAMES[..], &NAMES_WITH_COLONS].concat());
    let lines = sample.render(Format::Concise);
    if let Some(read) = node("vscode", "editors/vscode/tasks.json", &lines) {
        assert_eq!(read, expected(&sample, ["error", "warning", "info"]));
    }
}

#[test]
fn the_matcher_for_github() {
    let sample = sample(&[&NAMES[..], &NAMES_WITH_COLONS].concat());
    let lines = sample.render(Format::Concise);
    if let Some(read) = node("github", ".github/samedevice-matcher.json", &lines) {
        assert_eq!(read, expected(&sample, ["error", "warning", "notice"]));
    }
}

#[test]
fn the_compiler_plugin_for_vim() {
    let Some(vim) = engine(&["vim", "nvim"]) else { return };
    let sample = sample(&NAMES);
    let folder = scratch("vim");
    std::fs::create_dir_all(folder.join("compiler")).unwrap();
    let plugin = repository().join("editors/vim/samedevice.vim");
    std::fs::copy(plugin, folder.join("compiler/samedevice.vim")).unwrap();
    let (lines, result) = (folder.join("lines"), folder.join("result"));
    std::fs::write(&lines, sample.render(Format::Concise)).unwrap();

    let status = Command::new(vim)
        .args(["-N", "-u", "NONE", "-i", "NONE", "-n", "-es", "--cmd", "set encoding=utf-8", "--cmd"])
        .arg(format!("set runtimepath^={}", folder.display()))
        .arg("-S")
        .arg(repository().join("tests/matchers/quickfix.vim"))
        .env("LINES_FILE", &lines)
        .env("RESULT_FILE", &result)
        .current_dir(&folder)
        .status()
        .unwrap();
    let result = std::fs::read_to_string(&result).unwrap_or_else(|e| panic!("{vim}: {status}: {e}"));
    let (read, makeprg) = result.trim_end().split_once('\n').unwrap();
    let read: Vec<Read> = serde_json::from_str(read).unwrap();
    assert_eq!(read, expected(&sample, ["e", "w", "i"]));
    assert_eq!(makeprg, "samedevice check --output-format concise");
    std::fs::remove_dir_all(folder).unwrap();
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("samedevice-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
