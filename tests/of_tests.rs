//! What is different in the tests of a project: marks that say what they need, and how little they make.

mod support;

use support::Project;

const MARKS: &str = "import pytest\nimport torch\n\nneeds = pytest.mark.skipif(not torch.cuda.is_available(), reason=\"a device\")\n";
const MARKED: &str = "import torch\n\nfrom .marks import needs\n\n\n@needs\ndef test_zeros():\n    assert torch.zeros(3, device=\"cuda\").sum() == 0\n";
const SUMS: &str = "\
import torch


def test_steps():
    model, losses = torch.nn.Linear(8, 8), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        loss = model(torch.rand(2, 8)).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    assert losses


def test_that_it_goes_on():
    device = \"cuda\" if torch.cuda.is_available() else \"cpu\"
    for rows in (1, 2):
        try:
            print(torch.nn.Linear(8, 3).to(device)(torch.rand(rows, 8, device=device)).sum())
        except Exception:
            continue
";

/// The codes that are told of a file.
fn codes(project: &Project, what: &str) -> Vec<String> {
    let run = project.run(&format!(
        "check --isolated --min-confidence low --fail-on-severity info --output-format concise {what}"
    ));
    let code = |line: &str| line.split(" SD").nth(1).map(|rest| format!("SD{}", &rest[..3]));
    run.stdout.lines().filter(|line| line.contains(".py:")).filter_map(code).collect()
}

#[test]
fn marks_of_other_files_are_asked() {
    let other = MARKED.replace("needs", "slow");
    let project = Project::new(&[("tests/test_it.py", MARKED), ("tests/test_more.py", &other)]);
    project.write("tests/marks.py", format!("{MARKS}slow = pytest.mark.slow\n"));
    assert!(codes(&project, "tests/test_it.py").is_empty());
    assert_eq!(codes(&project, "tests/test_more.py"), ["SD101"]);
}

#[test]
fn tests_need_little_memory() {
    let project = Project::new(&[("tests/test_steps.py", SUMS), ("steps.py", SUMS)]);
    assert!(codes(&project, "tests").is_empty());
    let elsewhere = codes(&project, "steps.py");
    assert!(
        elsewhere.contains(&"SD505".to_owned()) && elsewhere.contains(&"SD503".to_owned()),
        "{elsewhere:?}"
    );
}
