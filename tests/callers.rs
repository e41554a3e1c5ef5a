//! What callers in other files say of a function, whatever part of the project is linted.

mod support;

use support::Project;

const MARK: (&str, &str) = ("pyproject.toml", "[project]\nname = \"x\"\n");
/// Refuses to go on without CUDA, unless it is told not to.
const START: (&str, &str) = (
    "start.py",
    "import torch\n\n\ndef start(seed, anywhere=False):\n    torch.manual_seed(seed)\n    if not anywhere:\n        assert torch.cuda.is_available(), \"no GPU\"\n",
);
const WORK: (&str, &str) = (
    "lib/work.py",
    "import torch\n\n\nclass Worker:\n    def __init__(self, size):\n        self.size = size\n\n    def work(self):\n        return helper(self.size)\n\n\ndef helper(size):\n    x = torch.zeros(size).cuda()\n    torch.cuda.synchronize()\n    return x.sum()\n",
);
const PACKAGE: (&str, &str) = ("lib/__init__.py", "");

/// The files with findings of SD101, when all is linted and when this file is linted alone.
fn both(files: &[(&str, &str)], alone: &str) -> (usize, usize) {
    let project = Project::new(files);
    let count = |path: &str| {
        let run = project.run(&format!("check --isolated --min-confidence low --fail-on-severity info --select SD101 --output-format concise {path}"));
        run.stdout.lines().filter(|line| line.contains(": SD101") || line.contains("SD101 ")).count()
    };
    (count("."), count(alone))
}

/// With a script of this text.
fn script(text: &str, more: &[(&str, &str)]) -> (usize, usize) {
    let mut files = vec![MARK, START, WORK, PACKAGE, ("train.py", text)];
    files.extend(more);
    both(&files, "lib/work.py")
}

const AFTER: &str = "from lib.work import Worker\nfrom start import start\n\n\ndef main():\n    start(0)\n    print(Worker(3).work())\n\n\nif __name__ == \"__main__\":\n    main()\n";

#[test]
fn what_all_callers_only_reach_with_cuda_is_told_of_none() {
    assert_eq!(script(AFTER, &[]), (0, 0));
}

#[test]
fn one_caller_that_has_not_asked_is_enough() {
    let other = ("eval.py", "from lib.work import helper\n\n\ndef main(size):\n    print(helper(size))\n");
    assert_eq!(script(AFTER, &[other]), (1, 1));
}

#[test]
fn whom_nobody_calls_anybody_may_call() {
    assert_eq!(script("from start import start\n\nstart(0)\n", &[]), (1, 1));
}

#[test]
fn tests_are_no_callers() {
    let test = (
        "tests/test_work.py",
        "from lib.work import helper\n\n\ndef test_it():\n    assert helper(3) == 0\n",
    );
    let one = script(AFTER, &[test]);
    assert_eq!(one.1, 0);
}

#[test]
fn a_refusal_may_be_switched_off() {
    let off = AFTER.replace("start(0)", "start(0, anywhere=True)");
    assert_eq!(script(&off, &[]), (1, 1));
}

#[test]
fn what_comes_before_the_refusal_does_not_count() {
    let before = AFTER.replace(
        "    start(0)\n    print(Worker(3).work())\n",
        "    print(Worker(3).work())\n    start(0)\n",
    );
    assert_eq!(script(&before, &[]), (1, 1));
}

#[test]
fn a_branch_for_machines_with_cuda_is_as_good() {
    let branch = "import torch\nfrom lib import work\n\n\ndef run(name):\n    if torch.cuda.is_available():\n        return work.Worker(len(name))\n    return None\n";
    assert_eq!(script(branch, &[]), (0, 0));
}

#[test]
fn what_only_mentions_itself_is_behind_nothing() {
    let circle = "import torch\n\n\ndef ping(n):\n    torch.cuda.synchronize()\n    return pong(n)\n\n\ndef pong(n):\n    return ping(n)\n";
    assert_eq!(both(&[MARK, START, ("circle.py", circle)], "circle.py"), (1, 1));
}

