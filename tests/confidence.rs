//! How sure findings are, what of them is told, and what the formats, suppressions and baselines make of it.
#![allow(clippy::expect_used, reason = "tests may panic")]

mod support;

use serde_json::Value;
use support::Project;

/// The findings of a run with these arguments: file, code, row, confidence.
fn found(project: &Project, arguments: &str) -> Vec<(String, String, u64, String)> {
    let run = project.run(&format!("check --no-cache --output-format json {arguments}"));
    let all: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    let one = |f: &Value| {
        let text = |key: &str| f[key].as_str().unwrap_or_default().to_owned();
        let file = text("filename").rsplit('/').next().unwrap_or_default().to_owned();
        (file, text("code"), f["location"]["row"].as_u64().unwrap_or_default(), text("confidence"))
    };
    all.as_array().map(|all| all.iter().map(one).collect()).unwrap_or_default()
}

/// The same as lines: `a.py:3 SD101 likely`.
fn lines(project: &Project, arguments: &str) -> Vec<String> {
    let line = |(file, code, row, confidence)| format!("{file}:{row} {code} {confidence}");
    found(project, arguments).into_iter().map(line).collect()
}

const SCRIPT: &str = "import torch\n\n\ndef used(n):\n    return torch.ones(n).cuda()\n\n\ndef unused(n):\n    return torch.ones(n).cuda()\n\n\n\
                      if __name__ == \"__main__\":\n    print(used)\n";

/// The same with a program that comes to its line for certain.
const FILES: [(&str, &str); 2] =
    [("a.py", SCRIPT), ("b.py", "import torch\n\nprint(torch.zeros(3).cuda())\n")];

#[test]
fn what_a_program_comes_to_is_certain_and_what_nothing_calls_is_low() {
    let project = Project::new(&FILES);
    let all = lines(&project, "--min-confidence low --select SD101");
    assert_eq!(all, ["a.py:5 SD101 likely", "a.py:9 SD101 low", "b.py:3 SD101 certain"]);
    assert_eq!(
        lines(&project, "--select SD101"),
        all[..1].iter().chain(&all[2..]).cloned().collect::<Vec<_>>()
    );
    assert_eq!(lines(&project, "--min-confidence certain --select SD101"), all[2..]);
}

#[test]
fn a_name_in_another_file_or_in_a_text_is_a_call() {
    for (name, text) in
        [("c.py", "from a import unused\n\nprint(unused)\n"), ("conf.yaml", "loader: a.unused\n")]
    {
        let project = Project::new(&[("a.py", SCRIPT), (name, text)]);
        let all = lines(&project, "--select SD101");
        assert!(all.contains(&"a.py:9 SD101 likely".to_owned()), "{name}: {all:?}");
    }
    // To hand it on is not to use it.
    let texts = "from a import unused\n\n__all__ = [\"unused\"]  # unused()\n";
    let project = Project::new(&[("a.py", SCRIPT), ("c.py", texts)]);
    assert!(!lines(&project, "--select SD101").contains(&"a.py:9 SD101 likely".to_owned()));
    // Nobody knows who calls what a library offers.
    let project = Project::new(&[("a.py", SCRIPT), ("setup.py", "")]);
    assert!(lines(&project, "--select SD101").contains(&"a.py:9 SD101 likely".to_owned()));
}

#[test]
fn copies_of_other_projects_tests_and_demos_are_low() {
    let module = "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x + 1\n\n\n\
                  if __name__ == \"__main__\":\n    net = Net()\n    print(net(torch.rand(2).cuda()))\n";
    let project = Project::new(&[
        ("net.py", module),
        ("third_party/lib.py", "import torch\n\nX = torch.zeros(3).cuda()\n"),
        (
            "tests/test_net.py",
            "import torch\n\n\ndef test_it():\n    assert torch.zeros(3).cuda() is not None\n",
        ),
    ]);
    assert_eq!(lines(&project, "."), Vec::<String>::new());
    let all = lines(&project, "--min-confidence low --select SD101 .");
    assert_eq!(all, ["net.py:12 SD101 low", "test_net.py:5 SD101 low", "lib.py:3 SD101 low"]);
    let run = project.run("check --select SD101");
    assert!(
        run.stdout.contains(
            "No findings: 3 files checked; 3 with low confidence not shown (`--min-confidence low`)."
        ),
        "{run:?}"
    );
    assert_eq!(run.code, Some(0));
}

