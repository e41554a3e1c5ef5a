//! The formats, and the schema of the configuration, against the official schemas and a program that reads one. `.ci/run`
//! fetches those, and a Python with `jsonschema` and `lxml`, and names them in variables; without these a test says so and
//! passes, unless `CI` is set. GitLab's schema is in no package: `tests/outputs.rs` checks what it asks for.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod samples;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use samedevice::config::keys::KEYS;
use samedevice::report::Format;

/// The values of the variables that `.ci/run` sets; `None` where they are not.
fn given<const N: usize>(names: [&str; N]) -> Option<[OsString; N]> {
    let values: Vec<OsString> = names.iter().filter_map(std::env::var_os).collect();
    let values = <[OsString; N]>::try_from(values).ok();
    if values.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI is set, and {names:?} are not: use .ci/run");
        eprintln!("skipped: {names:?} are not set; .ci/run sets them");
    }
    values
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas").join(name)
}

/// Runs the program with files of these names and texts as its last arguments. It must be content.
fn holds(mut program: Command, files: &[(&str, String)]) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        program.arg(path);
    }
    let output = program.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}

/// The samples in a format.
fn rendered(format: Format) -> Vec<(&'static str, String)> {
    let samples = [
        ("none", samples::Sample::new()),
        ("plain", samples::plain()),
        ("rich", samples::rich()),
        ("at_the_end", samples::at_the_end()),
        ("columns", samples::columns()),
    ];
    samples.map(|(name, sample)| (name, sample.render(format))).into()
}

#[test]
fn sarif_is_what_oasis_says() {
    let Some([python, schema]) = given(["SCHEMAS_PYTHON", "SARIF_SCHEMA"]) else { return };
    let mut validate = Command::new(python);
    validate.arg(script("sarif.py")).arg(schema);
    holds(validate, &rendered(Format::Sarif));
}

#[test]
fn junit_is_what_jenkins_reads() {
    let Some([python, schema]) = given(["SCHEMAS_PYTHON", "JUNIT_SCHEMA"]) else { return };
    let mut validate = Command::new(python);
    validate.arg(script("junit.py")).arg(schema);
    holds(validate, &rendered(Format::Junit));
}

#[test]
fn rdjson_is_what_reviewdog_reads() {
    let Some([validator]) = given(["RDJSON_VALIDATOR"]) else { return };
    let mut validate = Command::new("node");
    validate.arg(validator);
    holds(validate, &rendered(Format::Rdjson));
}

#[test]
fn the_schema_of_the_configuration_takes_what_is_right() {
    let Some([python]) = given(["SCHEMAS_PYTHON"]) else { return };
    let json = |toml: &str| serde_json::to_string(&toml.parse::<toml::Table>().unwrap()).unwrap();
    let mut files: Vec<(&str, String)> = KEYS.iter().map(|key| (key.name, json(key.example))).collect();
    let wrong = [
        ("wrong key", "selct = ['SD101']"),
        ("wrong rule", "select = ['SD1O1']"),
        ("wrong kind", "strict = 1"),
        ("wrong level", "fail-on-severity = 'off'"),
        ("wrong size", "oom-threshold = -1"),
        ("wrong severity", "severity = { unguarded-cudaa = 'info' }"),
    ];
    files.extend(wrong.map(|(name, toml)| (name, json(toml))));
    let mut validate = Command::new(python);
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/samedevice.schema.json");
    validate.arg(script("config.py")).arg(schema);
    holds(validate, &files);
}

#[test]
fn the_schema_of_reports_takes_what_is_one() {
    let Some([python]) = given(["SCHEMAS_PYTHON"]) else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let report = read("fixtures/machines/one-gpu.json");
    let files = [
        ("one GPU", report.clone()),
        ("old driver", read("fixtures/machines/old-driver.json")),
        ("first version", read("tests/machine/report-of-0.1.0.json")),
        ("wrong number", report.replace("\"index\": 0", "\"index\": \"zero\"")),
        ("wrong word", report.replace("\"depth\": \"look\"", "\"depth\": \"see\"")),
        ("wrong version", report.replace("\"capability\": \"8.0\"", "\"capability\": 8.0")),
    ];
    let mut validate = Command::new(python);
    validate.arg(script("config.py")).arg(root.join("docs/machine.schema.json"));
    holds(validate, &files);
}
