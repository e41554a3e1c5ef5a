//! What the project's own `torch.save` says of a file that is loaded, whatever part of the project is linted.

mod support;

use support::Project;

const MARK: (&str, &str) = ("pyproject.toml", "[project]\nname = \"x\"\n");
const LOAD: &str = "import torch\n\n\ndef restore(model, folder):\n    model.load_state_dict(torch.load(f\"{folder}/best_weights.pt\"))\n";

/// The findings of SD105 with a program that saves in this way, when all is linted and when the one that loads is linted alone.
fn both(save: &str) -> (usize, usize) {
    let project = Project::new(&[MARK, ("train.py", save), ("infer.py", LOAD)]);
    let count = |path: &str| {
        let run = project.run(&format!("check --isolated --select SD105 --output-format concise {path}"));
        run.stdout.lines().filter(|line| line.contains("SD105 ")).count()
    };
    (count("."), count("infer.py"))
}

fn saving(value: &str, path: &str) -> String {
    format!("import torch\n\n\ndef keep(model, folder, state):\n    torch.save({value}, {path})\n")
}

const PATH: &str = "folder + \"/best_weights.pt\"";

#[test]
fn copies_on_the_cpu_are_told_of_none() {
    assert_eq!(both(&saving("{k: v.cpu() for k, v in model.state_dict().items()}", PATH)), (0, 0));
    assert_eq!(both(&saving("model.cpu().state_dict()", PATH)), (0, 0));
    assert_eq!(both(&saving("torch.load(folder, map_location=\"cpu\")[\"model\"]", PATH)), (0, 0));
}

#[test]
fn what_is_wherever_the_model_is_is_told() {
    assert_eq!(both(&saving("model.state_dict()", PATH)), (1, 1));
    assert_eq!(both(&saving("{\"model\": state.cpu(), \"other\": model.state_dict()}", PATH)), (1, 1));
}

#[test]
fn what_is_not_known_is_told() {
    assert_eq!(both(&saving("state", PATH)), (1, 1));
}

#[test]
fn the_callers_of_a_helper_name_the_file_and_what_is_in_it() {
    let text = "import torch\n\n\ndef write(path, value):\n    torch.save(value, path)\n\n\ndef keep(model, folder):\n    write(folder + \"/best_weights.pt\", {k: v.cpu() for k, v in model.items()})\n";
    assert_eq!(both(text), (0, 0));
}

const NESTED: &str = "examples/video/";

/// The findings in a project that lies in another one, when that saves in this way and is imported by this line, and when only the file
/// with the load is linted.
fn nested(outer: &[(&str, &str)], line: &str, save: &str) -> (usize, usize) {
    let place = |name: &str| format!("{NESTED}{name}");
    let [mark, task, load, inner] = ["setup.py", "task.py", "load.py", "keep.py"].map(place);
    let text = "import torch\n\n\ndef restore(model, path):\n    model.load_state_dict(torch.load(path))\n";
    let files = [(&*mark, "import setuptools\n"), (&*task, line), (&*load, text), (&*inner, save)];
    let project = Project::new(&[outer, &files].concat());
    let count = |path: &str| {
        let run = project.run(&format!("check --isolated --select SD105 --output-format concise {path}"));
        run.stdout.lines().filter(|line| line.contains("SD105 ")).count()
    };
    (count("."), count(&load))
}

#[test]
fn what_a_framework_writes_its_examples_read() {
    let saves = saving("{k: v.cpu() for k, v in state.items()}", "folder");
    let framework = [MARK, ("frame/__init__.py", ""), ("frame/trainer.py", &*saves)];
    assert_eq!(nested(&framework, "from frame import trainer\n", ""), (0, 0));
    assert_eq!(nested(&framework, "import frame.trainer\n", ""), (0, 0));
    assert_eq!(nested(&framework, "from .frame import trainer\n", ""), (1, 1), "another one");
    assert_eq!(nested(&framework, "import torch\n", ""), (1, 1), "made for something else");
    let own = saving("model.state_dict()", "folder");
    assert_eq!(nested(&framework, "import frame\n", &own), (1, 1), "it writes files itself");
    assert_eq!(nested(&framework[1..], "import frame\n", ""), (1, 1), "beside it by chance");
    let gpu = [MARK, ("frame/__init__.py", ""), ("frame/trainer.py", &*own)];
    assert_eq!(nested(&gpu, "import frame\n", ""), (1, 1), "wherever the model is");
}