#[test]
fn what_only_the_demo_of_a_module_reaches_is_low() {
    let base = "from torch import nn\n\n\nclass Base(nn.Module):\n    def forward(self, x):\n        return self.embed(x)\n";
    let table = "import torch\nfrom torch import nn\n\nfrom base import Base\n\n\nclass Table(Base):\n    def __init__(self):\n        \
                 super().__init__()\n        self.fc = nn.Linear(2, 2)\n\n    def embed(self, x):\n        return self.fc(x.cuda())\n\n\n\
                 if __name__ == \"__main__\":\n    print(Table().embed(torch.rand(2)))\n";
    let files = [("base.py", base), ("table.py", table)];
    let all = lines(&Project::new(&files), "--min-confidence low --select SD202 .");
    assert_eq!(all, ["table.py:13 SD202 low"]);
    // What a method does wherever the module is counts for every program.
    let lost = table.replace("return self.fc(x.cuda())", "x.cuda()\n        return self.fc(x)");
    let all = lines(&Project::new(&[files[0], ("table.py", &lost)]), "--select SD203 .");
    assert_eq!(all, ["table.py:13 SD203 certain"]);
    // A program that does the same is another way to the finding.
    let program =
        ("main.py", "import torch\nfrom table import Table\n\nprint(Table().embed(torch.rand(2)))\n");
    let all = lines(&Project::new(&[files[0], files[1], program]), "--min-confidence low --select SD202 .");
    assert!(all.contains(&"table.py:13 SD202 certain".to_owned()), "{all:?}");
    // A function that does the work, and is called from there, is no demo.
    let program = "import torch\nfrom torch import nn\n\n\nclass Net(nn.Linear):\n    pass\n\n\ndef work():\n    net = Net(2, 2)\n    \
                   return net(torch.rand(2).cuda())\n\n\nif __name__ == \"__main__\":\n    print(work())\n";
    let all = lines(&Project::new(&[("net.py", program)]), "--min-confidence low --select SD202 .");
    assert_eq!(all, ["net.py:11 SD202 certain"]);
}

#[test]
fn what_only_runs_after_another_failure_is_likely() {
    let text = "import torch\n\nif torch.cuda.is_available():\n    net = torch.nn.Linear(2, 2).cuda()\n    \
                out = net(torch.rand(3, 2))\n    print(torch.rand(2).cuda().numpy())\n";
    let all = lines(&Project::new(&[("a.py", text)]), "--min-confidence low .");
    assert_eq!(all, ["a.py:5 SD202 certain", "a.py:6 SD205 likely"]);
    // On one of two ways, nothing fails before it.
    let text = text.replace("    out = net(", "    if len(torch.__version__) > 6:\n        out = net(");
    let all = lines(&Project::new(&[("a.py", &text)]), "--min-confidence low --select SD205 .");
    assert_eq!(all, ["a.py:7 SD205 certain"]);
}

#[test]
fn a_copy_that_is_made_once_or_is_tiny_is_low() {
    let text = "import torch\n\ndevice = torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")\n\n\n\
                def train(model, batches, optimizer):\n    total = torch.zeros(64, 512).to(device)\n    \
                for x in batches:\n        state = torch.zeros(64, 512).to(device)\n        \
                one = torch.zeros(1).to(device)\n        loss = model(x, state, one).sum()\n        \
                loss.backward()\n        optimizer.step()\n        total += loss\n    return total\n\n\n\
                def fit(model, batches, optimizer):\n    for epoch in range(3):\n        train(model, batches, optimizer)\n";
    let project = Project::new(&[("a.py", text)]);
    let all = lines(&project, "--min-confidence low --select SD601");
    assert_eq!(all, ["a.py:7 SD601 low", "a.py:9 SD601 likely", "a.py:10 SD601 low"]);
    assert_eq!(lines(&project, "--select SD601"), ["a.py:9 SD601 likely"]);
}

#[test]
fn what_methods_do_is_done_in_every_call() {
    let text = "import torch\n\n\nclass Noise:\n    def __init__(self, device):\n        self.base = torch.zeros(64, 64).to(device)\n\n    \
                def add(self, x):\n        return x + torch.ones(64, 64).to(x.device)\n\n\n\
                def once(x):\n    return x + torch.ones(64, 64).to(x.device)\n";
    let project = Project::new(&[("a.py", text)]);
    let all = lines(&project, "--min-confidence low --select SD601");
    assert_eq!(all, ["a.py:9 SD601 likely", "a.py:13 SD601 low"]);
}

