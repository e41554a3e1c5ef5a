//! Flags, exit codes, standard input and output.

mod support;

use std::process::Stdio;

use samedevice::rules::registry::registry;
use serde_json::{Value, json};
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
}

#[test]
fn tests_are_those_of_the_project_wherever_it_stands() {
    let program = "import torch\nfrom torch import nn\n\nmodel = nn.Linear(3, 3)\nmodel.load_state_dict(torch.load(\"x.pt\"))\n";
    let project = Project::new(&[
        ("tests/app/pyproject.toml", "[project]\nname = \"app\"\n"),
        ("tests/app/load.py", program),
        ("tests/app/tests/tools.py", program),
        ("tests/app/test_load.py", program),
    ]);
    let run = project.run("check --output-format concise tests/app");
    let found: Vec<&str> = run.stdout.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(found.iter().filter(|f| f.ends_with(".py")).count(), 1, "{run:?}");
    assert!(found.contains(&"tests/app/load.py"), "{run:?}");
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
        ("rule SD2", "several rules; choose one: SD201, SD202, "),
        ("rule 204", "did you mean `SD204`?"),
        ("rule SD24", "did you mean `SD204`?"),
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
        "Exit codes of `check`:",
        "--select",
        "SAMEDEVICE_OUTPUT_FORMAT",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
}

#[test]
fn rules_are_explained() {
    let project = Project::new(&[]);
    let page = project.run("rule sd101");
    assert_eq!((page.code, page.stderr.as_str()), (Some(0), ""));
    assert!(page.stdout.starts_with("SD101 unguarded-cuda\n") && page.stdout.contains("\nWhy\n"), "{page:?}");
    assert_eq!(project.run("rule unguarded-cuda").stdout, page.stdout);
    assert!(project.run("rule SD101 --color always").stdout.contains("\u{1b}[1m"));

    let table = project.run_with("rule", b"", &[("COLUMNS", "70")]).stdout;
    assert!(registry().iter().all(|page| table.contains(page.name)), "{table}");
    assert!(table.lines().any(|line| line.ends_with('…')) && table.lines().all(|l| l.chars().count() < 90));
    let json: Value = serde_json::from_str(&project.run("rule --output-format json").stdout).unwrap();
    assert_eq!(json.as_array().map(Vec::len), Some(registry().len()));

    assert_eq!(project.run("rule SD000").code, Some(2), "that is none");
}

/// What `check --output-format FORMAT` prints for the project of [`with_finding`].
fn formatted(format: &str) -> String {
    let run = with_finding().run(&format!("check --output-format {format}"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""), "{format}");
    run.stdout
}

#[test]
fn people_read_sentences() {
    let full = formatted("full");
    for part in [
        "error[SD003] unreadable-file",
        "bad.py:1:1",
        "cannot read this file: ",
        "Found 1 problem (1 error) in 2 files.\n",
        "`samedevice rule SD003`",
    ] {
        assert!(full.contains(part), "{part}: {full}");
    }
    let concise = formatted("concise");
    assert!(concise.starts_with("bad.py:1:1: error: SD003 cannot read this file: "), "{concise}");
    assert!(concise.ends_with(" [unreadable-file]\n") && concise.lines().count() == 1, "{concise}");
}

#[test]
fn machines_read_json() {
    let array: Value = serde_json::from_str(&formatted("json")).unwrap();
    let [found] = array.as_array().unwrap().as_slice() else { panic!("{array}") };
    assert_eq!(found["code"], "SD003");
    assert_eq!(found["name"], "unreadable-file");
    assert_eq!(found["location"], json!({"row": 1, "column": 1}));
    assert!(found["filename"].as_str().unwrap().ends_with("/project/bad.py"), "{found}");

    let lines = formatted("json-lines");
    let objects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((objects.len(), &objects[0]["code"]), (1, &found["code"]));

    let project = Project::new(&[("good.py", "")]);
    assert_eq!(project.run("check --output-format json").stdout, "[]\n");
    assert_eq!(project.run("check --output-format json-lines").stdout, "");
}