#[test]
fn what_a_function_imports_for_itself_counts_where_it_is_used() {
    let inside = "def main():\n    from lib.work import Worker\n    from start import start\n\n    start(0)\n    print(Worker(3).work())\n\n\nif __name__ == \"__main__\":\n    main()\n";
    assert_eq!(script(inside, &[]), (0, 0));
}

/// A module that moves what it is given.
const NET: (&str, &str) = (
    "net.py",
    "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, anchors):\n        super().__init__()\n        self.anchors = anchors\n        self.linear = nn.Linear(3, 3)\n\n    def forward(self, x):\n        return self.linear(x.cuda())\n",
);
/// What works with it, and makes its anchors.
const TRAIN: (&str, &str) = (
    "train.py",
    "import torch\nfrom net import Net\nfrom settings import Settings\n\n\ndef main():\n    settings = Settings()\n    net = Net(settings.anchors)\n    net.cuda()\n    print(net(torch.zeros(3)))\n\n\nif __name__ == \"__main__\":\n    main()\n",
);

/// The findings of SD305 in the module, when all is linted and when its file is linted alone, with a class of these settings.
fn in_module(settings: &str) -> (usize, usize) {
    let project = Project::new(&[MARK, NET, TRAIN, ("settings.py", settings)]);
    let count = |path: &str| {
        let run = project.run(&format!("check --isolated --min-confidence low --fail-on-severity info --select SD305 --output-format concise {path}"));
        run.stdout.lines().filter(|line| line.contains("net.py") && line.contains("SD305 ")).count()
    };
    (count("."), count("net.py"))
}

#[test]
fn a_module_is_told_though_its_script_needs_cuda() {
    let settings =
        "import torch\n\n\nclass Settings:\n    def __init__(self):\n        self.anchors = torch.zeros(3)\n";
    assert_eq!(in_module(settings), (1, 1));
}

#[test]
fn a_module_that_comes_after_a_constructor_that_needs_cuda_is_not_told() {
    let settings = "import torch\n\n\nclass Settings:\n    def __init__(self):\n        self.anchors = torch.zeros(3).cuda()\n";
    assert_eq!(in_module(settings), (0, 0));
    let guarded = "import torch\n\n\nclass Settings:\n    def __init__(self):\n        self.anchors = torch.zeros(3)\n        if torch.cuda.is_available():\n            self.anchors = self.anchors.cuda()\n";
    assert_eq!(in_module(guarded), (1, 1));
}

#[test]
fn nor_is_one_that_comes_after_a_file_that_needs_cuda_to_be_imported() {
    let settings = "import torch\n\n\nclass Settings:\n    anchors = torch.zeros(3).cuda()\n";
    assert_eq!(in_module(settings), (0, 0));
}

#[test]
fn what_an_object_calls_comes_after_its_constructor_whatever_the_files_are_called() {
    let asr = "import torch\nfrom move import there\n\n\nclass Worker:\n    def __init__(self):\n        if not torch.cuda.is_available():\n            raise RuntimeError(\"no GPU\")\n\n    def run(self, x):\n        return there(x)\n";
    let moves = "def there(x):\n    return x.cuda()\n";
    for (class, script) in [("asr", "run"), ("work", "all")] {
        let text =
            format!("import torch\nfrom {class} import Worker\n\nprint(Worker().run(torch.zeros(2)))\n");
        let (class, script) = (format!("{class}.py"), format!("{script}.py"));
        let files = [(".git/HEAD", ""), ("move.py", moves), (&*class, asr), (&*script, &*text)];
        let run = Project::new(&files).run("check --isolated --min-confidence low --fail-on-severity info --select SD101 --output-format concise move.py");
        assert!(!run.stdout.contains("SD101 "), "{class}: {}", run.stdout);
    }
}