#[test]
fn configuration_sets_the_level_for_all_and_for_some() {
    let project = Project::new(&FILES);
    project.write("samedevice.toml", "select = ['SD101']\nmin-confidence = 'certain'\n");
    assert_eq!(lines(&project, ""), ["b.py:3 SD101 certain"]);
    assert_eq!(lines(&project, "--min-confidence low").len(), 3, "flags go before files");
    project.write("samedevice.toml", "select = ['SD101']\nconfidence = { SD1 = 'certain', SD101 = 'low' }\n");
    assert_eq!(lines(&project, "").len(), 3);
    assert_eq!(lines(&project, "--min-confidence certain").len(), 1);
    let run = project.run("check --show-settings");
    assert!(
        run.stdout.contains("min-confidence = \"likely\"") && run.stdout.contains("SD101 = \"low\""),
        "{run:?}"
    );
    for (text, message) in [
        ("min-confidence = 'likly'", "did you mean `likely`?"),
        ("confidence = { SD101 = 'high' }", "`SD101` expects \"low\", \"likely\" or \"certain\""),
        ("confidence = { SD999 = 'low' }", "unknown rule `SD999`"),
    ] {
        project.write("samedevice.toml", text);
        let run = project.run("check");
        assert!(run.code == Some(2) && run.stderr.contains(message), "{text}: {run:?}");
    }
}

#[test]
fn every_format_says_how_sure_it_is() {
    let project = Project::new(&FILES);
    let run = |format: &str| {
        project
            .run(&format!("check --isolated --min-confidence low --select SD101 --output-format {format}"))
            .stdout
    };
    let sarif: Value = serde_json::from_str(&run("sarif")).expect("JSON");
    let results = &sarif["runs"][0]["results"];
    let properties: Vec<_> = (0..3)
        .map(|n| (results[n]["properties"]["confidence"].clone(), results[n]["rank"].clone()))
        .collect();
    assert_eq!(
        properties,
        [("likely".into(), 50.0.into()), ("low".into(), 10.0.into()), ("certain".into(), 90.0.into())]
    );
    let why = "low confidence: nothing in this project calls `unused`";
    for format in ["full", "concise", "github"] {
        assert!(run(format).contains(why), "{format}: {}", run(format));
    }
    for format in ["json", "json-lines"] {
        assert!(run(format).contains("nothing in this project calls `unused`"), "{format}");
    }
}

#[test]
fn a_suppression_of_what_is_not_sure_enough_is_used() {
    let text = SCRIPT.replace(
        "def unused(x):\n    return x.cuda()",
        "def unused(x):\n    return x.cuda()  # samedevice: ignore[SD101]",
    );
    let project = Project::new(&[("a.py", &text)]);
    assert_eq!(lines(&project, "--select SD101,SD002"), ["a.py:5 SD101 likely"]);
}

#[test]
fn a_baseline_keeps_what_is_not_sure_enough() {
    let project = Project::new(&FILES);
    let check = |arguments: &str| {
        project.run(&format!("check --isolated --select SD101 --baseline base.json {arguments}"))
    };
    assert!(check("--min-confidence low --update-baseline").stderr.contains("base.json: 3 places"));
    let run = check("");
    assert!(run.code == Some(0) && !run.stderr.contains("no longer found"), "{run:?}");
    assert!(
        run.stdout.contains("2 suppressed") || run.stdout.contains("2 known places in the baseline"),
        "{run:?}"
    );
    // What is not told is not written down.
    project.write("base.json", std::fs::read(project.root().join("base.json")).expect("a file"));
    std::fs::remove_file(project.root().join("base.json")).expect("a file");
    assert!(check("--update-baseline").stderr.contains("base.json: 2 places"));
    let run = check("--min-confidence low");
    assert!(run.stdout.contains("a.py:9"), "{run:?}");
}

/// Three files that need CUDA, and none that asks for it.
const ALONE: [(&str, &str); 3] = [
    (
        "net.py",
        "import torch\n\n\ndef ones():\n    return torch.ones(3).cuda()\n\n\ndef noise():\n    return torch.rand(3).cuda()\n",
    ),
    (
        "train.py",
        "import torch\nfrom net import noise, ones\n\n\ndef step():\n    return torch.zeros(2).cuda()\n\n\nif __name__ == \"__main__\":\n    print(step(), noise(), ones())\n",
    ),
    (
        "view.py",
        "import torch\n\n\ndef show(x):\n    return x.cuda()\n\n\nif __name__ == \"__main__\":\n    show(torch.zeros(4))\n",
    ),
];

