//! What a run says of what it has not looked at, and `--strict`.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use support::Project;

/// Larger than what is read.
fn large(project: &Project, path: &str) {
    let file = std::fs::File::create(project.root().join(path)).unwrap();
    file.set_len((32 << 20) + 1).unwrap();
}

#[test]
fn what_was_not_checked_is_counted_and_named() {
    let project =
        Project::new(&[("a.py", "x = 1\n"), ("n/x.py", ""), (".gitignore", "out"), ("out/x.py", "")]);
    ["n/b.ipynb", "n/c.py", "out/d.py"].iter().for_each(|path| large(&project, path));
    let run = project.run("check");
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(0), "Not checked: 2 files too large (--verbose lists them)\n")
    );
    assert_eq!(run.stdout, "No findings: 2 files checked.\n");
    let run = project.run("check --verbose");
    assert!(run.stderr.contains("not checked: `n/b.ipynb`: it is larger than 32 MiB\n"), "{run:?}");
    let run = project.run("check --output-format json n");
    assert_eq!(run.stdout, "[]\n", "what machines read is as it was");
    let sarif = project.run("check --output-format sarif").stdout;
    assert!(sarif.contains("\"text\": \"not checked: `n/b.ipynb`: it is larger than 32 MiB\""), "{sarif}");
    assert_eq!(project.run("check --quiet").stderr, "");
    assert_eq!(project.run("check --extend-exclude n").stdout, "No findings: 1 file checked.\n");
}

#[test]
fn strict_fails_where_something_was_not_checked() {
    let project = Project::new(&[("a.py", "x = 1\n")]);
    large(&project, "n.py");
    assert_eq!(project.run("check --strict a.py").code, Some(0));
    let run = project.run("check --strict --quiet --exit-zero");
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(
        run.stderr
            .starts_with("Not checked: 1 file too large (--verbose lists them)\nerror: `strict` is set"),
        "{run:?}"
    );
    project.write("samedevice.toml", "strict = true\n");
    assert_eq!(project.run("check").code, Some(2));
    assert_eq!(project.run("check --extend-exclude n.py").code, Some(0));
}

#[test]
fn functions_that_are_too_complex_are_counted() {
    let line = "    x = x + torch.ones(2)\n";
    let program = format!("import torch\n\n\ndef long(x):\n{}    return x\n", line.repeat(6_000));
    let project = Project::new(&[("a.py", &program)]);
    let run = project.run("check --verbose");
    assert!(run.stderr.contains("Not checked: 1 function too complex\n"), "{}", run.stderr);
    assert!(
        run.stderr.contains("not checked: `a.py:4:5`: function `long` is too complex\n"),
        "{}",
        run.stderr
    );
    assert_eq!((run.code, project.run("check --strict").code), (Some(0), Some(2)));
}

#[test]
fn files_that_are_too_large_are_counted_and_told_where_they_are_named() {
    let project = Project::new(&[("a.py", "x = 1\n")]);
    large(&project, "large.py");
    let run = project.run("check --verbose");
    assert!(run.stderr.contains("Not checked: 1 file too large\n"), "{run:?}");
    assert!(run.stderr.contains("not checked: `large.py`: it is larger than 32 MiB\n"), "{run:?}");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "No findings: 1 file checked.\n"));
    let run = project.run("check --output-format concise large.py");
    assert!(run.stdout.starts_with("large.py:1:1: error: SD003 "), "{run:?}");
}

#[test]
fn projects_that_are_too_large_as_a_whole_are_named() {
    let project =
        Project::new(&[("pyproject.toml", ""), ("a.py", "import torch\n\ntorch.zeros(3).cuda()\n")]);
    for n in 0..2001 {
        project.write(&format!("pkg/m{n}.py"), "");
    }
    let run = project.run("check --output-format concise a.py");
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(0), "Not checked: 1 project too large for calls between files (--verbose lists them)\n")
    );
    assert_eq!(project.run("check pkg").stderr, "", "nothing was asked of the whole");
}

#[test]
fn that_everything_is_excluded_is_told() {
    let project = Project::new(&[("build/lib/a.py", "x = 1\n"), ("b.txt", "")]);
    let run = project.run("check");
    let told = "Not checked: any file, because all Python files are excluded (--verbose lists them)\n";
    assert_eq!((run.code, run.stderr.as_str(), run.stdout.as_str()), (Some(0), told, ""));
    let run = project.run("check --verbose --strict");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("`build/lib/a.py`: excluded"), "{run:?}");
    project.write(".gitignore", "c.py\n");
    project.write("c.py", "");
    assert!(project.run("check --exclude build").stderr.contains("all Python files are excluded"));
    // Who hands over what is excluded, as hooks do, has decided so.
    let run = project.run("check --strict --force-exclude build/lib/a.py");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), "warning: no Python files found\n"));
}

#[test]
fn nothing_is_all_clear_beside_an_error() {
    let project = Project::new(&[("a.py", "x = 1\n")]);
    assert_eq!(project.run("check").stdout, "No findings: 1 file checked.\n");
    let run = project.run("check a.py nope.py");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), "No findings: 1 file checked.\n"));
    assert_eq!(project.run("check nope.py").stdout, "");
}

#[test]
fn only_findings_that_are_severe_enough_fail() {
    let project = Project::new(&[]);
    project.write("a.py", b"\xff");
    for (severity, fails) in [("error", [1, 1, 1]), ("warning", [0, 1, 1]), ("info", [0, 0, 1])] {
        project.write("samedevice.toml", format!("severity = {{ SD003 = '{severity}' }}\n"));
        let codes = ["error", "warning", "info"].map(|level| {
            let run = project.run(&format!("check --fail-on-severity {level}"));
            assert!(run.stdout.contains("SD003"), "it is shown: {run:?}");
            run.code
        });
        assert_eq!(codes, fails.map(Some), "{severity}");
    }
    project.write("samedevice.toml", "fail-on-severity = 'error'\nseverity = { SD003 = 'warning' }\n");
    assert_eq!(project.run("check").code, Some(0));
    assert_eq!(project.run("check --fail-on-severity warning").code, Some(1), "flags go before files");
    let run = project.run("check --fail-on-severity fatal");
    assert!(run.code == Some(2) && run.stderr.contains("error"), "{run:?}");
    project.write("samedevice.toml", "fail-on-severity = 'warn'\n");
    let run = project.run("check");
    assert!(run.stderr.contains("samedevice.toml:1:20") && run.stderr.contains("`warning`?"), "{run:?}");
}
