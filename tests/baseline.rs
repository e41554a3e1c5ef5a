//! Baselines: what a project has accepted is not told, and what is new is, whatever else changes in the files.
#![allow(clippy::expect_used, reason = "tests may panic")]

mod support;

use std::fs;

use support::{Project, Run};

const MARK: (&str, &str) = ("pyproject.toml", "[project]\nname = \"x\"\n");
const ONE: &str = "import torch\n\nnet = torch.nn.Linear(2, 2).cuda()\n";
const TWO: &str = "import torch\n\n\ndef first(x):\n    y = x.cuda()\n    return y\n\n\ndef second(x):\n    y = x.cuda()\n    return y\n\n\nfirst(torch.ones(2))\nsecond(torch.ones(2))\n";

/// Runs over these paths with a baseline.
fn check(project: &Project, more: &str) -> Run {
    project.run(&format!(
        "check --select SD101,SD102,SD202 --output-format concise --baseline known.json {more}"
    ))
}

/// The rows that are told.
fn rows(run: &Run) -> Vec<&str> {
    run.stdout
        .lines()
        .filter(|line| line.contains(".py:"))
        .map(|line| line.split(':').nth(1).unwrap_or(""))
        .collect()
}

fn with_baseline(text: &str) -> Project {
    let project = Project::new(&[MARK, ("a.py", text)]);
    let run = check(&project, "--update-baseline");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stderr.contains("known.json: "), "{run:?}");
    project
}

