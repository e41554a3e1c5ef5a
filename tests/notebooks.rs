//! Jupyter notebooks, from the file to every format.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use serde_json::{Value, json};
use support::{Project, Run};

/// A notebook as Jupyter writes it. A cell is code, unless it begins with `# md`.
fn notebook(cells: &[&str]) -> String {
    notebook_in("python", cells)
}

fn notebook_in(language: &str, cells: &[&str]) -> String {
    let cell = |text: &&str| {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        if text.starts_with("# md") {
            return json!({"cell_type": "markdown", "metadata": {}, "source": lines});
        }
        let output = json!({"output_type": "stream", "name": "stdout", "text": ["x.cuda()\n"]});
        json!({"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [output], "source": lines})
    };
    let cells: Vec<Value> = cells.iter().map(cell).collect();
    let metadata = json!({"language_info": {"name": language}});
    let document = json!({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5});
    serde_json::to_string_pretty(&document).unwrap() + "\n"
}

/// The lines of a run in the concise format, each up to its code.
fn lines(project: &Project, paths: &str) -> Vec<String> {
    told(&project.run(&format!("check --isolated --output-format concise {paths}")))
}

fn told(run: &Run) -> Vec<String> {
    let short = |line: &str| {
        let at = line.find("SD").map_or(line.len(), |at| at + 5);
        line[..at].to_owned()
    };
    run.stdout.lines().map(short).collect()
}

fn one(cells: &[&str]) -> Vec<String> {
    lines(&Project::new(&[("nb.ipynb", &notebook(cells))]), "nb.ipynb")
}

const GUARDED: &str = "import torch\nx = torch.ones(2)\n";

#[test]
fn notebooks_are_linted_wherever_python_files_are() {
    let project = Project::new(&[
        ("a/nb.ipynb", &notebook(&["# md\nText", GUARDED, "y = 1\nx.cuda().sum()"])),
        ("a/.ipynb_checkpoints/nb-checkpoint.ipynb", "{"),
        ("b.py", "x = 1\n"),
    ]);
    assert_eq!(project.files(""), "a/nb.ipynb b.py");
    let expected = ["a/nb.ipynb:cell 3:2:1: error: SD101"];
    assert_eq!(lines(&project, ""), expected);
    assert_eq!(lines(&project, "a"), expected);
    assert_eq!(lines(&project, "a/nb.ipynb"), expected);
    let bytes = notebook(&[GUARDED, "x.cuda().sum()"]);
    let arguments = "check --isolated --output-format concise --stdin-filename n.ipynb -";
    let run = project.run_with(arguments, bytes.as_bytes(), &[]);
    assert_eq!(told(&run), ["n.ipynb:cell 2:1:1: error: SD101"]);
    assert_eq!(
        project.run("check --isolated --extend-exclude *.ipynb").stdout,
        "No findings: 1 file checked.\n"
    );
}

#[test]
fn cells_are_one_program_in_the_order_of_the_file() {
    let found =
        one(&[GUARDED, "# md", "if torch.cuda.is_available():\n    x = x.cuda()", "x + torch.ones(2)"]);
    assert_eq!(found, ["nb.ipynb:cell 4:1:1: error: SD201"]);
    // No cell runs into the next.
    assert_eq!(one(&["import torch", "torch.ones(2).cuda().sum()"]), ["nb.ipynb:cell 2:1:1: error: SD101"]);
}

#[test]
fn commands_of_ipython_are_no_errors() {
    let found = one(&[
        "%matplotlib inline\n%load_ext autoreload\n!pip install torch\nimport torch\n",
        "%%bash\nls | grep x\n",
        "%%html\n<b>x</b>",
        "files = !ls\n?torch\ntorch.ones??\ntorch.*Tensor?\n%cd ..\nfor x in files:\n    !echo {x}\n",
        "pip install torch",
        "%%time\nx = torch.ones(2)\ny = %time x.sum()",
        "%%capture out\nawait x",
        "    indented = 1\n    as_ipython_allows = 2",
        "%%writefile x.py\nx.cuda(",
    ]);
    assert_eq!(found, [""; 0]);
}

#[test]
fn statements_that_commands_run_are_followed() {
    let found = one(&[
        GUARDED,
        "%time x.cuda().sum()",
        "y = %time x.cuda().sum()",
        "%timeit -n 10 -r3 x.cuda().sum()",
        "%%time\nx.cuda().sum()",
        "%%bash\nx.cuda().sum()",
        "%unknown x.cuda().sum()",
        "%time\n%timeit -q",
        "%time this is no Python",
    ]);
    assert_eq!(found, ["nb.ipynb:cell 2:1:7: error: SD101"], "of a chain of uses the first one is told");
    let found = one(&[GUARDED, "%timeit -n 10 -r3 x.cuda().sum()"]);
    assert_eq!(found, ["nb.ipynb:cell 2:1:19: error: SD101"]);
    let found = one(&[GUARDED, "y = %time x.cuda().sum()"]);
    assert_eq!(found, ["nb.ipynb:cell 2:1:11: error: SD101"]);
}

#[test]
fn a_syntax_error_is_one_of_its_cell() {
    for wrong in ["y = f(1,\n", "y = '''a\n", "def f(:\n    pass", "y = 1 + \\\n", "@wraps\n", "if x:"] {
        let found = one(&[GUARDED, &format!("z = 1\n{wrong}"), "x.cuda().sum()"]);
        let (last, others) = found.split_last().unwrap();
        let here = |line: &String| line.starts_with("nb.ipynb:cell 2:") && line.ends_with("SD001");
        assert!(!others.is_empty() && others.iter().all(here), "{wrong:?}: {found:?}");
        assert_eq!(last, "nb.ipynb:cell 3:1:1: error: SD101");
    }
    // What else is in the cell is looked at, too.
    let found = one(&[GUARDED, "x.cuda().sum()\nprint 'x'\n"]);
    assert_eq!(found, ["nb.ipynb:cell 2:1:1: error: SD101", "nb.ipynb:cell 2:2:7: error: SD001"]);
    let found = one(&[GUARDED, "y = x.cuda(async=True).sum()"]);
    assert!(found.iter().any(|line| line.ends_with("SD001")), "{found:?}");
    assert!(found.iter().any(|line| line.ends_with("SD101")), "{found:?}");
}

#[test]
fn what_is_no_python_binds_its_names_to_nobody_knows_what() {
    let on_gpu = "if torch.cuda.is_available():\n    x = x.cuda()";
    assert_eq!(one(&[GUARDED, on_gpu, "x + torch.ones(2)"]), ["nb.ipynb:cell 3:1:1: error: SD201"]);
    for exercise in ["x = \n", "x, y =", "def x(:\n    pass", "class x(:\n    pass"] {
        let found = one(&[GUARDED, on_gpu, exercise, "x + torch.ones(2)"]);
        assert!(found.iter().all(|line| line.ends_with("SD001")), "{exercise:?}: {found:?}");
    }
}

#[test]
fn what_a_cell_shows_is_not_discarded() {
    let guarded = |last: &str| {
        let cell =
            format!("import torch\nif torch.cuda.is_available():\n    x = torch.ones(2)\n    y = 1\n{last}");
        let all = one(&[&cell, "x = torch.ones(2)\nx.to('meta')\n", "x.to('cpu')\nx"]);
        all.into_iter().filter(|line| line.contains("SD203")).collect::<Vec<_>>()
    };
    let others = "nb.ipynb:cell 3:1:1: error: SD203";
    assert_eq!(guarded("x = torch.ones(2)\nx.to('meta')"), [others]);
    assert_eq!(guarded("x = torch.ones(2)\nx.to('meta');"), ["nb.ipynb:cell 1:6:1: error: SD203", others]);
    assert_eq!(
        guarded("x = torch.ones(2)\nx.to('meta')\nx = 1"),
        ["nb.ipynb:cell 1:6:1: error: SD203", others]
    );
}

#[test]
fn comments_suppress_in_their_cell() {
    let found = |cells: &[&str]| one(cells).into_iter().filter(|l| !l.contains("SD002")).collect::<Vec<_>>();
    assert_eq!(found(&[GUARDED, "x.cuda().sum()  # samedevice: ignore[SD101]"]), [""; 0]);
    assert_eq!(found(&[GUARDED, "x.cuda().sum()  # noqa: SD101"]), [""; 0]);
    assert_eq!(found(&[GUARDED, "# samedevice: ignore[SD101]\nx.cuda().sum()"]), [""; 0]);
    assert_eq!(found(&["# samedevice: file-ignore", GUARDED, "x.cuda().sum()"]), [""; 0]);
    let last = format!("{GUARDED}# samedevice: ignore[SD101]");
    assert_eq!(
        found(&[&last, "x.cuda().sum()"]),
        ["nb.ipynb:cell 2:1:1: error: SD101"],
        "not in the next cell"
    );
    let unused = one(&[GUARDED, "x.sum()  # samedevice: ignore[SD101]"]);
    assert_eq!(unused, ["nb.ipynb:cell 2:1:10: warning: SD002"]);
}

#[test]
fn settings_hold_for_notebooks() {
    let project = Project::new(&[("n/nb.ipynb", &notebook(&[GUARDED, "x.cuda().sum()"]))]);
    project.write("samedevice.toml", "[per-file-ignores]\n\"n/*.ipynb\" = ['SD101']\n");
    assert_eq!(project.run("check").stdout, "No findings: 1 file checked.\n");
    project.write("samedevice.toml", "extend-exclude = ['*.ipynb']\n");
    assert_eq!(project.files(""), "");
}

#[test]
fn files_that_are_no_notebooks_say_why_and_where() {
    let project = Project::new(&[
        ("a.ipynb", "{\"cells\": [\n  }\n"),
        ("b.ipynb", "{\n \"nbformat\": 3,\n \"worksheets\": []\n}\n"),
        ("c.ipynb", "[]"),
        ("d.ipynb", "{\"cells\": [], \"nbformat\": 4}"),
        ("e.ipynb", ""),
    ]);
    let run = project.run("check --isolated --output-format concise");
    assert_eq!(
        told(&run),
        ["a.ipynb:2:3: error: SD003", "b.ipynb:2:14: error: SD003", "c.ipynb:1:1: error: SD003"]
    );
    assert!(run.stdout.contains("nbconvert"), "{}", run.stdout);
    assert_eq!(run.code, Some(1));
    project.write("f.ipynb", b"{\"cells\": [], \"x\": \"\xff\"}");
    assert_eq!(lines(&project, "f.ipynb"), ["f.ipynb:1:1: error: SD003"]);
}

#[test]
fn notebooks_in_other_languages_are_left_alone() {
    let project = Project::new(&[("r.ipynb", &notebook_in("R", &["x <- 1"])), ("a.py", "x = 1\n")]);
    let run = project.run("check --isolated");
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("No findings: 1 file checked.\n", ""));
    let run = project.run("check --isolated --verbose --strict");
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.contains("skipped: `r.ipynb`: a notebook in the language `R`\n"), "{run:?}");
}

