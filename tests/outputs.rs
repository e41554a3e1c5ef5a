//! Several outputs in one run, and the formats that other programs read.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use std::collections::BTreeSet;

use serde_json::Value;
use support::Project;
#[cfg(target_os = "linux")]
use support::on_a_terminal;

const TRAIN: &str = "\
import torch
from helper import mask

rows = torch.zeros(3, device=\"cuda\")
print(rows + mask(3))
rows = torch.zeros(3, device=\"cuda\")
";

fn project() -> Project {
    Project::new(&[
        ("train.py", TRAIN),
        ("helper.py", "import torch\n\n\ndef mask(n):\n    return torch.ones(n)\n"),
        ("sub/other.py", "import torch\n\ntorch.ones(3).cuda()\n"),
    ])
}

fn read(project: &Project, file: &str) -> String {
    std::fs::read_to_string(project.root().join(file)).unwrap()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn each_output_is_what_a_run_for_it_alone_writes() {
    let project = project();
    let run = project.run("check --output sarif=log.sarif --output concise --output junit=tests.xml");
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""), "{run:?}");
    for (format, text) in [
        ("concise", run.stdout),
        ("sarif", read(&project, "log.sarif")),
        ("junit", read(&project, "tests.xml")),
    ] {
        assert_eq!(project.run(&format!("check --output-format {format}")).stdout, text, "{format}");
    }
    assert_eq!(project.run("check --output json=-").stdout, project.run("check --output json").stdout);
    let found = project.run("check --output-format json -o found.json");
    assert_eq!((found.code, found.stdout.as_str()), (Some(1), ""));
    assert_eq!(read(&project, "found.json"), project.run("check --output json").stdout);
}

#[test]
fn outputs_that_contradict_each_other_are_one_error() {
    let project = project();
    for (arguments, part) in [
        ("--output full --output concise", "two `--output` flags write to standard output"),
        ("--output sarif=x --output json=./x", "two `--output` flags write to the same file, `x`"),
        ("--output sarif=x --output-format full", "`--output` cannot be used with `--output-format`"),
        ("--output sarif -o x", "`--output` cannot be used with `--output-file`"),
        ("--output girhub", "there is no format `girhub`; did you mean `github`?"),
        ("--output x", "the formats are full, concise, grouped, "),
        ("--output sarif=", "the file name after `=` is missing"),
        ("--output concise --output sarif=train.py", "`train.py` is an input of this run"),
    ] {
        let run = project.run(&format!("check {arguments}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments}: {run:?}");
        assert_eq!(run.stderr.matches("error:").count(), 1, "{arguments}: {run:?}");
        assert!(run.stderr.contains(part), "{arguments}: {run:?}");
        assert!(!project.root().join("x").exists(), "{arguments}");
    }
    assert_eq!(read(&project, "train.py"), TRAIN);
}

#[test]
fn flags_outrank_the_environment() {
    let project = project();
    let env = [("SAMEDEVICE_OUTPUT_FORMAT", "github"), ("SAMEDEVICE_OUTPUT_FILE", "found.txt")];
    let run = project.run_with("check", b"", &env);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert!(read(&project, "found.txt").starts_with("::error "));
    std::fs::remove_file(project.root().join("found.txt")).unwrap();
    let run = project.run_with("check --output concise", b"", &env);
    assert!(run.stdout.starts_with("helper.py:") || run.stdout.starts_with("sub/other.py:"), "{run:?}");
    assert!(!project.root().join("found.txt").exists());
    let run = project.run_with("check --isolated", b"", &[("SAMEDEVICE_CONFIG", "nope.toml")]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let run = project.run_with("check", b"", &[("SAMEDEVICE_CONFIG", "nope.toml")]);
    assert!(run.code == Some(2) && run.stderr.contains("nope.toml"), "{run:?}");
}

#[test]
fn groups_have_the_name_of_their_file_once() {
    let run = project().run("check --output-format grouped");
    let text = run.stdout;
    for file in ["sub/other.py", "train.py"] {
        assert_eq!(text.lines().filter(|line| *line == file).count(), 1, "{text}");
    }
    assert!(text.contains("\n  3:1  error SD101 ") && text.contains("Found "), "{text}");
    assert!(!project().run("check --output-format grouped --quiet").stdout.contains("Found"));
}

#[test]
fn git_lab_reads_paths_from_its_clone_and_each_fingerprint_once() {
    let project = project();
    let issues = json(&project.run("check --output-format gitlab").stdout);
    let issues = issues.as_array().unwrap();
    let prints: BTreeSet<&str> = issues.iter().map(|issue| issue["fingerprint"].as_str().unwrap()).collect();
    assert!(issues.len() >= 2 && prints.len() == issues.len(), "{issues:?}");
    for issue in issues {
        assert!(["info", "minor", "major"].contains(&issue["severity"].as_str().unwrap()), "{issue}");
        assert!(issue["location"]["positions"]["begin"]["line"].is_u64(), "{issue}");
        let code = issue["check_name"].as_str().unwrap();
        assert!(issue["description"].as_str().unwrap().starts_with(code), "{issue}");
    }
    // A job may work in a folder of the clone.
    let clone = project.home().to_str().unwrap().to_owned();
    let run = project.run_with("check --output-format gitlab", b"", &[("CI_PROJECT_DIR", &clone)]);
    let path = json(&run.stdout)[0]["location"]["path"].as_str().unwrap().to_owned();
    assert!(path.starts_with("project/"), "{path}");
    assert_eq!(Project::new(&[("a.py", "")]).run("check --output-format gitlab").stdout, "[]\n");
}

#[test]
fn a_failed_test_has_a_name_of_its_own() {
    let text = project().run("check --output-format junit").stdout;
    assert!(
        text.contains("<testcase name=\"SD101 unguarded-cuda (3:1)\" classname=\"sub/other.py\">"),
        "{text}"
    );
    let names: Vec<&str> = text.lines().filter(|line| line.contains("<testcase")).collect();
    assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "{text}");
    let broken = Project::new(&[("a.py", "x = (\n")]).run("check --output-format junit").stdout;
    assert!(
        broken.contains("tests=\"1\" failures=\"0\" errors=\"1\"") && broken.contains("<error "),
        "{broken}"
    );
    let clean = Project::new(&[("a.py", "")]).run("check --output-format junit").stdout;
    assert!(clean.contains("tests=\"1\" failures=\"0\" errors=\"0\""), "{clean}");
}

#[test]
fn reviewdog_reads_bytes_and_the_page_of_the_rule() {
    let project = Project::new(&[("a.py", "import torch\n\nx = [\"ü\", torch.ones(3).cuda()]\n")]);
    let document = json(&project.run("check --output-format rdjson").stdout);
    let found = &document["diagnostics"][0];
    assert_eq!(found["location"]["path"], "a.py");
    let line = "x = [\"ü\", ";
    assert_eq!(found["location"]["range"]["start"]["column"], line.len() + 1, "{found}");
    assert!(found["code"]["url"].as_str().unwrap().ends_with("/SD101-unguarded-cuda.md"), "{found}");
    assert_eq!(found["severity"], "ERROR");
}

#[test]
fn code_scanning_shows_the_way_of_a_tensor() {
    let log = json(&project().run("check --output-format sarif --select SD201").stdout);
    let result = &log["runs"][0]["results"][0];
    let steps = result["codeFlows"][0]["threadFlows"][0]["locations"].as_array().unwrap();
    let place = |step: &Value| {
        let place = &step["location"]["physicalLocation"];
        (place["artifactLocation"]["uri"].as_str().unwrap().to_owned(), place["region"]["startLine"].clone())
    };
    assert!(steps.len() > 1, "{result}");
    assert_eq!(place(steps.last().unwrap()), ("train.py".to_owned(), Value::from(5)), "{result}");
    assert!(steps.iter().any(|step| place(step).0 == "helper.py"), "{result}");
}

#[cfg(target_os = "linux")]
#[test]
fn codes_are_links_in_terminals_that_show_them() {
    let project = project();
    let link = "\u{1b}]8;;https://";
    for format in ["full", "concise", "grouped"] {
        let arguments = format!("check --output-format {format}");
        let forced = [("FORCE_HYPERLINK", "1"), ("TERM", "xterm-256color")];
        let Some(shown) = on_a_terminal(&project, &arguments, &forced) else { return };
        assert!(shown.contains(link) && shown.contains("SD101"), "{shown:?}");
        let plain = on_a_terminal(&project, &arguments, &[("FORCE_HYPERLINK", "0")]).unwrap();
        assert!(!plain.contains(link), "{plain:?}");
        let colorless = on_a_terminal(&project, &format!("{arguments} --color never"), &forced).unwrap();
        assert!(!colorless.contains(link), "{colorless:?}");
        let run = project.run_with(&format!("{arguments} --color always"), b"", &forced);
        assert!(!run.stdout.contains(link), "a pipe has none: {run:?}");
    }
}

#[test]
fn a_missing_path_is_never_all_clear() {
    let project = Project::new(&[("good.py", "x = 1\n")]);
    for format in ["full", "grouped"] {
        let run = project.run(&format!("check --output-format {format} nope.py good.py"));
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains("error: `nope.py`: no such file or directory"), "{run:?}");
        assert!(run.stdout.starts_with("No findings: 1 file checked"), "{run:?}");
        let run = project.run(&format!("check --output-format {format} nope.py"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    }
}
