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

/// What works with CUDA, a clock and an optimizer with methods of the same name, and who calls them.
const WORKER: &str = "import torch\n\n\nclass Worker:\n    def step(self, n):\n        return torch.zeros(n, device=\"cuda\")\n\n\nclass Clock:\n    def step(self):\n        self.now = 1\n\n\nclass Runner:\n    def __init__(self, clock):\n        self.clock = Clock()\n        self.optimizer = torch.optim.SGD([torch.zeros(1)], 0.1)\n\n    def tick(self):\n        self.clock.step()\n        self.optimizer.step()\n";
const TRAINER: &str = "import torch\nfrom worker import Runner, Worker\n\n\nclass Trainer:\n    def __init__(self):\n        self.worker = Worker()\n\n    def train(self):\n        torch.cuda.set_device(0)\n        for n in range(3):\n            self.worker.step(n)\n\n\ndef main():\n    Runner(None).tick()\n    Trainer().train()\n\n\nmain()\n";

#[test]
fn who_calls_a_method_of_another_class_does_not_call_this_one() {
    let told = |worker: &str| {
        let project = Project::new(&[(".git/HEAD", ""), ("worker.py", worker), ("main.py", TRAINER)]);
        let run = project.run("check --isolated --select SD101 --output-format concise worker.py");
        run.stdout.lines().filter(|line| line.contains("SD101 ")).count()
    };
    assert_eq!(told(WORKER), 0);
    // What is given may be anything, and what is copied may be the worker.
    assert_eq!(told(&WORKER.replace("= Clock()", "= clock")), 1);
    assert_eq!(told(&WORKER.replace("= Clock()", "= Worker()")), 1);
    assert_eq!(told(&WORKER.replace("class Clock:", "class Clock(Worker):")), 1);
}

#[test]
fn what_is_looked_up_by_a_name_that_is_put_together_may_be_called_so() {
    let told = |more: &str| {
        let main = format!("{TRAINER}\n\n{more}");
        let project = Project::new(&[(".git/HEAD", ""), ("worker.py", WORKER), ("main.py", &main)]);
        let run = project.run("check --isolated --select SD101 --output-format concise worker.py");
        run.stdout.lines().filter(|line| line.contains("SD101 ")).count()
    };
    // What is only shown, compared or kept is not called, and other objects have methods of their own.
    for silent in [
        "def show(args, names):\n    print([getattr(args, name) for name in names])\n",
        "def show(args, name):\n    value = getattr(args, name)\n    setattr(args, name, str(value))\n",
        "def show(args, name):\n    if getattr(args, name) is None:\n        print(name)\n",
        "class Reader:\n    def read(self, name):\n        return getattr(self, name)()\n",
    ] {
        assert_eq!(told(silent), 0, "{silent}");
    }
    for called in [
        "def run(worker, name):\n    getattr(worker, name)(3)\n",
        "def run(worker, name):\n    method = getattr(worker, name)\n    return method(3)\n",
        "def run(worker, name):\n    return getattr(worker, name)\n",
        "class Reader(Worker):\n    def read(self, name):\n        return getattr(self, name)()\n",
    ] {
        assert_eq!(told(called), 1, "{called}");
    }
}