#[test]
fn a_constructor_that_needs_cuda_is_told_itself() {
    let net = NET.1.replace("= anchors", "= anchors.cuda()").replace("x.cuda()", "x");
    let settings =
        "import torch\n\n\nclass Settings:\n    def __init__(self):\n        self.anchors = torch.zeros(3)\n";
    let project = Project::new(&[MARK, ("net.py", &net), TRAIN, ("settings.py", settings)]);
    let run = project.run("check --isolated --min-confidence low --fail-on-severity info --select SD305 --output-format concise .");
    assert_eq!(run.stdout.lines().filter(|line| line.contains("net.py:8")).count(), 1, "{}", run.stdout);
}

/// A module whose method only works on the CPU.
const SPECTRUM: (&str, &str) = (
    "spectrum.py",
    "import torch\nfrom torch import nn\n\n\nclass Mel(nn.Module):\n    def __init__(self, size):\n        super(Mel, self).__init__()\n        self.register_buffer(\"basis\", torch.rand(size, size))\n\n    def spectrum(self, y):\n        return self.basis @ torch.fft.rfft(y).abs().cpu()\n",
);
/// What works with it, and never moves it.
const PREPARE: &str = "import torch\nfrom spectrum import Mel\n\n\ndef one(path, mel):\n    return mel.spectrum(torch.load(path, map_location=\"cpu\"))\n\n\ndef main(paths):\n    mel = Mel(80)\n    return [one(path, mel) for path in paths]\n\n\nclass Prepare:\n    def __init__(self, size):\n        self.mel = Mel(size)\n\n    def run(self, y):\n        return self.mel.spectrum(y)\n";

/// The findings of SD201 in the module, when all is linted and when its file is linted alone.
fn unmoved(files: &[(&str, &str)]) -> (usize, usize) {
    let mut all = vec![(".git/HEAD", ""), SPECTRUM];
    all.extend(files);
    let project = Project::new(&all);
    let count = |path: &str| {
        let run = project.run(&format!("check --isolated --min-confidence low --fail-on-severity info --select SD201 --output-format concise {path}"));
        run.stdout.lines().filter(|line| line.contains("spectrum.py") && line.contains("SD201 ")).count()
    };
    (count("."), count("spectrum.py"))
}

#[test]
fn a_module_that_the_project_makes_and_never_moves_stays_on_the_cpu() {
    assert_eq!(unmoved(&[("prepare.py", PREPARE)]), (0, 0));
}

#[test]
fn a_module_that_nobody_makes_may_be_moved_by_others() {
    assert_eq!(unmoved(&[]), (1, 1));
    // And so is what a library makes.
    assert_eq!(unmoved(&[MARK, ("prepare.py", PREPARE)]), (1, 1));
}

#[test]
fn a_module_that_may_be_moved_is_told() {
    for (from, to) in [
        // In a function that it is given to.
        ("    return mel.spectrum(torch", "    mel.to(\"cuda\")\n    return mel.spectrum(torch"),
        // By what nobody sees.
        ("    mel = Mel(80)\n", "    mel = wrap(Mel(80))\n"),
        // As a part of a module that nobody makes.
        ("class Prepare:", "class Prepare(torch.nn.Module):"),
        // By whoever calls.
        ("    return [one(path, mel) for path in paths]", "    return mel"),
    ] {
        let text = PREPARE.replace(from, to);
        assert_ne!(text, PREPARE);
        let caller = "import sys\nfrom prepare import main\n\nmain(sys.argv[1:]).cuda()\n";
        assert_eq!(unmoved(&[("prepare.py", &text), ("all.py", caller)]), (1, 1), "{to}");
    }
}

