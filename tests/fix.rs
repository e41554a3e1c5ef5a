//! Fixes: what they change, when they are applied, and how files are written.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod shown;
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use samedevice::rules::page::FixKind;
use samedevice::rules::registry::registry;
use serde_json::Value;
use shown::shown;
use support::Project;

/// A safe fix and an unsafe one.
const BOTH: &str = "import torch
from torch import nn

device = \"cuda\" if torch.cuda.is_available else \"cpu\"
model = nn.Linear(8, 2).to(device)
model.load_state_dict(torch.load(\"model.pt\"))
";
const CALLED: &str = "if torch.cuda.is_available() else";
const TO_CPU: &str = "torch.load(\"model.pt\", map_location=\"cpu\")";

fn read(project: &Project, name: &str) -> String {
    String::from_utf8(bytes(project, name)).unwrap()
}

fn bytes(project: &Project, name: &str) -> Vec<u8> {
    fs::read(project.root().join(name)).unwrap()
}

#[test]
fn what_fixes_change() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fix");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "py"));
    files.sort();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let project = Project::new(&[(name, &fs::read_to_string(&file).unwrap())]);
        let safe = project.run("check --isolated --diff .").stdout;
        let all = project.run("check --isolated --diff --unsafe-fixes .").stdout;
        assert!(name != "traps.py" || safe.is_empty(), "a trap is taken for safe:\n{safe}");
        project.run("check --isolated --fix --unsafe-fixes .");
        let fixed = read(&project, name);
        let again = project.run("check --isolated --fix --unsafe-fixes .");
        assert!(!again.stderr.contains("rror"), "{name}: {again:?}");
        assert_eq!(read(&project, name), fixed, "{name} is changed again");
        insta::assert_snapshot!(name.trim_end_matches(".py"), format!("safe:\n{safe}\nall:\n{all}"));
    }
}

/// What a page says of its rule's fix is what the rule offers on its programs, and fixing those leaves nothing to fix.
#[test]
fn pages_say_what_fixes_there_are() {
    let mut wrong = Vec::new();
    for page in registry() {
        let code = page.code.to_string();
        let (mut safe, mut bold) = (0, 0);
        for shown in shown(page).unwrap() {
            let at = shown.place();
            let program = shown.program;
            if program.is_silent() {
                continue;
            }
            let project = Project::new(&[]);
            for mut file in program.files {
                // What is announced would hold on to lines that go.
                let lines =
                    file.text.lines().map(|line| line.split("  # error: [").next().unwrap_or_default());
                file.text = lines.collect::<Vec<_>>().join("\n") + "\n";
                project.write(&file.name, file.bytes());
            }
            let options = program.options.join(" ");
            let run = |more: &str| {
                let run = project
                    .run(&format!("check --extend-select {code} {options} --output-format json {more} ."));
                let found: Vec<Value> = serde_json::from_str(&run.stdout).unwrap_or_default();
                (found, run.stderr)
            };
            let (found, _) = run("");
            for finding in found.iter().filter(|f| f["code"] == code.as_str()) {
                match finding["fix"]["applicability"].as_str() {
                    Some("safe") => safe += 1,
                    Some("unsafe") => bold += 1,
                    _ => {}
                }
            }
            if found.iter().all(|f| f["fix"].is_null()) {
                continue;
            }
            let (_, said) = run("--fix --unsafe-fixes");
            let (left, more) = run("--fix --unsafe-fixes");
            if said.contains("rror") || more.contains("Fixed") {
                wrong.push(format!("{at}: {said}{more}"));
            }
            let known: Vec<&str> = found.iter().filter_map(|f| f["code"].as_str()).collect();
            for finding in left.iter().filter(|f| !known.contains(&f["code"].as_str().unwrap_or_default())) {
                wrong.push(format!("{at}: fixing it brings {} {}", finding["code"], finding["message"]));
            }
        }
        let kind = match (safe > 0, bold > 0) {
            (false, false) => FixKind::None,
            (true, false) => FixKind::Safe,
            (false, true) => FixKind::Unsafe,
            (true, true) => FixKind::Sometimes,
        };
        if kind != page.fix {
            wrong.push(format!(
                "{}: its fixes are `{}`, not `{}` ({safe} safe, {bold} unsafe)",
                page.slug(),
                kind.name(),
                page.fix.name()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn safe_fixes_are_applied_and_unsafe_ones_are_counted() {
    let project = Project::new(&[("a.py", BOTH)]);
    let run = project.run("check --isolated .");
    assert!(
        run.stdout.contains("[*] 1 fixable with `--fix` (1 more with `--unsafe-fixes`)."),
        "{}",
        run.stdout
    );
    assert_eq!(run.stdout.matches("[*] uncalled").count(), 1, "{}", run.stdout);
    assert!(
        run.stdout.contains("    + device = \"cuda\" if torch.cuda.is_available() else"),
        "{}",
        run.stdout
    );
    let run = project.run("check --isolated --unsafe-fixes .");
    assert!(run.stdout.contains("[*] 2 fixable with `--fix --unsafe-fixes`."), "{}", run.stdout);
    let run = project.run("check --isolated --fix .");
    assert!(run.stdout.contains("Fixed 1 finding."), "{}", run.stdout);
    assert_eq!(run.code, Some(1));
    let text = read(&project, "a.py");
    assert!(text.contains(CALLED) && !text.contains("map_location"), "{text}");
    let run = project.run("check --isolated --fix --unsafe-fixes .");
    assert_eq!((run.code, run.stdout.contains("No findings")), (Some(0), true), "{run:?}");
    assert!(read(&project, "a.py").contains(TO_CPU));
}

#[test]
fn concise_lines_mark_what_fix_mends() {
    let project = Project::new(&[("a.py", BOTH)]);
    let lines =
        |flags: &str| project.run(&format!("check --isolated --output-format concise {flags} .")).stdout;
    let marked = |text: &str| {
        text.lines().filter(|l| l.contains(": SD103 [*] ") || l.contains(": SD105 [*] ")).count()
    };
    assert_eq!((marked(&lines("")), marked(&lines("--unsafe-fixes"))), (1, 2));
}

#[test]
fn a_diff_changes_nothing() {
    let project = Project::new(&[("a.py", BOTH)]);
    let run = project.run("check --isolated --diff .");
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), "Would fix 1 finding.\n"), "{run:?}");
    assert!(run.stdout.starts_with("--- a.py\n+++ a.py\n@@ "), "{}", run.stdout);
    assert!(run.stdout.contains("\n-device = ") && run.stdout.contains("\n+device = "), "{}", run.stdout);
    assert_eq!(read(&project, "a.py"), BOTH);
    assert_eq!(project.run("check --isolated --diff --exit-zero .").code, Some(0));
    let clean = Project::new(&[("a.py", "x = 1\n")]);
    let run = clean.run("check --isolated --diff .");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""));
}

