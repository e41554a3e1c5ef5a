//! `extend`, and settings on the command line.

mod support;

use support::Project;

/// The line of `--show-settings` that starts like this.
fn setting(project: &Project, arguments: &str, start: &str) -> String {
    let run = project.run(&format!("check --show-settings {arguments}"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{arguments}: {run:?}");
    run.stdout.lines().find(|line| line.starts_with(start)).unwrap_or("none").to_owned()
}

/// Runs with one setting that may have blanks in it.
fn with_setting(project: &Project, setting: &str) -> support::Run {
    let mut command = project.command(env!("CARGO_BIN_EXE_samedevice"));
    command.args(["check", "--show-settings", "--config", setting]);
    support::Run::from(command.output().unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn the_file_counts_before_those_that_it_extends() {
    let project = Project::new(&[
        ("base/all.toml", "strict = true\noom-threshold = 1\nextend-exclude = ['x']\n"),
        ("base/team.toml", "extend = 'all.toml'\noom-threshold = 2\nmax-accelerator-memory = 2\n"),
        ("pyproject.toml", "[tool.samedevice]\nextend = 'base/team.toml'\nmax-accelerator-memory = 3\n"),
        ("off/samedevice.toml", "extend = '../pyproject.toml'\nstrict = false\n"),
    ]);
    assert_eq!(setting(&project, "", "strict"), "strict = true");
    assert_eq!(setting(&project, "", "oom-threshold"), "oom-threshold = 2");
    assert_eq!(setting(&project, "", "max-accelerator"), "max-accelerator-memory = 3");
    assert_eq!(setting(&project, "off", "strict"), "strict = false");
    assert_eq!(setting(&project, "off", "oom-threshold"), "oom-threshold = 2");
    let text = project.run("check --show-settings").stdout;
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("base/all.toml") < at("base/team.toml"), "{text}");
}

#[test]
fn rules_add_up_and_severities_are_decided_by_the_nearer_file() {
    let project = Project::new(&[
        ("base.toml", "ignore = ['SD2']\nseverity = { SD101 = 'off', SD501 = 'info', SD4 = 'off' }\n"),
        (
            "samedevice.toml",
            "extend = 'base.toml'\nextend-select = ['SD203']\nseverity = { SD101 = 'warning' }\n",
        ),
    ]);
    let text = project.run("check --show-settings").stdout;
    for on in ["\"SD203 ", "\"SD101 ", "SD101 = \"warning\"", "SD501 = \"info\""] {
        assert!(text.contains(on), "{on}: {text}");
    }
    for off in ["\"SD201 ", "\"SD401 "] {
        assert!(!text.contains(off), "{off}: {text}");
    }
}

#[test]
fn globs_start_where_their_file_is() {
    let project = Project::new(&[
        ("base.toml", "extend-exclude = ['a/gen/*']\n"),
        ("a/samedevice.toml", "extend = '../base.toml'\nextend-exclude = ['old/*']\n"),
        ("a/gen/x.py", ""),
        ("a/old/y.py", ""),
        ("a/z.py", ""),
    ]);
    assert_eq!(project.files("a"), "a/z.py");
}

#[test]
fn what_cannot_be_extended_is_an_error_at_its_place() {
    for (files, place, message) in [
        (
            vec![("samedevice.toml", "strict = true\nextend = 'nope.toml'\n")],
            "samedevice.toml:2:10",
            "the file `nope.toml` does not exist",
        ),
        (vec![("samedevice.toml", "extend = 'samedevice.toml'\n")], "samedevice.toml:1:10", "forms a cycle"),
        (
            vec![("samedevice.toml", "extend = 'b.toml'\n"), ("b.toml", "\nextend = './samedevice.toml'\n")],
            "b.toml:2:10",
            "cycle: samedevice.toml → b.toml → samedevice.toml",
        ),
        (
            vec![("samedevice.toml", "extend = 'pyproject.toml'\n"), ("pyproject.toml", "[tool.ruff]\n")],
            "samedevice.toml:1:10",
            "has no table `[tool.samedevice]`",
        ),
        (
            vec![("samedevice.toml", "extend = 'b.toml'\n"), ("b.toml", "selct = []\n")],
            "b.toml:1:1",
            "did you mean `select`?",
        ),
        (vec![("samedevice.toml", "extend = 1\n")], "samedevice.toml:1:10", "expects the path of a file"),
    ] {
        let project = Project::new(&files);
        project.write("a.py", "");
        let run = project.run("check");
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        assert!(
            run.stderr.contains(place) && run.stderr.contains(message),
            "{place} {message}: {}",
            run.stderr
        );
        assert_eq!(run.stderr.matches('×').count(), 1, "{run:?}");
    }
}

#[test]
fn settings_on_the_command_line_go_before_files_and_behind_flags() {
    let project = Project::new(&[
        ("samedevice.toml", "strict = true\nseverity = { SD101 = 'info' }\nextend-exclude = ['a']\n"),
        ("other.toml", "oom-threshold = 7\n"),
        ("a/x.py", ""),
        ("b/y.py", ""),
    ]);
    assert_eq!(setting(&project, "--config strict=false", "strict"), "strict = false");
    assert_eq!(setting(&project, "--config strict=false --config strict=true", "strict"), "strict = true");
    assert_eq!(setting(&project, "--config strict=false --strict", "strict"), "strict = true");
    assert_eq!(setting(&project, "--isolated --config strict=true", "strict"), "strict = true");
    assert_eq!(
        setting(&project, "--config other.toml --config strict=true", "oom-threshold"),
        "oom-threshold = 7"
    );
    assert_eq!(
        setting(&project, "--config strict=true --config extend='other.toml'", "oom-threshold"),
        "oom-threshold = 7"
    );
    assert_eq!(project.files("--config extend-exclude=['b']"), "");
    let run = with_setting(&project, "severity = { SD101 = 'off' }");
    assert!(run.code == Some(0) && !run.stdout.contains("\"SD101 "), "{run:?}");
    let run = with_setting(&project, "strict = 'yes'");
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("--config:1:10") && run.stderr.contains("`true` or `false`"), "{run:?}");
    let run = project.run("check --config other.toml --config samedevice.toml");
    assert!(run.code == Some(2) && run.stderr.contains("`--config` takes one file"), "{run:?}");
    project.write("a=b.toml", "strict = false\n");
    assert_eq!(setting(&project, "--config a=b.toml", "strict"), "strict = false", "it is a file");
}

#[test]
fn a_file_that_is_extended_is_not_overwritten() {
    let project = Project::new(&[
        ("samedevice.toml", "extend = 'b.toml'\n"),
        ("b.toml", "strict = true\n"),
        ("a.py", ""),
    ]);
    let run = project.run("check -o b.toml");
    assert!(run.code == Some(2) && run.stderr.contains("`b.toml` is an input of this run"), "{run:?}");
}