#[test]
fn what_only_constructors_ask_is_asked_before_the_module_moves() {
    let body = "import torch\nfrom torch import nn\n\n\nclass Body(nn.Module):\n    def __init__(self, shape):\n        super().__init__()\n        self.shape = shape\n        self.conv = nn.Conv2d(shape[0], 8, 3)\n\n    def forward(self, x):\n        return self.conv(x)\n\n    def size(self):\n        return self.conv(torch.zeros(1, *self.shape)).view(1, -1).size(1)\n";
    let net = "from body import Body\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, shape):\n        super().__init__()\n        self.body = Body(shape)\n        self.head = nn.Linear(self.body.size(), 2)\n\n    def forward(self, x):\n        return self.head(self.body(x).flatten(1))\n";
    let count = |net: &str| {
        let project = Project::new(&[(".git/HEAD", ""), ("body.py", body), ("net.py", net)]);
        let run = project.run("check --isolated --min-confidence low --fail-on-severity info --select SD204 --output-format concise body.py");
        run.stdout.lines().filter(|line| line.contains("SD204 ")).count()
    };
    assert_eq!(count(net), 0);
    assert_eq!(count(&format!("{net}\n    def again(self):\n        return self.body.size()\n")), 1);
}

/// A function of a library that takes for granted that it is given a tensor of the CPU.
const BOXES: (&str, &str) = (
    "lib/boxes.py",
    "import torch\n\n\ndef scaled(boxes: torch.Tensor, width, height):\n    return boxes * torch.tensor([width, height])\n",
);

/// The findings of SD201 and SD204 in all files, and in the library's alone.
fn mixed(files: &[(&str, &str)]) -> (usize, usize) {
    let mut all = vec![MARK, PACKAGE, BOXES];
    all.extend(files);
    let project = Project::new(&all);
    let count = |path: &str| {
        let run =
            project.run(&format!("check --isolated --min-confidence low --fail-on-severity info --select SD201,SD204 --output-format concise {path}"));
        run.stdout.lines().filter(|line| line.contains("lib/boxes.py")).count()
    };
    (count("."), count("lib/boxes.py"))
}

const LABELS: (&str, &str) = (
    "labels.py",
    "import numpy as np\nimport torch\n\nfrom lib.boxes import scaled\n\n\ndef main(path):\n    found = torch.from_numpy(np.load(path))\n    print(scaled(found, 4, 3))\n",
);

#[test]
fn a_function_that_nobody_calls_may_be_given_anything() {
    assert_eq!(mixed(&[]), (1, 1));
}

#[test]
fn calls_in_other_files_say_what_a_function_is_given() {
    assert_eq!(mixed(&[LABELS]), (0, 0));
}

#[test]
fn what_a_library_offers_may_be_given_anything() {
    let inside = ("lib/labels.py", LABELS.1);
    assert_eq!(mixed(&[inside]), (1, 1));
    let hidden = ("lib/_boxes.py", BOXES.1);
    let caller = LABELS.1.replace("lib.boxes", "lib._boxes");
    let project = Project::new(&[MARK, PACKAGE, hidden, ("lib/labels.py", &caller)]);
    let run = project.run("check --isolated --min-confidence low --fail-on-severity info --select SD204 --output-format concise .");
    assert_eq!(run.stdout, "", "a module of the library's own");
}

#[test]
fn a_call_that_gives_a_gpus_tensor_comes_to_the_finding() {
    let model = (
        "model.py",
        "import torch\n\nfrom lib.boxes import scaled\n\n\ndef main():\n    found = torch.zeros(5, 2, device=\"cuda\")\n    print(scaled(found, 4, 3))\n\n\nmain()\n",
    );
    assert_eq!(mixed(&[LABELS, model]), (1, 1));
}

#[test]
fn a_call_that_hands_on_leaves_it_open() {
    let other =
        ("more.py", "from lib.boxes import scaled\n\n\ndef twice(boxes):\n    return scaled(boxes, 2, 2)\n");
    assert_eq!(mixed(&[LABELS, other]), (1, 1));
}

#[test]
fn a_function_that_is_mentioned_but_not_called_is_open() {
    let table = ("table.py", "from lib.boxes import scaled\n\nACTIONS = {\"scale\": scaled}\n");
    assert_eq!(mixed(&[table]), (1, 1));
}

