//! Which files are linted: `samedevice check --show-files`.

mod support;

use std::process::Stdio;

use support::Project;

#[test]
fn python_files_are_found_in_a_stable_order() {
    let project = Project::new(&[
        ("b.py", ""),
        ("a/z.py", ""),
        ("a/__init__.py", ""),
        ("a.pyi", ""),
        ("a.txt", ""),
        ("B/x.py", ""),
        (".hidden/x.py", ""),
        ("é ü.py", ""),
    ]);
    assert_eq!(
        project.run("check --show-files").stdout,
        ".hidden/x.py\nB/x.py\na/__init__.py\na/z.py\na.pyi\nb.py\né ü.py\n"
    );
    assert_eq!(project.files("b.py a ./b.py a/z.py a/"), "a/__init__.py a/z.py b.py");
}

#[test]
fn gitignore_is_honored_with_nesting_negation_and_folders() {
    let project = Project::new(&[
        (".gitignore", "gen_*.py\n/out/\n*.tmp.py\n"),
        ("keep.py", ""),
        ("gen_a.py", ""),
        ("out/x.py", ""),
        ("sub/out/x.py", ""),
        ("sub/.gitignore", "!gen_b.py\nlocal.py\n"),
        ("sub/gen_a.py", ""),
        ("sub/gen_b.py", ""),
        ("sub/local.py", ""),
        ("sub/deep/local.py", ""),
        ("local.py", ""),
    ]);
    assert_eq!(project.files(""), "keep.py local.py sub/gen_b.py sub/out/x.py");
    assert_eq!(project.files("sub"), "sub/gen_b.py sub/out/x.py", "rules above the path count");
    assert_eq!(project.files("gen_a.py out"), "gen_a.py out/x.py", "what is named is linted");
}

#[test]
fn gitignore_ends_at_the_repository() {
    let project =
        Project::new(&[(".gitignore", "x.py\n"), ("repo/.git/HEAD", ""), ("repo/x.py", ""), ("x.py", "")]);
    assert_eq!(project.files(""), "repo/x.py");
}

#[test]
fn ignore_files_outrank_gitignore_and_that_info_exclude_and_that_the_global_file() {
    let project = Project::new(&[
        (".git/info/exclude", "*_e.py\n*_g.py\n"),
        (".gitignore", "*_g.py\n!x_e.py\n*_i.py\n"),
        (".ignore", "!x_g.py\n*_o.py\n"),
        ("x_e.py", ""),
        ("y_e.py", ""),
        ("x_g.py", ""),
        ("y_g.py", ""),
        ("x_i.py", ""),
        ("x_o.py", ""),
        ("x_u.py", ""),
        ("x.py", ""),
    ]);
    assert_eq!(project.files(""), "x.py x_e.py x_g.py x_u.py");
    std::fs::write(project.home().join(".gitconfig"), "[core]\n\texcludesFile = ~/ignored\n").unwrap();
    std::fs::write(project.home().join("ignored"), "*_u.py\nx_e.py\n").unwrap();
    assert_eq!(project.files(""), "x.py x_e.py x_g.py");
}

#[test]
fn a_worktree_finds_the_exclude_file_of_its_repository() {
    let project = Project::new(&[
        ("main/.git/info/exclude", "x.py\n"),
        ("main/.git/worktrees/w/commondir", "../..\n"),
        ("w/x.py", ""),
        ("w/y.py", ""),
    ]);
    project.write("w/.git", format!("gitdir: {}\n", project.root().join("main/.git/worktrees/w").display()));
    assert_eq!(project.files("w"), "w/y.py");
}

#[test]
fn built_in_excludes_hold_until_they_are_replaced() {
    let project = Project::new(&[
        ("a.py", ""),
        (".venv/x.py", ""),
        ("lib/site-packages/x.py", ""),
        ("node_modules/x.py", ""),
        ("build/x.py", ""),
        ("sub/dist/x.py", ""),
    ]);
    assert_eq!(project.files(""), "a.py");
    assert_eq!(project.files("build"), "build/x.py", "the folder that is named is walked");
    assert_eq!(project.files("--exclude a.py,.venv,lib"), "build/x.py node_modules/x.py sub/dist/x.py");
    assert_eq!(project.files("--extend-exclude a.py"), "");
}

#[test]
fn configured_excludes_start_at_the_configuration() {
    let project = Project::new(&[
        ("sub/samedevice.toml", "extend-exclude = ['a/x.py', 'gen_*.py', 'c/']\n"),
        ("sub/a/x.py", ""),
        ("sub/b/a/x.py", ""),
        ("sub/b/gen_1.py", ""),
        ("sub/c/x.py", ""),
        ("gen_1.py", ""),
    ]);
    assert_eq!(project.files(""), "gen_1.py sub/b/a/x.py");
}

#[test]
fn named_files_are_linted_unless_excludes_are_forced() {
    let project = Project::new(&[
        ("samedevice.toml", "extend-exclude = ['third']\n"),
        ("third/pkg/setup.py", ""),
        ("third/pkg/a.py", ""),
        ("script", ""),
        ("a.py", ""),
    ]);
    assert_eq!(project.files("third/pkg/a.py script"), "script third/pkg/a.py");
    assert_eq!(project.files("--force-exclude third/pkg/a.py a.py third"), "a.py");
    project.write("samedevice.toml", "extend-exclude = ['third']\nforce-exclude = true\n");
    assert_eq!(project.files("third/pkg/a.py a.py"), "a.py");
    let stdin = project.run_with("check --stdin-filename third/pkg/a.py -", b"\xff", &[]);
    assert_eq!(stdin.code, Some(0), "{stdin:?}");
}

