//! Configuration files, end to end.

mod support;

use samedevice::rules::page::Page;
use samedevice::rules::registry::registry;
use support::Project;

/// What `check --show-settings ARGUMENTS` prints.
fn settings(project: &Project, arguments: &str) -> String {
    let run = project.run(&format!("check --show-settings {arguments}"));
    assert_eq!(run.code, Some(0), "{run:?}");
    run.stdout
}

/// The line of the settings that starts like this.
fn line(settings: &str, start: &str) -> String {
    settings.lines().find(|line| line.starts_with(start)).unwrap_or("none").to_owned()
}

#[test]
fn the_nearest_file_wins() {
    let project = Project::new(&[
        ("pyproject.toml", "[tool.samedevice]\noom-threshold = 1\n"),
        ("a/samedevice.toml", "oom-threshold = '2KiB'\n"),
        ("a/b/pyproject.toml", "[tool.ruff]\nline-length = 'nonsense'\n"),
        ("a/c/.samedevice.toml", "oom-threshold = 3\n"),
        ("a/c/samedevice.toml", "oom-threshold = 4\n"),
        ("a/b/x.py", ""),
    ]);
    let threshold = |path: &str| line(&settings(&project, path), "oom-threshold");
    assert_eq!(threshold(""), "oom-threshold = 1");
    assert_eq!(threshold("a"), "oom-threshold = 2048");
    assert_eq!(threshold("a/b/x.py"), "oom-threshold = 2048", "a pyproject.toml without our table is none");
    assert_eq!(threshold("a/c"), "oom-threshold = 3");
    assert_eq!(threshold("--isolated a/c"), "oom-threshold = 1073741824");
    assert_eq!(threshold("--config a/c/samedevice.toml ."), "oom-threshold = 4");
    assert_eq!(threshold("--config a/b/pyproject.toml ."), "oom-threshold = 1073741824");
}

#[test]
fn an_unknown_key_is_an_error_with_its_place() {
    let project = Project::new(&[("samedevice.toml", "# mine\n\n  selct = ['SD101']\n"), ("a.py", "")]);
    let run = project.run("check");
    assert_eq!(run.code, Some(2), "{run:?}");
    assert_eq!(run.stdout, "");
    for part in ["samedevice.toml:3:3", "unknown key `selct`", "did you mean `select`?"] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    assert_eq!(project.run("check --isolated").code, Some(0));
}

#[test]
fn every_kind_of_mistake_has_a_place() {
    for (text, place, message) in [
        ("[tool.samedevice]\nselect = 1", "pyproject.toml:2:10", "`select` expects a list of rules"),
        (
            "[tool.samedevice]\nselect = [\n'SD1',\n  'unguarded-cude']",
            "pyproject.toml:4:3",
            "did you mean `unguarded-cuda`?",
        ),
        ("[tool.samedevice.severity]\nSD101 = 'fatal'", "pyproject.toml:2:9", "not the string \"fatal\""),
        ("[tool.samedevice]\nexclude = ['a', 'b/[']", "pyproject.toml:2:17", "malformed glob"),
        ("[tool.samedevice\n", "pyproject.toml:1:17", "not TOML"),
        ("[tool]\nsamedevice = 'é'\n", "pyproject.toml:2:14", "expects a table"),
    ] {
        let project = Project::new(&[("pyproject.toml", text), ("a.py", "")]);
        let run = project.run("check");
        assert_eq!(run.code, Some(2), "{text}: {run:?}");
        assert!(run.stderr.contains(place), "{place}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{message}: {}", run.stderr);
    }
}

#[test]
fn a_configuration_deep_inside_is_checked_too() {
    let project = Project::new(&[
        ("a/b/samedevice.toml", "nope = 1"),
        ("a/b/x.py", ""),
        ("a/b/c/y.py", ""),
        ("z.py", ""),
    ]);
    let run = project.run("check");
    assert_eq!(run.code, Some(2));
    assert_eq!(run.stderr.matches("unknown key").count(), 1, "{run:?}");
    assert!(run.stderr.contains("a/b/samedevice.toml:1:1"), "{run:?}");
    assert_eq!(project.run("check z.py").code, Some(0));
}

#[test]
fn other_tools_broken_files_are_theirs() {
    let project = Project::new(&[("pyproject.toml", "[tool.poetry\n"), ("a.py", "")]);
    assert_eq!(project.run("check").code, Some(0));
}

#[test]
fn a_configuration_that_cannot_be_read_is_an_error() {
    let project = Project::new(&[("a.py", "")]);
    let run = project.run("check --config nope.toml");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("nope.toml`: no such file"), "{run:?}");
    project.write("samedevice.toml", b"# \xff\n");
    let run = project.run("check");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("not UTF-8"), "{run:?}");
}

#[test]
fn flags_go_before_files() {
    let project = Project::new(&[("samedevice.toml", "select = ['SD1', 'SD2']\nignore = ['SD203']\n")]);
    let enabled = |arguments: &str| {
        let shown = settings(&project, arguments);
        let on = |page: &&Page| shown.contains(&format!("\"{} {}\"", page.code, page.name));
        registry().iter().filter(on).map(|page| page.code.0).collect::<Vec<_>>()
    };
    // Whatever is selected, a file that cannot be read is told.
    let rules = |wanted: &dyn Fn(u16) -> bool| {
        let codes = registry().iter().map(|page| page.code.0);
        codes.filter(|&code| [1, 3].contains(&code) || wanted(code)).collect::<Vec<_>>()
    };
    let family = |code: u16| code / 100;
    assert_eq!(enabled(""), rules(&|c| family(c) == 1 || family(c) == 2 && c != 203));
    assert_eq!(enabled("--ignore SD2,unguarded-cuda"), rules(&|c| family(c) == 1 && c != 101));
    assert_eq!(
        enabled("--extend-select sd502"),
        rules(&|c| [1, 2].contains(&family(c)) && c != 203 || c == 502)
    );
    assert_eq!(
        enabled("--select SD2"),
        rules(&|c| family(c) == 2 && c != 203),
        "what the file ignores stays ignored"
    );
    assert_eq!(enabled("--select SD203"), rules(&|c| c == 203), "unless it is asked for by its code");
    assert_eq!(enabled("--select ALL --ignore SD1"), rules(&|c| family(c) != 1 && c != 203));
    assert_eq!(enabled("--isolated"), rules(&|c| registry().iter().any(|p| p.code.0 == c && p.default_on)));
}

#[test]
fn per_file_ignores_and_severity_decide_what_fails() {
    let project = Project::new(&[]);
    project.write("a.py", b"\xff");
    project.write("tests/b.py", b"\xff");
    project.write("samedevice.toml", "[per-file-ignores]\n'tests/*' = ['SD0']\n");
    let run = project.run("check --output-format concise");
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains("a.py:1:1") && !run.stdout.contains("tests/b.py"), "{run:?}");

    project.write("samedevice.toml", "severity = { SD003 = 'info' }\n");
    assert_eq!(project.run("check").code, Some(0), "information does not fail a run");
    project.write("samedevice.toml", "severity = { SD0 = 'info', SD003 = 'warning' }\n");
    assert_eq!(project.run("check").code, Some(1), "the more specific counts");
    project.write("samedevice.toml", "severity = { SD003 = 'off' }\n");
    let run = project.run("check --output-format concise");
    assert_eq!((run.code, run.stdout.contains("SD003")), (Some(0), false));
}
