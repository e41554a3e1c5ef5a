//! `--add-ignore`: afterwards nothing is told, no comment is unused, and the program is the same.
#![allow(clippy::expect_used, reason = "tests may panic")]

mod support;

use std::fs;

use support::{Project, Run};

const MARK: (&str, &str) = ("pyproject.toml", "[project]\nname = \"x\"\n");

fn add(project: &Project, more: &str) -> Run {
    project.run(&format!("check --output-format concise --select SD001,SD002,SD1,SD2 {more}"))
}

/// The file after comments were added to it; then nothing is told.
fn added(text: &str, more: &str) -> String {
    let project = Project::new(&[MARK, ("a.py", text)]);
    let run = add(&project, &format!("--add-ignore{more}"));
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stderr.contains("suppression comment"), "{run:?}");
    let again = add(&project, "");
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""), "{again:?}");
    fs::read_to_string(project.root().join("a.py")).expect("a file")
}

#[test]
fn a_comment_goes_to_the_end_of_the_line() {
    let text = "import torch\n\nnet = torch.nn.Linear(2, 2).cuda()   \nprint(net)\n";
    let commented =
        "import torch\n\nnet = torch.nn.Linear(2, 2).cuda()  # samedevice: ignore[SD101]\nprint(net)\n";
    assert_eq!(added(text, ""), commented);
    let reason = commented.replace("[SD101]", "[SD101] runs-on-the-cluster");
    assert_eq!(added(text, "=runs-on-the-cluster"), reason);
}

#[test]
fn a_line_may_end_with_a_string() {
    let text = "import torch\n\ntorch.zeros(2).cuda().name = \"a\"\nprint('b')\n";
    let commented = text.replace("= \"a\"\n", "= \"a\"  # samedevice: ignore[SD101]\n");
    assert_eq!(added(text, ""), commented);
}

#[test]
fn every_place_of_a_cause_gets_one() {
    let text =
        "import torch\n\na = torch.ones(2).cuda()\nb = torch.ones(2).cuda()\r\nc = torch.ones(2).cuda()";
    let lines = added(text, "");
    assert_eq!(lines.matches("  # samedevice: ignore[SD101]").count(), 3, "{lines}");
    assert!(lines.contains("]\r\nc") && lines.ends_with(']'), "{lines}");
}

#[test]
fn comments_that_are_there_are_kept() {
    let text = "import torch\n\na = torch.ones(2).cuda()  # the weights\nb = torch.zeros(2).numpy  # samedevice: ignore[SD5]\n";
    assert!(added(&text.replace("[SD5]", ""), "").contains("# the weights  # samedevice: ignore[SD101]\n"));
    let mixed = "import torch\n\nx = torch.ones(2, device=\"cuda\") + torch.ones(2)  # samedevice: ignore[SD101] why\n";
    assert!(added(mixed, "").contains("  # samedevice: ignore[SD101, SD201] why\n"));
}

#[test]
fn no_comment_stands_in_a_string_or_behind_a_backslash() {
    let text = "import torch\n\nx = torch.ones(2) \\\n    .cuda()\ny = \"\"\"a\nb\"\"\"; z = torch.ones(2).cuda(); w = f\"\"\"{x}\n{z}\"\"\"\nprint(y)\n";
    let commented = text
        .replace("    .cuda()\n", "    .cuda()  # samedevice: ignore[SD101]\n")
        .replace("{z}\"\"\"\n", "{z}\"\"\"  # samedevice: ignore[SD101]\n");
    assert_eq!(added(text, ""), commented);
}

#[test]
fn what_is_broken_or_accepted_stays() {
    let text = "import torch\n\nx = torch.ones(2).cuda()\n";
    let broken = format!("if\n{text}");
    let project = Project::new(&[MARK, ("a.py", &broken)]);
    let run = add(&project, "--add-ignore");
    assert!(run.code == Some(1) && run.stdout.contains("SD001"), "{run:?}");
    assert_eq!(fs::read_to_string(project.root().join("a.py")).expect("a file"), broken);

    let project = Project::new(&[MARK, ("a.py", text)]);
    add(&project, "--baseline known.json --update-baseline");
    let run = add(&project, "--baseline known.json --add-ignore");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    assert_eq!(fs::read_to_string(project.root().join("a.py")).expect("a file"), text);
    let run = add(&project, "--add-ignore=a#b");
    assert!(run.code == Some(2) && run.stderr.contains("without `#`"), "{run:?}");
}

#[test]
fn a_project_for_cuda_alone_is_suppressed_in_one_run() {
    let text = "import torch\n\nmodel = torch.nn.Linear(2, 2)\nmodel.cuda()\n";
    let files = ["f1.py", "f2.py", "f3.py", "f4.py"].map(|name| (name, text));
    let project = Project::new(&[&[MARK], &files[..]].concat());
    let run = add(&project, "--add-ignore");
    assert!(run.stderr.contains("Added 4 suppression comments to 4 files"), "{run:?}");
    let again = add(&project, "");
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""), "{again:?}");
    // A comment hides its own line, and changes nothing in other files.
    project.write("f4.py", text);
    let again = add(&project, "");
    assert!(again.stdout.starts_with("f4.py:4:6: info: SD101 "), "{again:?}");
}
