//! What a person sees of each rule: the full report on the programs and projects in `fixtures/reports`.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use samedevice::rules::registry::registry;

/// The entries of a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths
}

/// What is printed for a program, or for all files of a project, linted in the rule's folder.
fn report(folder: &Path, code: &str, what: &str) -> String {
    let mut run = Command::new(env!("CARGO_BIN_EXE_samedevice"));
    run.current_dir(folder).args([
        "check",
        "--isolated",
        "--min-confidence",
        "low",
        "--fail-on-severity",
        "info",
        "--output-format",
        "full",
        "--extend-select",
        code,
        what,
    ]);
    run.env("COLUMNS", "100").env("NO_COLOR", "1");
    for name in ["SAMEDEVICE_OUTPUT_FORMAT", "CLICOLOR_FORCE", "GITHUB_WORKSPACE"] {
        run.env_remove(name);
    }
    let output = run.output().unwrap();
    assert!(output.status.code() == Some(1), "{code} {what}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn reports_on_own_programs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reports");
    for page in registry() {
        let code = page.code.to_string();
        let folder = root.join(&code);
        assert!(folder.is_dir(), "{code} has no program in fixtures/reports");
        for path in entries(&folder) {
            let name = path.file_name().unwrap().to_str().unwrap();
            let text = report(&folder, &code, name);
            assert!(text.contains(&code), "{code} is not found in {name}:\n{text}");
            insta::assert_snapshot!(format!("{code}__{}", name.trim_end_matches(".py")), text);
        }
    }
}

/// What goes wrong only as another file uses it belongs to that file, whatever is linted with it.
#[test]
fn an_importer_has_the_finding_alone_or_not() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reports");
    for (code, origin, importer) in [("SD101", "config.py", "run.py"), ("SD204", "positions.py", "model.py")]
    {
        let folder = root.join(code).join("project");
        let both = report(&folder, code, ".");
        let alone = report(&folder, code, importer);
        // Only what is linted is fixed.
        let of_fix = |line: &&str| {
            ["  fix: ", "  unsafe fix: ", "    - ", "    + "].iter().any(|start| line.starts_with(start))
        };
        let findings = |text: &str| {
            let found = text.split("Found ").next().unwrap_or_default();
            found.lines().filter(|line| !of_fix(line)).map(|l| l.replace(" [*]", "")).collect::<Vec<_>>()
        };
        assert_eq!(findings(&both), findings(&alone));
        assert!(alone.contains(&format!("{importer}:")) && alone.contains(origin), "{alone}");
        assert_eq!(alone.matches(&format!("[{code}]")).count(), 1, "{alone}");
    }
}