fn document(project: &Project) -> serde_json::Value {
    let text = fs::read_to_string(project.root().join("known.json")).expect("a baseline");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn what_is_accepted_is_not_told_and_what_is_new_is() {
    let project = with_baseline(ONE);
    let run = check(&project, "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    let full = project.run("check --select SD101 --baseline known.json");
    assert_eq!(full.stdout, "No findings: 1 file checked; 1 known place in the baseline.\n");
    project.write("a.py", format!("{ONE}other = torch.zeros(9).cuda()\n"));
    let run = check(&project, "");
    assert_eq!((run.code, rows(&run)), (Some(1), vec!["4"]), "{run:?}");
}

#[test]
fn moved_functions_inserted_lines_and_formatting_change_nothing() {
    let project = with_baseline(TWO);
    let (head, rest) = TWO.split_once("def first").expect("a function");
    let (first, second) = rest.split_once("def second").expect("a function");
    let (second, end) = second.split_once("\n\n\n").expect("the end");
    let moved = format!("{head}# new\n\n\ndef second{second}\n\n\ndef first{first}{end}");
    project.write("a.py", moved.replace("x.cuda()", "(\n        x.cuda(\n        )\n    )"));
    let run = check(&project, "-v");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    assert!(!run.stderr.contains("no longer found"), "{run:?}");
}

#[test]
fn one_more_of_equal_ones_is_new() {
    let project = with_baseline(TWO);
    let third = "\n\ndef third(x):\n    y = x.cuda()\n    return y\n\n\nthird(torch.ones(2))\n";
    project.write("a.py", format!("{TWO}{third}"));
    assert_eq!(rows(&check(&project, "")).len(), 1);
}

#[test]
fn what_is_gone_is_said_and_an_update_only_shrinks() {
    let project = with_baseline(&format!("{ONE}other = torch.zeros(9).cuda()\n"));
    project.write("a.py", format!("{ONE}new = torch.ones(5).cuda()\n"));
    let run = check(&project, "-v");
    assert_eq!((run.code, rows(&run)), (Some(1), vec!["4"]));
    assert!(
        run.stderr.contains("known.json: 1 place no longer found; remove them with --update-baseline"),
        "{run:?}"
    );
    // The first place is accepted: the message says that this is another one, and no help shows the old line.
    assert!(run.stdout.contains("SD101 another place of the same cause: "), "{run:?}");
    let full = project.run("check --isolated --baseline known.json").stdout;
    assert!(!full.contains("help:"), "{full}");
    assert!(run.stderr.contains("a.py: SD101 `"), "{run:?}");
    let run = check(&project, "--update-baseline");
    assert_eq!((run.code, rows(&run)), (Some(1), vec!["4"]), "{run:?}");
    let before = document(&project);
    let run = check(&project, "--update-baseline=grow");
    assert_eq!((run.code, rows(&run)), (Some(0), vec![]), "{run:?}");
    assert_ne!(document(&project), before);
    assert_eq!(check(&project, "").code, Some(0));
}

#[test]
fn what_was_not_checked_stays() {
    let project = with_baseline(ONE);
    let before = document(&project);
    project.write("b.py", "x = 1\n");
    check(&project, "b.py --update-baseline");
    assert_eq!(document(&project), before, "another file");
    project.run("check --select SD2 --baseline known.json --update-baseline");
    assert_eq!(document(&project), before, "another rule");
    project.write("a.py", format!("if\n{ONE}"));
    let run = check(&project, "--select SD001,SD101 --update-baseline");
    assert_eq!(document(&project), before, "a broken file");
    assert!(run.stdout.contains("SD001"), "{run:?}");
    fs::remove_file(project.root().join("a.py")).expect("a file");
    check(&project, "b.py --update-baseline");
    assert_eq!(document(&project)["findings"], serde_json::json!({}), "a file that is gone");
}

const HELPER: (&str, &str) =
    ("helper.py", "import torch\n\n\ndef add(x):\n    return x + torch.ones(2, device=\"cuda\")\n");
const CALLER: &str = "import torch\n\nfrom helper import add\n\nif torch.cuda.is_available():\n    add(torch.zeros(2, device=\"cpu\").sum(0, keepdim=True))\n";

#[test]
fn one_of_a_whole_run_holds_for_a_run_over_one_file() {
    let files = [MARK, HELPER, ("a.py", CALLER), ("b.py", CALLER)];
    let project = Project::new(&files);
    let all = check(&project, "--update-baseline");
    assert_eq!(all.code, Some(0), "{all:?}");
    for path in [".", "a.py", "b.py", "helper.py"] {
        let run = check(&project, &format!("-v {path}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{path}: {run:?}");
        assert!(!run.stderr.contains("no longer"), "{path}: {run:?}");
    }
}

#[test]
fn the_configuration_names_it_and_the_command_line_goes_first() {
    let config = "[tool.samedevice]\nbaseline = \"known.json\"\n";
    let project = Project::new(&[("pyproject.toml", config), ("lib/a.py", ONE)]);
    let run = project.run("check");
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(
        run.stderr.contains("the baseline `known.json` does not exist; create it with `--update-baseline`"),
        "{run:?}"
    );
    assert_eq!(project.run("check --update-baseline lib").code, Some(0));
    assert_eq!(project.run("check lib").code, Some(0));
    assert_eq!(project.run("check --no-baseline lib").code, Some(1));
    assert_eq!(document(&project)["findings"]["lib/a.py"][0]["code"], "SD101");
    let run = project.run("check --isolated --update-baseline");
    assert!(run.code == Some(2) && run.stderr.contains("`--baseline FILE`"), "{run:?}");
}

#[test]
fn a_file_of_another_kind_is_not_overwritten() {
    let project = Project::new(&[MARK, ("a.py", ONE), ("known.json", "{\"mine\": 1}\n")]);
    let run = check(&project, "--update-baseline");
    assert!(run.code == Some(2) && run.stderr.contains("known.json` is not a valid baseline"), "{run:?}");
    assert_eq!(fs::read_to_string(project.root().join("known.json")).expect("a file"), "{\"mine\": 1}\n");
    let run = project.run_with(
        "check --update-baseline --baseline new.json --stdin-filename a.py -",
        ONE.as_bytes(),
        &[],
    );
    assert!(run.code == Some(2) && !project.root().join("new.json").exists(), "{run:?}");
}

#[test]
fn fingerprints_do_not_depend_on_the_working_directory() {
    let project = Project::new(&[("pkg/a.py", "import torch\n\nx = torch.zeros(3).cuda()\n")]);
    std::fs::create_dir(project.root().join(".git")).expect("a folder");
    let prints = |folder: &str| {
        let mut command = project.command(env!("CARGO_BIN_EXE_samedevice"));
        let file = project.root().join("pkg/a.py");
        command.current_dir(project.root().join(folder)).args(["check", "--output-format", "json"]).arg(file);
        let output = command.output().expect("output");
        let all: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        all[0]["fingerprint"].as_str().map(str::to_owned)
    };
    assert!(prints(".").is_some());
    assert_eq!(prints("pkg"), prints("."));
}