#[test]
fn machines_get_the_place_in_the_file() {
    let text = notebook(&["# md", GUARDED, "y = \"é\"; x.cuda().sum()"]);
    let project = Project::new(&[("nb.ipynb", &text)]);
    let row = text.lines().position(|line| line.contains("y = ")).unwrap() + 1;
    let line = text.lines().nth(row - 1).unwrap();
    let column = line[..line.find("x.cuda").unwrap()].chars().count() + 1;
    let run = |format: &str| project.run(&format!("check --isolated --output-format {format}")).stdout;
    let github = run("github");
    assert!(
        github.contains(&format!(
            "file=nb.ipynb,line={row},endLine={row},col={column},endColumn={}",
            column + 8
        ))
    );
    assert!(github.contains("::nb.ipynb:cell 3:1:10: SD101"), "{github}");
    let sarif: Value = serde_json::from_str(&run("sarif")).unwrap();
    let region = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"];
    assert_eq!((&region["startLine"], &region["startColumn"]), (&json!(row), &json!(column)));
    let found: Value = serde_json::from_str(&run("json")).unwrap();
    assert_eq!((&found[0]["cell"], &found[0]["location"]), (&json!(3), &json!({"row": 1, "column": 10})));
    assert_eq!(found[0]["end_location"], json!({"row": 1, "column": 18}));
}