#[test]
fn fix_only_reports_nothing() {
    let project = Project::new(&[("a.py", BOTH)]);
    let run = project.run("check --isolated --fix-only .");
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", "Fixed 1 finding.\n"));
    assert!(read(&project, "a.py").contains(CALLED));
}

#[test]
fn standard_input_comes_back_fixed() {
    let project = Project::new(&[]);
    let run = project.run_with("check --isolated --fix --output-format concise -", BOTH.as_bytes(), &[]);
    assert_eq!(run.stdout, BOTH.replace("is_available else", "is_available() else"));
    assert!(run.stderr.contains("SD105") && run.stderr.contains("Fixed 1 finding."), "{}", run.stderr);
    assert_eq!(run.code, Some(1));
    let clean = project.run_with("check --isolated --fix -", b"x = 1\r\n", &[]);
    assert_eq!((clean.stdout.as_str(), clean.code), ("x = 1\r\n", Some(0)));
    let wrong = project.run_with("check --isolated --fix -", b"x = (\n", &[]);
    assert_eq!((wrong.stdout.as_str(), wrong.code), ("x = (\n", Some(1)));
    let diff = project.run_with("check --isolated --diff -", BOTH.as_bytes(), &[]);
    assert!(diff.stdout.starts_with("--- -\n+++ -\n"), "{}", diff.stdout);
}

#[test]
fn the_configuration_says_what_is_fixed() {
    let project =
        Project::new(&[("a.py", BOTH), ("samedevice.toml", "fix = true\nunfixable = [\"SD103\"]\n")]);
    let run = project.run("check .");
    assert!(!run.stdout.contains("[*] "), "{}", run.stdout);
    assert_eq!(read(&project, "a.py"), BOTH);
    project.write("samedevice.toml", "fix = true\nunsafe-fixes = true\nfixable = [\"SD105\"]\n");
    project.run("check --no-fix .");
    assert_eq!(read(&project, "a.py"), BOTH);
    project.run("check .");
    let text = read(&project, "a.py");
    assert!(text.contains(TO_CPU) && !text.contains(CALLED), "{text}");
    project.write("samedevice.toml", "unfixable = [\"SD1\"]\nfixable = [\"SD103\"]\n");
    project.run("check --fix .");
    assert!(read(&project, "a.py").contains(CALLED));
}

