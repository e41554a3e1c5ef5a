//! What callers in other files say of methods that they call through objects.

mod support;

use support::Project;

/// A helper that counts on the CPU, as a method of this name.
fn helper(method: &str) -> String {
    format!(
        "import torch\n\n\nclass Masks:\n    def {method}(self, lengths):\n        return torch.arange(40)[None] < lengths.long()[:, None]\n\n\nclass Nothing:\n    def {method}(self, lengths):\n        return None\n"
    )
}

/// The findings of SD204 in the helper, with a file that uses it.
fn told(method: &str, user: &str) -> usize {
    let helper = helper(method);
    let project = Project::new(&[(".git/HEAD", ""), ("masks.py", helper.as_str()), ("user.py", user)]);
    let run = project.run("check --isolated --select SD204 --output-format concise masks.py");
    run.stdout.lines().filter(|line| line.contains("SD204 ")).count()
}

/// A module that keeps the helper and gives it, through a method of its own, what this expression makes.
fn keeping(call: &str, lengths: &str) -> String {
    format!(
        "import torch\nfrom masks import Masks\nfrom torch import nn\n\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.masks = Masks()\n        self.layer = nn.Linear(4, 4)\n\n    def forward(self, x, texts):\n        return self.masked(x, {lengths})\n\n    def masked(self, x, lengths):\n        mask = {call}\n        return self.layer(x) * mask.to(x.device)\n"
    )
}

const HOST: &str = "torch.tensor([len(t) for t in texts])";
const GPU: &str = "torch.tensor([len(t) for t in texts], device=\"cuda\")";

#[test]
fn a_kept_object_is_called() {
    let call = "self.masks(lengths)";
    assert_eq!(told("__call__", &keeping(call, HOST)), 0);
    assert_eq!(told("__call__", &keeping(call, GPU)), 1);
}

#[test]
fn a_method_of_a_kept_object_is_called() {
    let call = "self.masks.upto(lengths)";
    assert_eq!(told("upto", &keeping(call, HOST)), 0);
    assert_eq!(told("upto", &keeping(call, GPU)), 1);
    // Who may set it to what nobody knows may set it to one that is given anything.
    let open = keeping(call, HOST).replace("self.masks = Masks()", "self.masks = make(Masks)");
    assert_eq!(told("upto", &open), 1);
}

#[test]
fn a_class_is_picked_out_of_a_table() {
    let user = |lengths: &str| {
        format!(
            "import torch\nfrom masks import Masks, Nothing\n\nKINDS = {{\"masks\": Masks, \"nothing\": Nothing}}\n\n\ndef main(kind, texts):\n    masks = KINDS[kind]()\n    lengths = {lengths}\n    return masks.upto(lengths.flatten())\n"
        )
    };
    assert_eq!(told("upto", &user(HOST)), 0);
    assert_eq!(told("upto", &user(GPU)), 1);
}

#[test]
fn objects_of_a_librarys_classes_are_anybodys() {
    let helper = helper("upto");
    let user = keeping("self.masks.upto(lengths)", HOST);
    let project = Project::new(&[
        ("pyproject.toml", "[build-system]\nrequires = [\"hatchling\"]\n\n[project]\nname = \"x\"\n"),
        ("masks.py", helper.as_str()),
        ("user.py", user.as_str()),
    ]);
    let run = project.run("check --isolated --select SD204 --output-format concise masks.py");
    assert_eq!(run.stdout.lines().filter(|line| line.contains("SD204 ")).count(), 1);
}

#[test]
fn an_object_in_a_variable_is_called() {
    let user = |lengths: &str| {
        format!(
            "import torch\nfrom masks import Masks\n\n\ndef counted(texts):\n    return {lengths}\n\n\ndef main(texts):\n    masks = Masks()\n    return masks(counted(texts))\n"
        )
    };
    assert_eq!(told("__call__", &user(HOST)), 0);
    assert_eq!(told("__call__", &user(GPU)), 1);
}