/// The findings of SD204 in a class of which a data set has an instance, when all is linted.
fn encoded(files: &[(&str, &str)]) -> usize {
    let encoder = (
        "encoder.py",
        "import torch\n\n\nclass Encoder:\n    def __init__(self):\n        self.anchors = torch.rand(8, 4)\n\n    def encode(self, boxes):\n        return torch.max(boxes, self.anchors)\n",
    );
    let items = (
        "items.py",
        "import torch\nfrom augment import flipped\nfrom encoder import Encoder\n\n\nclass Items(torch.utils.data.Dataset):\n    def __init__(self, boxes):\n        self.boxes = boxes\n        self.encoder = Encoder()\n\n    def __getitem__(self, n):\n        boxes = flipped(self.boxes[n])\n        return self.encoder.encode(boxes)\n",
    );
    let mut all = vec![(".git/HEAD", ""), encoder, items];
    all.extend(files);
    let run = Project::new(&all).run("check --isolated --min-confidence low --fail-on-severity info --select SD204 --output-format concise .");
    run.stdout.lines().filter(|line| line.contains("SD204 ")).count()
}

#[test]
fn what_a_data_set_hands_to_its_helper_is_on_the_host() {
    let script = ("show.py", "from encoder import Encoder\n\nprint(Encoder().anchors)\n");
    assert_eq!(encoded(&[script]), 0);
    // Others will call a library's class, and so does who comes from elsewhere.
    assert_eq!(encoded(&[script, MARK]), 1);
    let more = (
        "more.py",
        "from encoder import Encoder\n\n\ndef again(boxes):\n    encoder = Encoder()\n    return encoder.encode(boxes)\n",
    );
    assert_eq!(encoded(&[script, more]), 1);
}

/// What needs CUDA itself.
const HELPER: (&str, &str) = ("helper.py", "def extract(model, x):\n    return model(x.cuda())\n");

/// The findings when all is linted and when the helper is linted alone, with a script whose `main` begins so.
fn helped(before: &str) -> (usize, usize) {
    let text = format!(
        "import torch\nfrom torch import nn\n\nfrom helper import extract\n\n\ndef main(small, x):\n    model = nn.Linear(2, 2)\n{before}    return extract(model, x)\n"
    );
    both(&[("LICENSE", ""), HELPER, ("main.py", &text)], "helper.py")
}

#[test]
fn what_all_callers_come_to_after_a_use_is_told_with_that() {
    assert_eq!(helped("    model.cuda()\n"), (1, 0));
    assert_eq!(helped(""), (1, 1));
    assert_eq!(helped("    if small:\n        model.cuda()\n").1, 1);
    // A device in a variable, made of its name.
    assert_eq!(helped("    model.to(torch.device(\"cuda:0\"))\n"), (1, 0));
    assert_eq!(helped("    place = torch.device(\"cuda\")\n    model.to(device=place)\n"), (1, 0));
    assert_eq!(helped("    place = \"cuda\" if small else \"cpu\"\n    model.to(place)\n").1, 1);
    // A group of NCCL is told by its own rule (SD108).
    assert_eq!(helped("    torch.distributed.init_process_group(\"nccl\")\n"), (0, 0));
    assert_eq!(helped("    torch.distributed.init_process_group(\"gloo\")\n"), (1, 1));
}

#[test]
fn branches_that_all_need_cuda_count_on_the_way_and_in_constructors() {
    let branches = "if small:\n            self.net = net.cuda()\n        else:\n            self.net = net.half().cuda()\n";
    let made = format!(
        "from helper import extract\n\n\nclass Work:\n    def __init__(self, net, small):\n        {branches}\n    def run(self, x):\n        return extract(self.net, x)\n"
    );
    assert_eq!(both(&[("LICENSE", ""), HELPER, ("main.py", &made)], "helper.py").1, 0);
    // In a function, too: whichever way was taken has raised, and both lines are told.
    assert_eq!(
        helped("    if small:\n        model.cuda()\n    else:\n        model.half().cuda()\n"),
        (2, 0)
    );
}