#[test]
fn bytes_that_are_not_fixed_stay_as_they_are() {
    let project = Project::new(&[]);
    let text =
        format!("# -*- coding: latin-1 -*-\n# \u{e9}\n{BOTH}\tif_tab = 1\n").replace("\tif_tab", "if_tab");
    let crlf = text.replace('\n', "\r\n");
    let latin: Vec<u8> = crlf.chars().map(|c| u8::try_from(c).unwrap()).collect();
    project.write("latin.py", &latin);
    project.write("mark.py", format!("\u{feff}{BOTH}"));
    project.write("end.py", BOTH.trim_end());
    project.run("check --isolated --fix --unsafe-fixes .");
    let expected =
        crlf.replace("is_available else", "is_available() else").replace("torch.load(\"model.pt\")", TO_CPU);
    let expected: Vec<u8> = expected.chars().map(|c| u8::try_from(c).unwrap()).collect();
    assert_eq!(bytes(&project, "latin.py"), expected);
    assert!(bytes(&project, "mark.py").starts_with("\u{feff}import torch\n".as_bytes()));
    assert!(read(&project, "mark.py").contains(TO_CPU));
    assert!(read(&project, "end.py").ends_with("map_location=\"cpu\"))"));
}

#[test]
fn an_import_has_the_files_line_ends() {
    let text =
        "\"\"\"Errors.\"\"\"\r\n\r\ndef is_oom(error):\r\n    return \"out of memory\" in str(error)\r\n";
    let project = Project::new(&[("a.py", text)]);
    project.run("check --isolated --fix --unsafe-fixes .");
    assert_eq!(
        read(&project, "a.py"),
        "\"\"\"Errors.\"\"\"\r\n\r\nimport torch\r\n\r\n\r\ndef is_oom(error):\r\n    return isinstance(error, torch.OutOfMemoryError)\r\n"
    );
}

#[test]
fn files_that_are_not_python_are_left_alone() {
    let text = format!("{BOTH}\ndef (:\n");
    let project = Project::new(&[("a.py", &text)]);
    project.run("check --isolated --fix --unsafe-fixes .");
    assert_eq!(read(&project, "a.py"), text);
}

#[cfg(unix)]
#[test]
fn permissions_and_links_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let project = Project::new(&[("real/a.py", BOTH), ("locked/b.py", BOTH)]);
    let real = project.root().join("real/a.py");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o750)).unwrap();
    fs::create_dir(project.root().join("links")).unwrap();
    symlink("../real/a.py", project.root().join("links/a.py")).unwrap();
    project.run("check --isolated --fix links");
    assert!(read(&project, "real/a.py").contains(CALLED));
    assert!(fs::symlink_metadata(project.root().join("links/a.py")).unwrap().is_symlink());
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o750);
    let locked = project.root().join("locked/b.py");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o440)).unwrap();
    let run = project.run("check --isolated --fix locked");
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("cannot write `locked/b.py`: it is read-only"), "{}", run.stderr);
    assert_eq!(read(&project, "locked/b.py"), BOTH);
    let rest: Vec<_> = fs::read_dir(project.root().join("real")).unwrap().collect();
    assert_eq!(rest.len(), 1, "a temporary file is left");
}

#[test]
fn a_file_that_has_changed_meanwhile_is_not_written() {
    let project = Project::new(&[("a.py", BOTH)]);
    let path = project.root().join("a.py");
    let error = samedevice::fix::write::replace(&path, b"what was read", b"what was made").unwrap_err();
    assert!(error.to_string().contains("it has changed since it was read"), "{error}");
    assert_eq!(read(&project, "a.py"), BOTH);
    samedevice::fix::write::replace(&path, BOTH.as_bytes(), b"x = 1\n").unwrap();
    assert_eq!(read(&project, "a.py"), "x = 1\n");
}

#[test]
fn an_input_is_no_place_for_the_report() {
    let project = Project::new(&[("a.py", BOTH)]);
    let run = project.run("check --isolated --fix --output-file a.py .");
    assert_eq!((run.code, read(&project, "a.py").as_str()), (Some(2), BOTH), "{run:?}");
}

/// After the first fix another mismatch is on the way of the same call, and that one has none.
#[test]
fn what_goes_wrong_further_on_is_no_error_of_a_fix() {
    let table = r#"import torch


class Table:
    def __init__(self, n):
        self.rows = torch.eye(n)
        self.ways = torch.eye(n)


class Reader:
    def pick(self, batch, table):
        index = batch["index"]
        rows = table.rows[index]
        ways = table.ways.view(-1, 3)
        return torch.cat([rows[:, 1:], ways + 0], dim=-1)

    def step(self, batch, table):
        return self.pick(batch, table)
"#;
    let run = r#"import torch
from table import Reader, Table

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(Reader().step({"index": torch.zeros(3, dtype=torch.long).to(device)}, Table(3)))
"#;
    let project = Project::new(&[("table.py", table), ("run.py", run)]);
    let fixed = project.run("check --isolated --fix --unsafe-fixes .");
    assert!(fixed.code == Some(1) && !fixed.stderr.contains("internal error"), "{fixed:?}");
    assert!(fixed.stdout.contains("SD201"), "{fixed:?}");
}
