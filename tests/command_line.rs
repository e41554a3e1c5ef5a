//! Lists of files, completions and manual pages.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use std::process::Command;

use support::Project;

#[test]
fn files_come_from_a_list() {
    let project = Project::new(&[
        ("a.py", "import torch\ntorch.ones(3).cuda()\n"),
        ("b c.py", "import torch\ntorch.ones(3).cuda()\n"),
        ("d.py", "import torch\nprint(torch.ones(3))\n"),
        ("list", "a.py\r\n\nb c.py\n"),
        ("zeros", "a.py\0b c.py\0"),
        ("empty", ""),
    ]);
    let found = |run: support::Run| {
        let files = run.stdout.lines().filter_map(|line| line.split(':').next());
        (run.code, files.map(str::to_owned).collect::<Vec<_>>())
    };
    let both = (Some(1), vec!["a.py".to_owned(), "b c.py".to_owned()]);
    let check = "check --output-format concise --files-from";
    assert_eq!(found(project.run(&format!("{check} list"))), both);
    assert_eq!(found(project.run(&format!("{check} zeros --null"))), both);
    assert_eq!(found(project.run_with(&format!("{check} - -0"), b"a.py\0b c.py", &[])), both);
    // What nothing changed in has nothing to be linted, rather than everything.
    let run = project.run(&format!("{check} empty"));
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    for (arguments, part) in [
        ("--files-from nope", "cannot read the list of files `nope`: no such file"),
        ("--files-from list a.py", "cannot be used with"),
        ("--files-from list --stdin-filename x.py", "cannot be used with"),
        ("--null a.py", "`--null` needs `--files-from`"),
        ("--files-from list -o list", "`list` is an input of this run"),
    ] {
        let run = project.run(&format!("check {arguments}"));
        assert!(run.code == Some(2) && run.stderr.contains(part), "{arguments}: {run:?}");
    }
    let run = project.run_with("check --files-from -", b"nope.py\n", &[]);
    assert!(run.code == Some(2) && run.stderr.contains("`nope.py`: no such file"), "{run:?}");
}

#[test]
fn shells_complete_commands_and_flags() {
    let project = Project::new(&[]);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = project.run(&format!("generate-shell-completion {shell}"));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
        for part in ["check", "output-format", "generate-man"] {
            assert!(run.stdout.contains(part), "{shell}: {part}");
        }
        assert!(!run.stdout.contains("probe"), "{shell}: what nobody calls is not offered");
    }
    let run = project.run("generate-shell-completion tcsh");
    assert!(run.code == Some(2) && run.stderr.contains("possible values"), "{run:?}");
}

/// Where there is a `bash`, it is asked what it offers.
#[cfg(unix)]
#[test]
fn bash_offers_what_there_is() {
    let project = Project::new(&[]);
    project.write("completion.bash", project.run("generate-shell-completion bash").stdout);
    let script = "source completion.bash; COMP_WORDS=(samedevice check --output-f); COMP_CWORD=2; \
                  _samedevice samedevice --output-f check; echo ${COMPREPLY[@]}";
    let Ok(output) = Command::new("bash").args(["-c", script]).current_dir(project.root()).output() else {
        return;
    };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--output-format --output-file\n", "{output:?}");
}

#[test]
fn there_are_manual_pages() {
    let project = Project::new(&[]);
    let page = project.run("generate-man");
    assert_eq!((page.code, page.stderr.as_str()), (Some(0), ""));
    assert!(
        page.stdout.contains(".TH samedevice 1") && page.stdout.contains("Exit codes"),
        "{}",
        page.stdout
    );
    assert_eq!(project.run("generate-man pages/man1").code, Some(0));
    let pages = |name: &str| std::fs::read_to_string(project.root().join("pages/man1").join(name)).unwrap();
    assert_eq!(pages("samedevice.1"), page.stdout);
    assert!(pages("samedevice-check.1").contains("output\\-format"));
    let mut names: Vec<String> = std::fs::read_dir(project.root().join("pages/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 8, "{names:?}");
    project.write("file", "");
    let run = project.run("generate-man file/below");
    assert!(
        run.code == Some(2) && run.stderr.contains("cannot write the pages into `file/below`"),
        "{run:?}"
    );
}