#[test]
fn code_scanning_reads_sarif() {
    let log: Value = serde_json::from_str(&formatted("sarif")).unwrap();
    let run = &log["runs"][0];
    assert_eq!(log["version"], "2.1.0");
    let [rule] = run["tool"]["driver"]["rules"].as_array().unwrap().as_slice() else { panic!("{log}") };
    assert_eq!((&rule["id"], &run["results"][0]["ruleIndex"]), (&json!("SD003"), &json!(0)), "what was hit");
    assert!(rule["helpUri"].as_str().unwrap().ends_with("/SD003-unreadable-file.md"), "{rule}");
    let [result] = run["results"].as_array().unwrap().as_slice() else { panic!("{log}") };
    assert_eq!((&result["ruleId"], &result["level"]), (&json!("SD003"), &json!("error")));
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "bad.py");
    assert_eq!(
        place["region"],
        json!({"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1}),
        "there is no text to point at"
    );
    let clean = Project::new(&[("good.py", "x = 1\n")]).run("check --output-format sarif").stdout;
    assert!(clean.len() < 1000, "a log without findings carries no pages: {clean}");
}

#[test]
fn git_hub_reads_commands_with_paths_in_its_workspace() {
    let github = formatted("github");
    assert!(github.starts_with("::error ") && github.contains("file=bad.py,line=1,"), "{github}");
    assert!(github.contains(",endLine=1,col=1,endColumn=1::bad.py:1:1: SD003 "), "{github}");
    let project = with_finding();
    let workspace = [("GITHUB_WORKSPACE", project.home().to_str().unwrap())];
    let run = project.run_with("check --output-format github", b"", &workspace);
    assert!(run.stdout.contains("file=project/bad.py,"), "{run:?}");
    let elsewhere = [("GITHUB_WORKSPACE", "/nowhere")];
    let run = project.run_with("check --output-format github", b"", &elsewhere);
    assert!(run.stdout.contains("file=bad.py,"), "{run:?}");
}

#[test]
fn colors_are_for_terminals() {
    let project = with_finding();
    let colored = |arguments: &str, env: &[(&str, &str)]| {
        project.run_with(&format!("check {arguments}"), b"", env).stdout.contains('\u{1b}')
    };
    assert!(!colored("", &[]));
    assert!(colored("--color always", &[]));
    assert!(colored("--output-format concise", &[("CLICOLOR_FORCE", "1")]));
    assert!(!colored("--color never", &[("CLICOLOR_FORCE", "1")]));
    assert!(!colored("--color always --output-format json", &[]));
    project.run_with("check --output-file out.txt", b"", &[("CLICOLOR_FORCE", "1")]);
    assert!(!std::fs::read_to_string(project.root().join("out.txt")).unwrap().contains('\u{1b}'));
}

#[test]
fn encodings_are_those_of_python() {
    let project = Project::new(&[
        ("bom.py", "\u{feff}x = 1\r\n"),
        ("crlf.py", "x = 1\r\n\x0cy = 2\r\n"),
        ("nul.py", "x = 1\n# \0\ny = 2\n"),
    ]);
    project.write("latin.py", b"# -*- coding: latin-1 -*-\nx = '\xe9\x81'\n");
    project.write("second.py", b"#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n");
    project.write("none.py", b"# fine\r\nx = '\xe9'\n");
    project.write("unknown.py", b"# coding: klingon\nx = 1\n");
    project.write("both.py", b"\xef\xbb\xbf# coding: latin-1\n");
    let run = project.run("check --output-format concise");
    assert_eq!(run.code, Some(1));
    for (file, reason) in [
        ("none.py", "byte 0xe9 in line 2"),
        ("unknown.py", "`klingon`, which samedevice does not know"),
        ("both.py", "byte order mark"),
    ] {
        let line = run.stdout.lines().find(|line| line.starts_with(file)).unwrap_or("none");
        assert!(line.starts_with(&format!("{file}:1:1: ")), "{line}");
        assert!(line.contains("SD003") && line.contains(reason), "{line}");
    }
    let nul = "nul.py:2:3: error: SD001 syntax error: source code cannot contain null bytes [syntax-error]\n";
    assert!(run.stdout.contains(nul), "{run:?}");
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
fn standard_input_belongs_to_the_project_of_its_name() {
    let helper = "import torch\n\n\ndef mask(n):\n    return torch.ones(n)\n";
    // The buffer of an editor: what is on the disk is older.
    let project =
        Project::new(&[("pkg/__init__.py", ""), ("pkg/helper.py", helper), ("pkg/train.py", "x = 1\n")]);
    let buffer = "import torch\n\nfrom pkg.helper import mask\n\n\
        if torch.cuda.is_available():\n    print(torch.zeros(3, device=\"cuda\") + mask(3))\n";
    for arguments in ["--stdin-filename pkg/train.py -", "- --stdin-filename pkg/train.py", "-"] {
        let run =
            project.run_with(&format!("check --output-format concise {arguments}"), buffer.as_bytes(), &[]);
        let name = if arguments == "-" { "-" } else { "pkg/train.py" };
        assert_eq!(run.code, Some(1), "{arguments}: {run:?}");
        assert!(run.stdout.starts_with(&format!("{name}:6:")) && run.stdout.contains("SD201"), "{run:?}");
        assert_eq!(run.stdout.lines().count(), 1, "nothing is told about other files: {run:?}");
    }
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
fn a_file_of_the_run_is_not_overwritten() {
    let source = "from helper import x\n";
    let project = Project::new(&[
        ("train.py", source),
        ("helper.py", "x = 1\n"),
        ("samedevice.toml", "ignore = []\n"),
        ("old.txt", "old"),
    ]);
    for file in ["train.py", "./train.py", "helper.py", "samedevice.toml"] {
        let run = project.run(&format!("check --output-file {file} train.py"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        assert!(run.stderr.contains(&format!("`{file}` is an input of this run")), "{run:?}");
        assert_eq!(std::fs::read_to_string(project.root().join("train.py")).unwrap(), source);
    }
    assert_eq!(project.run("check -o old.txt train.py").code, Some(0));
}

#[cfg(unix)]
#[test]
fn a_terminal_acts_on_nothing_that_a_file_is_called() {
    let name = "a\u{1b}[31m\u{202e}.py";
    let project = Project::new(&[]);
    project.write(name, b"\xff");
    let shown = "a\u{fffd}[31m\u{fffd}.py";
    for arguments in
        ["--show-files", "--output-format github", "--output-format concise", "--output-format full"]
    {
        let run = project.run(&format!("check {arguments}"));
        assert!(run.stdout.contains(shown), "{run:?}");
        assert!(!run.stdout.contains(['\u{1b}', '\u{202e}']), "{run:?}");
    }
    let run = project.run("check no\u{1b}[31mfile");
    assert!(run.stderr.contains("`no\u{fffd}[31mfile`"), "{run:?}");
    project.write("samedevice.toml", "\"se\\u001blect\" = 1 # \u{9b}31m\n");
    let run = project.run("check");
    assert!(run.code == Some(2) && run.stderr.contains("unknown key `se\u{fffd}lect`"), "{run:?}");
    assert!(!run.stderr.contains(['\u{1b}', '\u{9b}']), "{run:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_has_no_end_ends() {
    let project = Project::new(&[("a.py", "x = 1\n")]);
    let endless = std::fs::File::open("/dev/zero").unwrap();
    let run = project.run_to_its_end("check --output-format concise -", endless.into());
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.starts_with("-:1:1: error: SD003 cannot read this file: it is larger than 32 MiB"));
    let run = project.run_to_its_end("check --output-format concise /dev/zero a.py", Stdio::null());
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        run.stdout.starts_with("/dev/zero:1:1: error: SD003 ") && run.stdout.contains("a device"),
        "{run:?}"
    );
    // More threads than cores would each take a stack.
    assert_eq!(project.run("check --jobs 9999999 a.py").code, Some(0));
}

#[test]
fn statistics_count_rules() {
    let project = with_finding();
    project.write("worse.py", b"\xff");
    let run = project.run("check --statistics -q");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), "2\tSD003\tunreadable-file\n"));
    let run = project.run("check --statistics --output-format json");
    assert!(run.stdout.contains("\"count\": 2"), "{run:?}");
}

#[test]
fn quiet_and_verbose_differ() {
    let project = with_finding();
    project.write("samedevice.toml", "");
    assert_eq!(project.run("check good.py").stdout, "No findings: 1 file checked.\n");
    assert_eq!(project.run("check -q good.py").stdout, "");
    let run = project.run("check -q bad.py");
    assert!(run.stdout.contains("SD003") && !run.stdout.contains("Found"), "{run:?}");
    let run = project.run("check --verbose --jobs 1 --no-cache good.py");
    assert!(run.stderr.contains("samedevice.toml") && run.stderr.contains("files: 1"), "{run:?}");
    assert_eq!(project.run("check -q -v").code, Some(2));
}

/// Each class makes all the others: whoever followed them one by one would not come to an end.
#[test]
fn classes_of_modules_that_make_each_other_are_looked_at_once() {
    let count = 60;
    let class = |n: usize| {
        let others: Vec<String> = (0..count).filter(|&k| k != n).map(|k| format!("Part{k}()")).collect();
        format!("class Part{n}(nn.Module):\n    def all(self):\n        return [{}]\n", others.join(", "))
    };
    let parts: String = (0..count).map(class).collect();
    let whole = "class Whole(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.parts = [Part0(), Part1()]\n";
    let text = format!("from torch import nn\n{parts}{whole}");
    let run = Project::new(&[("circle.py", &text)]).run("check --isolated circle.py");
    assert_eq!(run.code, Some(0), "{}", run.stdout);
}
