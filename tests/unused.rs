//! What nobody in an application names, nobody gives anything to.

mod support;

use support::Project;

/// Seven files, so that with the one that is judged it is no sample of code any more.
const OTHERS: [(&str, &str); 7] = [
    ("LICENSE", "free\n"),
    ("train.py", "import helpers.shapes\n"),
    ("eval.py", "import helpers.shapes\n"),
    ("data.py", "ROWS = 3\n"),
    ("options.py", "SIZE = 4\n"),
    ("logs.py", "LEVEL = 1\n"),
    ("plots.py", "COLOR = \"red\"\n"),
];
const PACKAGE: (&str, &str) = ("helpers/__init__.py", "");
const SHAPES: &str = "import torch\n\n\ndef centers(masks: torch.Tensor):\n    rows = torch.arange(masks.shape[-1])\n    return (masks * rows).sum(-1) / masks.sum(-1)\n";

/// The findings of SD204 when all is linted, and when the file is linted alone.
fn found(shapes: &str, more: &[(&str, &str)]) -> (usize, usize) {
    told("SD204", shapes, more)
}

/// The same of another rule.
fn told(code: &str, shapes: &str, more: &[(&str, &str)]) -> (usize, usize) {
    let mut files = OTHERS.to_vec();
    files.extend([PACKAGE, ("extra.py", "X = 1\n"), ("helpers/shapes.py", shapes)]);
    files.extend(more);
    let project = Project::new(&files);
    let count = |path: &str| {
        let run = project.run(&format!("check --isolated --select {code} --output-format concise {path}"));
        run.stdout.lines().filter(|line| line.contains(code)).count()
    };
    (count("."), count("helpers/shapes.py"))
}

#[test]
fn what_no_file_names_is_given_nothing() {
    assert_eq!(found(SHAPES, &[]), (0, 0));
}

#[test]
fn a_comment_and_a_namesake_are_no_use() {
    let namesake = ("copies.py", "# centers of masks\ndef centers(rows):\n    return rows\n");
    assert_eq!(found(SHAPES, &[namesake]), (0, 0));
}

#[test]
fn a_mention_is_a_use_wherever_it_stands() {
    let caller = (
        "boxes.py",
        "from helpers.shapes import centers\n\n\ndef boxes(masks):\n    return centers(masks)\n",
    );
    let notebook = ("demo.ipynb", "{\"cells\": [{\"source\": [\"helpers.shapes.centers(masks)\"]}]}\n");
    let settings = ("run.yaml", "transform: centers\n");
    for use_ in [caller, notebook, settings] {
        assert_eq!(found(SHAPES, &[use_]), (1, 1), "{}", use_.0);
    }
}

#[test]
fn tables_and_names_that_are_put_together_may_use_it() {
    let registered = format!(
        "from helpers import registered\n\n\n{}",
        SHAPES.replace("def centers", "@registered\ndef centers")
    );
    let package = ("helpers/registry.py", "def registered(f):\n    return f\n");
    assert_eq!(found(&registered, &[package]), (1, 1));
    let looked_up =
        ("pick.py", "import helpers.shapes\n\n\ndef pick(name):\n    return getattr(helpers.shapes, name)\n");
    assert_eq!(found(SHAPES, &[looked_up]), (1, 1));
}

#[test]
fn a_library_has_its_users_elsewhere() {
    let library = ("pyproject.toml", "[project]\nname = \"shapes\"\nversion = \"1\"\n");
    assert_eq!(found(SHAPES, &[library]), (1, 1));
}

#[test]
fn a_few_files_are_a_sample() {
    let project = Project::new(&[("LICENSE", "free\n"), ("shapes.py", SHAPES)]);
    let run = project.run("check --isolated --select SD204 --output-format concise .");
    assert_eq!(run.stdout.lines().filter(|line| line.contains("SD204")).count(), 1);
}

#[test]
fn what_only_unused_code_names_is_not_used_either() {
    let shapes = format!("{SHAPES}\n\ndef boxes(masks):\n    return centers(masks)\n");
    assert_eq!(found(&shapes, &[]), (0, 0));
    let user = ("run.py", "from helpers.shapes import boxes\n\nprint(boxes)\n");
    assert_eq!(found(&shapes, &[user]), (1, 1));
}

#[test]
fn a_module_that_nobody_makes_chooses_nothing() {
    let module = "import torch\nfrom torch import nn\n\n\nclass Edges(nn.Module):\n    def forward(self, x):\n        return x + torch.ones(3).cuda()\n";
    assert_eq!(told("SD305", module, &[]), (0, 0));
    let user = ("run.py", "from helpers.shapes import Edges\n\nprint(Edges())\n");
    assert_eq!(told("SD305", module, &[user]), (1, 1));
}

#[test]
fn a_method_may_be_looked_up_by_how_its_name_begins() {
    let module = "import torch\nfrom torch import nn\n\n\nclass Edges(nn.Module):\n    def loss_of(self, x):\n        return x + torch.ones(3).cuda()\n";
    let user = |name: &str| {
        format!("from helpers.shapes import Edges\n\n\ndef run(name):\n    return getattr(Edges(), {name})\n")
    };
    let count = |name: &str| told("SD305", module, &[("run.py", &user(name))]).0;
    assert_eq!(count("\"net_\" + name"), 0);
    assert_eq!(count("\"loss_\" + name"), 1);
    assert_eq!(count("name"), 1);
}