#[test]
fn fixes_in_sarif_are_changes_of_the_json() {
    let text = notebook(&["x = 1  # samedevice: ignore", "x = 1"]);
    let project = Project::new(&[("nb.ipynb", &text)]);
    let sarif: Value =
        serde_json::from_str(&project.run("check --isolated --output-format sarif").stdout).unwrap();
    let change = &sarif["runs"][0]["results"][0]["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(change["insertedContent"]["text"], json!("\"x = 1\""));
    let line = text.lines().nth(change["deletedRegion"]["startLine"].as_u64().unwrap() as usize - 1).unwrap();
    assert_eq!(line.trim(), "\"x = 1  # samedevice: ignore\"");
}

#[test]
fn people_see_the_cell() {
    let project =
        Project::new(&[("nb.ipynb", &notebook(&[GUARDED, "y = 1\nx.cuda().sum()\nz = 2", "z = 3"]))]);
    let full = project.run("check --isolated").stdout;
    assert!(full.contains("nb.ipynb:cell 2:2:1"), "{full}");
    for row in ["1 │ y = 1", "2 │ x.cuda().sum()", "3 │ z = 2"] {
        assert!(full.contains(row), "{full}");
    }
    let project = Project::new(&[("nb.ipynb", &notebook(&["x = 0", "y = f(", "z = 3"]))]);
    let full = project.run("check --isolated").stdout;
    assert!(full.contains("1 │ y = f(") && !full.contains("x = 0") && !full.contains("z = 3"), "{full}");
}