#[test]
fn one_switch_that_is_asked_twice_has_needed_cuda_the_first_time() {
    let twice = "    if small:\n        model.cuda()\n    for _ in range(3):\n        if small:\n            extract(model, x)\n";
    let text = |body: &str| format!("from helper import extract\n\n\ndef main(small, model, x):\n{body}");
    let alone = |body: &str| both(&[("LICENSE", ""), HELPER, ("main.py", &text(body))], "helper.py").1;
    assert_eq!(alone(twice), 0);
    assert_eq!(alone(&twice.replace("range(3):\n", "range(3):\n        small = x.is_sparse\n")), 1);
}

#[test]
fn what_has_nothing_to_move_needs_no_cuda() {
    assert_eq!(helped("    loss = nn.CrossEntropyLoss().cuda()\n"), (1, 1));
}

#[test]
fn a_use_that_may_have_been_left_out_does_not_count() {
    let other = (
        "main.py",
        "import torch\nfrom torch import nn\n\nfrom helper import extract\n\n\ndef prepare(small, model):\n    if small:\n        return\n    model.cuda()\n\n\ndef main(small, model, x):\n    prepare(small, model)\n    return extract(model, x)\n",
    );
    assert_eq!(both(&[("LICENSE", ""), HELPER, other], "helper.py").1, 1);
    let always = other.1.replace("        return\n", "        print(small)\n");
    assert_eq!(both(&[("LICENSE", ""), HELPER, ("main.py", &always)], "helper.py").1, 0);
}

#[test]
fn a_method_of_the_projects_own_says_itself_what_it_needs() {
    let own = "import torch\n\nfrom helper import extract\n\n\nclass Net:\n    def cuda(self):\n        if torch.cuda.is_available():\n            self.on = True\n        return self\n\n\ndef main(net, x):\n    net.cuda()\n    return extract(net, x)\n";
    assert_eq!(both(&[("LICENSE", ""), HELPER, ("main.py", own)], "helper.py").1, 1);
}

#[test]
fn what_nothing_imports_yet_is_told_however_many_files_there_are() {
    let new = ("lib/new.py", "import torch\n\n\ndef fresh(size):\n    return torch.zeros(size).cuda()\n");
    let names: Vec<String> = (0..12).map(|i| format!("lib/part{i}.py")).collect();
    let part = |i: usize| format!("from lib import part{}\n\n\ndef run(x):\n    return x\n", (i + 1) % 12);
    let texts: Vec<String> = (0..12).map(part).collect();
    for n in [0, 6, 12] {
        let mut files = vec![MARK, PACKAGE, new];
        files.extend(names.iter().zip(&texts).take(n).map(|(name, text)| (name.as_str(), text.as_str())));
        assert_eq!(both(&files, "lib/new.py"), (1, 1), "beside {n} files");
    }
}

#[test]
fn callers_need_no_init_file_and_no_mark() {
    let work = ("lib/deep/work.py", WORK.1);
    let guarded =
        "from lib.deep.work import Worker\nfrom start import start\n\nstart(0)\nprint(Worker(3).work())\n";
    for mark in [Some(MARK), None] {
        let mut files = vec![START, work, ("train.py", guarded)];
        files.extend(mark);
        assert_eq!(both(&files, "lib/deep/work.py"), (0, 0), "{mark:?}");
        // Of one that does not ask it is told.
        files.push(("other.py", "from lib.deep.work import helper\n\nprint(helper(3))\n"));
        assert_eq!(both(&files, "lib/deep/work.py"), (1, 1), "{mark:?}");
    }
    // A script in a folder, beside what it imports, and one that is run from the top.
    let beside = guarded.replace("lib.deep.work", "work");
    let files = [("tools/start.py", START.1), ("tools/work.py", WORK.1), ("tools/train.py", beside.as_str())];
    assert_eq!(both(&files, "tools/work.py"), (0, 0));
    let files = [MARK, START, work, ("tools/train.py", guarded)];
    assert_eq!(both(&files, "lib/deep/work.py"), (0, 0));
}
