//! Flags, exit codes, standard input and output.

mod support;

use support::Project;

/// A file that no version of Python reads.
fn with_finding() -> Project {
    let project = Project::new(&[("good.py", "x = 1\n")]);
    project.write("bad.py", b"x = 1\ny = '\xff'\n");
    project
}

#[test]
fn exit_codes_tell_clean_found_and_failed() {
    let project = with_finding();
    assert_eq!(project.run("check good.py").code, Some(0));
    assert_eq!(project.run("check").code, Some(1));
    assert_eq!(project.run("check --exit-zero").code, Some(0));
    assert_eq!(project.run("check nope.py").code, Some(2));
    assert_eq!(project.run("check --ignore SD003").code, Some(0));
    for format in ["full", "concise", "json", "json-lines", "github", "sarif"] {
        assert_eq!(project.run(&format!("check --output-format {format}")).code, Some(1), "{format}");
    }
}

#[test]
fn wrong_flags_are_failures_with_a_hint() {
    let project = Project::new(&[("a.py", "")]);
    for (arguments, part) in [
        ("check --selct SD1", "--select"),
        ("check --output-format jsn", "json"),
        ("chek", "check"),
        ("", "Usage"),
        ("check --select SD1O1", "did you mean `SD101`?"),
        (
            "check --ignore unguarded-cud",
            "`--ignore`: unknown rule `unguarded-cud`; did you mean `unguarded-cuda`?",
        ),
        ("check --extend-exclude a/[", "malformed glob in `--extend-exclude`"),
        ("check --isolated --config x", "cannot be used with"),
        ("check --jobs many", "invalid value"),
        ("rule SD1", "several rules"),
        ("rule unguarded-cudaa", "did you mean `unguarded-cuda`?"),
    ] {
        let run = project.run(arguments);
        assert_eq!(run.code, Some(2), "{arguments}: {run:?}");
        assert!(run.stderr.contains(part), "{arguments}: {part}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{arguments}");
    }
}

#[test]
fn help_and_version_are_answers() {
    let project = Project::new(&[]);
    let version = project.run("--version");
    assert_eq!(
        (version.code, version.stdout),
        (Some(0), format!("samedevice {}\n", env!("CARGO_PKG_VERSION")))
    );
    let help = project.run("check --help").stdout;
    for part in [
        "Rules:",
        "Files:",
        "Configuration:",
        "Output:",
        "Exit codes:",
        "--select",
        "SAMEDEVICE_OUTPUT_FORMAT",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert_eq!(project.run("rule unguarded-cuda").code, Some(0));
    assert_eq!(project.run("rule --output-format json").code, Some(0));
}

#[test]
fn encodings_are_those_of_python() {
    let project = Project::new(&[
        ("bom.py", "\u{feff}x = 1\r\n"),
        ("crlf.py", "x = 1\r\n\x0cy = 2\r\n"),
        ("nul.py", "# \0\n"),
    ]);
    project.write("latin.py", b"# -*- coding: latin-1 -*-\nx = '\xe9\x81'\n");
    project.write("second.py", b"#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n");
    project.write("none.py", b"# fine\r\nx = '\xe9'\n");
    project.write("unknown.py", b"# coding: klingon\nx = 1\n");
    project.write("both.py", b"\xef\xbb\xbf# coding: latin-1\n");
    let run = project.run("check --output-format concise");
    assert_eq!(run.code, Some(1));
    for (file, reason) in [
        ("none.py", "byte 0xe9 in row 2"),
        ("unknown.py", "`klingon`, which is unknown"),
        ("both.py", "byte order mark"),
    ] {
        let line = run.stdout.lines().find(|line| line.starts_with(file)).unwrap_or("none");
        assert!(line.starts_with(&format!("{file}:1:1: ")), "{line}");
        assert!(line.contains("SD003") && line.contains(reason), "{line}");
    }
    assert_eq!(run.stdout.matches("SD003").count(), 3, "{}", run.stdout);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_read_is_one_finding() {
    let project = Project::new(&[("a.py", "")]);
    // Opens, but cannot be read, not even by root.
    let run = project.run("check --output-format concise a.py /proc/self/mem");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        run.stdout.contains("/proc/self/mem:1:1: ") && run.stdout.contains("cannot read this file: "),
        "{run:?}"
    );
}

#[test]
fn standard_input_is_a_file_with_a_name() {
    let project = Project::new(&[("samedevice.toml", "per-file-ignores = { 'tests/*' = ['ALL'] }")]);
    let check = |arguments: &str| {
        project.run_with(&format!("check --output-format concise {arguments}"), b"\xff", &[])
    };
    let run = check("--stdin-filename src/x.py -");
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.starts_with("src/x.py:1:1: "), "{run:?}");
    assert_eq!(check("--stdin-filename src/x.py").stdout, run.stdout);
    assert!(check("-").stdout.starts_with("-:1:1: "));
    assert_eq!(check("--stdin-filename tests/x.py -").code, Some(0), "its settings are those of its name");
    let run = check("- a.py");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("together with other paths"), "{run:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let project = Project::new(&[]);
    for n in 0..3000 {
        project.write(&format!("file_with_quite_a_long_name_{n:05}.py"), b"\xff");
    }
    let script = format!(
        "{{ '{}' check --output-format concise; echo $? >code; }} | head -1",
        env!("CARGO_BIN_EXE_samedevice")
    );
    let output = project.command("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(std::fs::read_to_string(project.root().join("code")).unwrap(), "0\n");
}

#[test]
fn the_format_comes_from_the_flag_then_the_environment() {
    let project = with_finding();
    let env = [("SAMEDEVICE_OUTPUT_FORMAT", "nonsense")];
    assert_eq!(project.run_with("check", b"", &env).code, Some(2));
    assert_eq!(project.run_with("check --output-format json", b"", &env).code, Some(1));
}

#[test]
fn output_goes_to_a_file_if_asked() {
    let project = with_finding();
    let run = project.run("check --output-format concise --output-file out.txt");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(std::fs::read_to_string(project.root().join("out.txt")).unwrap().starts_with("bad.py:1:1: "));
    let run = project.run("check --output-file nope/out.txt");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("cannot write `nope/out.txt`"), "{run:?}");
}

#[test]
fn statistics_count_rules() {
    let project = with_finding();
    project.write("worse.py", b"\xff");
    let run = project.run("check --statistics -q");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), "2  SD003  unreadable-file\n"));
    let run = project.run("check --statistics --output-format json");
    assert!(run.stdout.contains("\"count\": 2"), "{run:?}");
}

#[test]
fn quiet_and_verbose_differ() {
    let project = with_finding();
    project.write("samedevice.toml", "");
    assert_eq!(project.run("check -q good.py").stdout, "");
    let run = project.run("check --verbose --jobs 1 --no-cache good.py");
    assert!(run.stderr.contains("samedevice.toml") && run.stderr.contains("files: 1"), "{run:?}");
    assert_eq!(project.run("check -q -v").code, Some(2));
}