#[test]
fn a_project_for_cuda_alone_is_told_once() {
    let project = Project::new(&ALONE);
    let whole = found(&project, "--isolated --select SD101 .");
    assert_eq!(whole.len(), 1, "{whole:?}");
    assert_eq!((whole[0].0.as_str(), whole[0].2), ("net.py", 5));
    // A run over a part tells the same cause.
    let print = |arguments: &str| {
        let run = project
            .run(&format!("check --no-cache --isolated --select SD101 --output-format json {arguments}"));
        let all: Value = serde_json::from_str(&run.stdout).expect("JSON");
        all.as_array().expect("an array").iter().map(|f| f["fingerprint"].clone()).collect::<Vec<_>>()
    };
    for part in ["net.py", "train.py", "view.py", "view.py train.py"] {
        assert_eq!(print(part), print("."), "{part}");
    }
    // Who asks has thought of it.
    project.write("view.py", "import torch\n\nD = \"cuda\" if torch.cuda.is_available() else \"cpu\"\n");
    assert!(found(&project, "--isolated --select SD101 .").len() > 1);
}

#[test]
fn who_leaves_a_choice_of_devices_is_not_for_cuda_alone() {
    let texts: [(&str, bool); 22] = [
        // Questions whose answer places something.
        ("if torch.cuda.is_available():\n    net.cuda()\n", true),
        ("use_it = torch.cuda.is_available()\n", true),
        ("def f(fast=torch.cuda.is_available()):\n    pass\n", true),
        ("n = 1 if torch.cuda.device_count() > 0 else 0\n", true),
        ("if torch.cuda.is_available():\n    torch.cuda.manual_seed(1)\n", false),
        ("if not torch.cuda.is_available():\n    raise SystemExit('no GPU')\n", false),
        ("assert torch.cuda.is_available()\n", false),
        ("print(torch.cuda.is_available())\n", false),
        ("if torch.distributed.is_available():\n    x = x.cuda()\n", false),
        ("if torch.cuda.device_count() > 1:\n    net = torch.nn.DataParallel(net)\n", false),
        // The CPU as one of several places.
        ("where = 'cpu' if small else 'cuda'\n", true),
        (
            "x = net(x).to('cpu')\nw = torch.load('w', map_location='cpu')\nHOST = torch.device('cpu')\n",
            false,
        ),
        // A module that one way moves and another does not.
        ("if flag:\n    net.cuda()\nnet(x)\n", true),
        ("if flag:\n    net.cuda(0)\nelse:\n    net = torch.nn.DataParallel(net).cuda()\n", false),
        ("if flag is not None:\n    x = x.cuda(flag)\n", false),
        ("net = net.cuda() if flag else net\nnet.eval()\n", true),
        // Options.
        ("p.add_argument('--where', default='cuda')\nnet.to(p.parse_args().where)\n", true),
        ("p.add_argument('--where', default='cuda')\nspot = args.where\nnet.to(spot)\n", true),
        ("p.add_argument('--where', type=int)\nnet.to(args.where)\n", false),
        (
            "p.add_argument('--device', default='0')\nos.environ['CUDA_VISIBLE_DEVICES'] = args.device\n",
            false,
        ),
        ("net.to(config['device'])\n", true),
        ("net = accelerate.Accelerator().prepare(net)\n", true),
    ];
    for (text, choice) in texts {
        let project = Project::new(&ALONE);
        let head =
            "import os\nimport accelerate\nimport torch\n\n\ndef g(net, x, p, args, flag, config, small):\n";
        project.write("other.py", format!("{head}    {}\n", text.trim_end().replace('\n', "\n    ")));
        let told = found(&project, "--isolated --select SD101 net.py train.py view.py");
        assert_eq!(told.len() > 1, choice, "{text}: {told:?}");
    }
}

#[test]
fn a_line_carries_one_finding() {
    let text = "import torch\n\nfor n in range(9):\n    x = torch.zeros(64, 64).cuda()\n    print(x)\n";
    let project = Project::new(&[("a.py", text)]);
    assert_eq!(lines(&project, "--isolated"), ["a.py:4 SD101 certain"]);
    // What is not on takes the place of nothing.
    assert_eq!(lines(&project, "--isolated --select SD601"), ["a.py:4 SD601 certain"]);
    assert_eq!(lines(&project, "--isolated --ignore SD101"), ["a.py:4 SD601 certain"]);
}

#[test]
fn severity_follows_the_confidence_where_the_page_says_so() {
    let project = Project::new(&FILES);
    let run = project.run("check --isolated --select SD101 --output-format concise");
    assert!(
        run.stdout.contains("a.py:5:12: info: SD101") && run.stdout.contains("b.py:3:7: error: SD101"),
        "{run:?}"
    );
    project.write("samedevice.toml", "severity = { SD101 = 'warning' }\n");
    let run = project.run("check --select SD101 --output-format concise");
    assert!(run.stdout.contains("a.py:5:12: warning"), "{run:?}");
}