#[test]
fn fingerprints_do_not_depend_on_other_cells() {
    let prints = |cells: &[&str]| {
        let project = Project::new(&[("nb.ipynb", &notebook(cells))]);
        let found = project.run("check --isolated --output-format json").stdout;
        let found: Value = serde_json::from_str(&found).unwrap();
        let all = found.as_array().unwrap().iter().filter(|f| f["code"] == "SD101");
        all.map(|f| f["fingerprint"].to_string()).collect::<Vec<_>>()
    };
    let before = prints(&[GUARDED, "x.cuda().sum()"]);
    assert_eq!(before.len(), 1);
    assert_eq!(
        prints(&["# md", "import os", GUARDED, "%%bash\nls", "y = 1", "x.cuda().sum()", "z = 3"]),
        before
    );
    assert_eq!(prints(&["y = f(", GUARDED, "%time y = 1", "x.cuda().sum()"]), before, "a broken one");
}

#[test]
fn imports_are_those_of_the_notebooks_folder() {
    let project = Project::new(&[
        ("pyproject.toml", ""),
        ("n/nb.ipynb", &notebook(&["from helper import make", "import torch\nmake(2) + torch.ones(2)"])),
        ("n/helper.py", "import torch\ndef make(n):\n    return torch.ones(n, device='cuda')\n"),
        ("helper.py", "import torch\ndef make(n):\n    return torch.ones(n)\n"),
        ("n/nb.py", "x = 1\n"),
    ]);
    // What the helper needs is told where a program comes to it.
    let told = ["n/nb.ipynb:cell 2:2:1: error: SD101", "n/nb.ipynb:cell 2:2:1: error: SD201"];
    assert_eq!(lines(&project, "n/nb.ipynb"), told);
}

#[test]
fn a_notebook_calls_what_the_project_has() {
    // Everybody who calls `move` asks first; the notebook is one of them.
    let library = "import torch\n\n\ndef move(x):\n    return x.cuda()\n";
    let asks = "from lib import move\nimport torch\nif not torch.cuda.is_available():\n    raise SystemExit(1)\nmove(1)\n";
    let project = Project::new(&[("pyproject.toml", ""), ("lib.py", library), ("run.py", asks)]);
    assert_eq!(lines(&project, "lib.py"), [""; 0]);
    project.write("nb.ipynb", notebook(&["from lib import move", "move(torch.ones(2))"]));
    assert_eq!(lines(&project, "lib.py"), ["lib.py:5:12: info: SD101"]);
}

#[test]
fn scripts_with_cells_are_plain_python() {
    let script = "# %% [markdown]\n# # Title\n\n# %%\nimport torch\nx = torch.ones(2)\n\n# %% tags=[\"a\"]\n# %matplotlib inline\nx.cuda().sum()\n";
    let project = Project::new(&[("script.py", script)]);
    assert_eq!(lines(&project, ""), ["script.py:10:1: error: SD101"]);
}

#[test]
fn cells_with_an_unknown_magic_are_counted() {
    let project =
        Project::new(&[("nb.ipynb", &notebook(&[GUARDED, "%%foo\nx.cuda().numpy()", "%%bash\nls"]))]);
    let run = project.run("check --isolated --verbose");
    assert!(run.stderr.contains("Not checked: 1 cell with an unknown cell magic\n"), "{run:?}");
    assert!(run.stderr.contains("`nb.ipynb:cell 2`: nothing is known about `%%foo`"), "{run:?}");
    assert_eq!((run.code, project.run("check --isolated --strict").code), (Some(0), Some(2)));
}