#[cfg(unix)]
#[test]
fn links_lead_to_files_but_not_in_circles() {
    use std::os::unix::fs::symlink;

    let project = Project::new(&[("a/x.py", ""), ("b/y.py", "")]);
    let root = project.root();
    symlink(root, root.join("a/up")).unwrap();
    symlink("x.py", root.join("a/same.py")).unwrap();
    symlink("loop.py", root.join("a/loop.py")).unwrap();
    symlink("nowhere", root.join(".#lock.py")).unwrap();
    symlink(root.join("b"), root.join("a/b.py")).unwrap();
    assert_eq!(project.files(""), "a/x.py b/y.py");
    assert_eq!(project.files("a/up/b"), "a/up/b/y.py", "a link that is named is followed");
    symlink("../b/y.py", root.join("a/y.py")).unwrap();
    assert_eq!(project.files("a"), "a/x.py a/y.py", "the link's target is not linted otherwise");
}

/// Whoever opens a pipe waits for somebody who writes to it.
#[cfg(unix)]
#[test]
fn pipes_are_no_files() {
    let program = "import torch\nfrom pkg import part\nfrom .near import x\n\ntorch.zeros(3).cuda()\n";
    let project = Project::new(&[("a.py", program), ("b.py", "import a\n")]);
    let pipes = [
        "pipe.py",
        "pkg/__init__.py",
        "pkg/part.py",
        "near.py",
        "conftest.py",
        "setup.py",
        "setup.cfg",
        "pyproject.toml",
        "samedevice.toml",
        "requirements.txt",
        "notes.md",
        "n.ipynb",
        ".gitignore",
        ".ignore",
        ".git",
    ];
    if !pipes.iter().all(|pipe| project.pipe(pipe)) {
        return;
    }
    let check = |arguments: &str| {
        project.run_to_its_end(&format!("check --output-format concise {arguments}"), Stdio::null())
    };
    assert_eq!(check("--show-files").stdout, "a.py\nb.py\n");
    let run = check("");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.starts_with("a.py:5:") && run.stdout.lines().count() == 1, "{run:?}");
    let run = check("pipe.py a.py");
    assert!(
        run.stdout.contains("pipe.py:1:1: error: SD003 cannot read this file: it is a named pipe"),
        "{run:?}"
    );
    for flag in ["--config", "--machine"] {
        let run = check(&format!("{flag} pyproject.toml a.py"));
        assert!(run.code == Some(2) && run.stderr.contains("it is a named pipe"), "{run:?}");
    }
}

#[test]
fn a_missing_path_is_an_error_and_the_rest_goes_on() {
    let project = Project::new(&[("a.py", "")]);
    project.write("b.py", b"\xff");
    let run = project.run("check --output-format concise nope a.py b.py ../nope/x.py");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("error: `nope`: no such file or directory"), "{run:?}");
    assert!(run.stderr.contains("`../nope/x.py`"), "{run:?}");
    assert!(run.stdout.contains("b.py:1:1"), "{run:?}");
    assert_eq!(project.run("check --exit-zero nope").code, Some(2));
}

#[test]
fn nothing_to_lint_is_told() {
    let project = Project::new(&[("a.txt", "")]);
    let run = project.run("check");
    let told = "warning: no Python files found\n";
    assert_eq!((run.code, run.stderr.as_str(), run.stdout.as_str()), (Some(0), told, ""));
    assert_eq!(project.run("check -q").stderr, "");
}

#[test]
fn paths_with_dots_find_their_own_configuration() {
    let project = Project::new(&[
        ("here/samedevice.toml", "extend-exclude = ['x.py']"),
        ("there/x.py", ""),
        ("here/sub/y.py", ""),
    ]);
    let mut command = project.command(env!("CARGO_BIN_EXE_samedevice"));
    command.current_dir(project.root().join("here")).args([
        "check",
        "--show-files",
        "../there",
        "sub/../sub",
    ]);
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let there = project.root().join("there/x.py");
    assert_eq!(output, format!("sub/y.py\n{}\n", there.display()));
}

/// Names that nothing but themselves are bound to, as after `from elsewhere import *`: what they mean ends somewhere.
#[test]
fn names_for_names_may_go_in_a_circle() {
    let decorated = "\n\n@NAME\ndef f(x: NAME):\n    return x + torch.zeros(1).cuda()\n\n\nf(NAME)\n";
    let circles = [
        ("mark", "mark = mark(1)"),
        ("mark", "mark = mark.other"),
        ("first", "first = second\nsecond = first"),
        ("rows", "rows = dict[rows]"),
    ];
    for (name, circle) in circles {
        let text = format!("import torch\n\n{circle}\n{}", decorated.replace("NAME", name));
        let project = Project::new(&[("main.py", &text)]);
        let run = project.run("check --isolated --select SD101 --output-format concise main.py");
        assert!(run.stdout.contains("SD101"), "{circle}: {} {}", run.stdout, run.stderr);
    }
}

#[test]
fn folders_of_an_unmarked_project_import_from_each_other() {
    let project = Project::new(&[
        ("lib/nets/helpers.py", "def run(x):\n    return x.cuda()\n"),
        (
            "scripts/train.py",
            "import torch\nfrom lib.nets.helpers import run\n\nassert torch.cuda.is_available()\nrun(torch.ones(3))\n",
        ),
    ]);
    // Alone, a file belongs to its own folder: who calls it is not in sight.
    let alone = project.run("check --isolated --min-confidence low lib/nets/helpers.py").stdout;
    assert!(alone.contains("SD101"), "{alone}");
    let whole = project.run("check --isolated --min-confidence low .").stdout;
    assert!(!whole.contains("SD101"), "the only caller checks for CUDA: {whole}");
}
