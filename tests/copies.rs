//! Copies that a project keeps as they are: one cause is one finding, whatever part of the project is linted.

mod support;

use support::Project;

const MARK: (&str, &str) = ("pyproject.toml", "[project]\nname = \"x\"\n");
const BLOCK: &str = "import torch\nfrom torch import nn\n\n\nclass Block(nn.Module):\n    def forward(self, x):\n        return x + torch.zeros(3, device=\"cuda\")\n";
const MASK: &str = "import torch\n\n\ndef mask(n):\n    return torch.zeros(n, device=\"cuda\")\n";

/// Where findings are told, by file and row, of what is linted so.
fn told(project: &Project, what: &str) -> Vec<String> {
    let run = project.run(&format!("check --isolated --select SD1,SD2,SD3 --output-format concise {what}"));
    let place = |line: &str| Some(line.split(':').take(2).collect::<Vec<_>>().join(":"));
    run.stdout.lines().filter(|line| line.contains(": SD")).filter_map(place).collect()
}

/// A file with this header, which says that it is generated from `nets/modular.py`.
fn generated(header: &str) -> Project {
    let text = format!("{header}\n# Do not edit it.\n{BLOCK}");
    Project::new(&[MARK, ("nets/modular.py", BLOCK), ("nets/modeling.py", &text)])
}

#[test]
fn what_is_generated_tells_for_its_source() {
    let project = generated("#   This file was generated from src/nets/modular.py. 🚨");
    for what in [".", "nets", "nets/modeling.py"] {
        assert_eq!(told(&project, what), ["nets/modeling.py:9"], "{what}");
    }
    assert!(told(&project, "nets/modular.py").is_empty());
    let run = project.run("check --isolated --select SD305 --output-format json nets/modeling.py");
    assert!(run.stdout.contains("it is generated from this"), "{}", run.stdout);
}

#[test]
fn files_that_do_not_say_so_are_no_copies() {
    for header in ["# The same as modular.py.", "# This file was generated.", "# generated from other.py"] {
        let project = generated(header);
        assert_eq!(told(&project, "."), ["nets/modeling.py:9", "nets/modular.py:7"], "{header}");
        assert_eq!(told(&project, "nets/modular.py"), ["nets/modular.py:7"], "{header}");
    }
}

#[test]
fn a_source_may_say_more_than_what_is_generated() {
    let more = format!("{BLOCK}\n\ndef more(n):\n    return torch.zeros(n, device=\"cuda\")\n");
    let project = generated("# generated from modular.py");
    project.write("nets/modular.py", more);
    assert_eq!(told(&project, "."), ["nets/modeling.py:9", "nets/modular.py:11"]);
    assert_eq!(told(&project, "nets/modular.py"), ["nets/modular.py:11"]);
}

#[test]
fn several_files_may_be_generated_from_one() {
    let project = generated("# generated from modular.py");
    project.write("nets/zz.py", "# generated from modular.py\nimport torch\n");
    project.write("nets/configuration.py", "# generated from modular.py\nimport torch\n");
    assert_eq!(told(&project, "."), ["nets/modeling.py:9"]);
    assert!(told(&project, "nets/modular.py").is_empty());
}

#[test]
fn a_generated_file_that_is_not_linted_tells_nothing() {
    let project = generated("# generated from modular.py");
    project.write(
        "pyproject.toml",
        "[project]\nname = \"x\"\n\n[tool.samedevice]\nexclude = [\"nets/modeling.py\"]\n",
    );
    let run = project.run("check --select SD305 --output-format concise .");
    assert!(run.stdout.contains("nets/modular.py:7"), "{}", run.stdout);
}

/// A function in a file of its own, and another one under this comment.
fn copied(comment: &str, body: &str) -> Project {
    let text = format!("import torch\n\n\n{comment}\ndef mask(n):\n    {body}\n");
    Project::new(&[MARK, ("lib/__init__.py", ""), ("lib/masks.py", MASK), ("lib/other.py", &text)])
}

const SAME: &str = "return torch.zeros(n, device=\"cuda\")";

#[test]
fn a_copy_leaves_it_to_what_it_was_copied_from() {
    for comment in ["# Copied from lib.masks.mask", "# Copied from lib.masks.mask with n->m\n# and more"] {
        let project = copied(comment, SAME);
        assert_eq!(told(&project, "."), ["lib/masks.py:5"], "{comment}");
        assert!(told(&project, "lib/other.py").is_empty(), "{comment}");
        assert_eq!(told(&project, "lib/masks.py"), ["lib/masks.py:5"], "{comment}");
    }
}

#[test]
fn what_was_changed_in_a_copy_is_told_there() {
    let project = copied("# Copied from lib.masks.mask", "return torch.ones(n, device=\"cuda\")");
    assert_eq!(told(&project, "lib/other.py"), ["lib/other.py:6"]);
    for comment in ["# Copied from other.masks.mask", "# Adapted from lib.masks.mask", "# lib.masks.mask"] {
        let project = copied(comment, SAME);
        assert_eq!(told(&project, "lib/other.py"), ["lib/other.py:6"], "{comment}");
        assert_eq!(told(&project, "."), ["lib/masks.py:5", "lib/other.py:6"], "{comment}");
    }
}

#[test]
fn copies_of_each_other_are_told_of_both() {
    let project = copied("# Copied from lib.masks.mask", SAME);
    project.write("lib/masks.py", MASK.replace("def mask", "# Copied from lib.other.mask\ndef mask"));
    assert_eq!(told(&project, "."), ["lib/masks.py:6", "lib/other.py:6"]);
}

#[test]
fn a_comment_that_suppresses_is_copied_too() {
    let ignored = format!("{SAME}  # samedevice: ignore[SD101]");
    let project = copied("# Copied from lib.masks.mask", &ignored);
    project.write("lib/masks.py", MASK.replace(SAME, &ignored));
    let run = project.run("check --isolated --select SD101,SD002 --output-format concise .");
    assert!(!run.stdout.contains(": SD"), "{}", run.stdout);
}
