//! What an analysis finds with what earlier ones have kept is what it finds from scratch, whatever changes in between.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastrand::Rng;

use crate::analysis::memo::Part;
use crate::analysis::{Analysis, Memo, Work, analyze, analyze_again};
use crate::config::{Overrides, Resolver, Where};
use crate::discover::{Input, Options, discover};
use crate::rules::registry::registry;

/// The files that a random project may have. Some are submodules and packages, one has fixtures for tests.
const FILES: [&str; 10] =
    ["a.py", "b.py", "c.py", "d.py", "p/__init__.py", "p/e.py", "p/a.py", "test_f.py", "conftest.py", "z.py"];

/// The names by which parts of files import another file.
const NAMES: [&str; 8] = ["a", "b", "c", "d", "p", "p.e", "p.a", "z"];

/// Parts of files. `@` is the name of another file.
const PARTS: &[&str] = &[
    "from @ import DEVICE",
    "from @ import *",
    "from @ import make, Net",
    "import @ as other",
    "from @ import test",
    "try:\n    from @ import make\nexcept ImportError:\n    make = None",
    "DEVICE = \"cuda\"",
    "DEVICE = \"cpu\"",
    "DEVICE = \"cuda\" if torch.cuda.is_available() else \"cpu\"",
    "import os\nos.environ[\"CUDA_VISIBLE_DEVICES\"] = \"0\"",
    "if not torch.cuda.is_available():\n    raise SystemExit(1)",
    "torch.set_default_device(\"cuda\")",
    "def make(n):\n    return torch.zeros(n, device=DEVICE)",
    "def make(n):\n    return torch.zeros(n)",
    "def make(n):\n    return other.make(n).cuda()",
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(3, 3)\n        \
     self.w = torch.ones(3)\n\n    def forward(self, x):\n        return self.fc(x) + self.w + torch.randn(3)",
    "class Net(other.Net):\n    def forward(self, x):\n        return super().forward(x) + make(3)",
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.to(\"cuda\")\n        \
     self.fc = nn.Linear(3, 3)",
    "class Holder:\n    def __init__(self, device):\n        self.net = Net().to(device)\n\n    \
     def run(self, x):\n        return self.net(x.to(\"mps\"))",
    "def test():\n    net = nn.Linear(8, 2).to(DEVICE)\n    net.eval()\n    \
     return net(torch.rand(64, 8).to(DEVICE)).argmax(dim=-1).float().mean().item()",
    "def test_make(net):\n    assert net(torch.zeros(3, device=\"cuda\")) is not None",
    "import pytest\n\n\n@pytest.fixture\ndef net():\n    return nn.Linear(3, 3)",
    "x = make(3)\ny = torch.ones(3)\nprint(x + y)",
    "x = other.make(3)\nprint(x + torch.ones(3, device=DEVICE))",
    "net = other.Net().to(other.DEVICE)\nprint(net(torch.zeros(3)))",
    "net = Net()\nnet.cuda()\nprint(net(torch.zeros(3, device=DEVICE)))",
    "print(make(3).numpy())",
    "torch.zeros(3).cuda()  # samedevice: ignore",
    "# samedevice: ignore-file[SD101]",
    "for x in range(3):\n    print(other.make(x).cpu())",
    "def both(x, y):\n    return x.cuda() + y",
    "print(other.both(torch.ones(3), torch.ones(3)))",
    "if __name__ == \"__main__\":\n    both(make(2), other.make(2))",
    "def broken(:",
];

/// A random project in a folder of its own.
struct Project {
    folder: tempfile::TempDir,
    files: BTreeMap<&'static str, Vec<String>>,
    resolver: Resolver,
    random: Rng,
}

impl Project {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("p")).expect("a folder");
        let resolver = resolver(folder.path());
        let mut project = Self { folder, files: BTreeMap::new(), resolver, random: Rng::with_seed(seed) };
        for file in FILES {
            if project.random.u8(..4) > 0 {
                project.write(file);
            }
        }
        project
    }

    fn part(&mut self) -> String {
        let part = PARTS[self.random.usize(..PARTS.len())];
        part.replace('@', NAMES[self.random.usize(..NAMES.len())])
    }

    /// Gives a file new parts.
    fn write(&mut self, file: &'static str) {
        let parts = (0..self.random.usize(1..8)).map(|_| self.part()).collect();
        self.files.insert(file, parts);
        self.save(file);
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn save(&self, file: &str) {
        std::fs::write(self.path(file), self.text(file)).expect("it is written");
    }

    fn text(&self, file: &str) -> String {
        let head = "import torch\nfrom torch import nn\n\n";
        self.files.get(file).map(|parts| head.to_owned() + &parts.join("\n\n") + "\n").unwrap_or_default()
    }

    /// Changes a file, the set of files, or the settings.
    fn edit(&mut self) {
        let file = FILES[self.random.usize(..FILES.len())];
        let other = FILES[self.random.usize(..FILES.len())];
        let part = self.part();
        let known = self.files.get_mut(file);
        match (self.random.u8(..9), known) {
            (0, Some(_)) => {
                self.files.remove(file);
                std::fs::remove_file(self.path(file)).expect("it is removed");
            }
            (1, Some(_)) if file != other => {
                let parts = self.files.remove(file).unwrap_or_default();
                std::fs::rename(self.path(file), self.path(other)).expect("it is renamed");
                self.files.insert(other, parts);
            }
            (2, _) => self.resolver = resolver(self.folder.path()),
            (3 | 4, Some(parts)) => {
                parts.insert(0, part);
                self.save(file);
            }
            (5 | 6, Some(parts)) => {
                let last = parts.len() - 1;
                parts[last] = part;
                self.save(file);
            }
            (7, Some(parts)) => {
                parts.insert(0, "# a comment".to_owned());
                self.save(file);
            }
            _ => self.write(file),
        }
    }

    /// All files; or one or two, as an editor has them open, with a text that is not saved.
    fn inputs(&mut self) -> Vec<Input> {
        let options = Options { cwd: self.folder.path().to_owned() };
        let mut inputs = discover(&[self.folder.path().to_owned()], &options, &mut self.resolver).files;
        if self.random.bool() {
            return inputs;
        }
        self.random.shuffle(&mut inputs);
        inputs.truncate(1 + self.random.usize(..2));
        if let Some(input) = inputs.first_mut() {
            let mut text = std::fs::read_to_string(&input.path).expect("it is read");
            text.push_str("\nprint(torch.ones(2).cuda())\n");
            input.bytes = Some(text.into_bytes());
        }
        inputs
    }
}

fn resolver(folder: &Path) -> Resolver {
    Resolver::new(folder, registry(), &Where::Isolated, Overrides::default()).expect("no settings")
}

/// What an analysis says, in an order of its own.
fn said(analysis: &Analysis) -> Vec<String> {
    assert!(analysis.failed_passes.is_empty(), "{:?}", analysis.failed_passes);
    let mut said: Vec<String> = analysis.findings.iter().map(|f| format!("{f:#?}")).collect();
    said.extend(analysis.exhausted.iter().map(|e| format!("{e:?}")));
    said.sort();
    said.extend(analysis.comments.iter().map(|c| format!("{c:?}")));
    said.extend(analysis.sources.iter().map(|(_, source)| source.name.clone()));
    said
}

#[test]
fn what_is_kept_does_not_change_what_is_found() {
    for seed in 0..40 {
        let mut project = Project::new(seed);
        let mut memo = Arc::new(Memo::default());
        for step in 0..12 {
            let inputs = project.inputs();
            let fresh = said(&analyze(&inputs, true, &|| ()));
            let again = said(&analyze_again(&inputs, true, &|| (), &mut memo));
            if fresh != again {
                let files: String =
                    project.files.keys().map(|f| format!("# {f}\n{}", project.text(f))).collect();
                let lines = |said: Vec<String>| said.join("\n");
                let (fresh, again) = (lines(fresh), lines(again));
                let diff = similar::TextDiff::from_lines(&fresh, &again).unified_diff().to_string();
                panic!("project {seed}, step {step}:\n{files}\n{diff}");
            }
            project.edit();
        }
    }
}

/// A project, an edit of it, and the part of the dependencies that shows what the edit changes: the files with their texts, then the file
/// that is edited or added, and its text.
type Scenario = (Part, &'static [(&'static str, &'static str)], (&'static str, &'static str));

const SCENARIOS: [Scenario; 6] = [
    // Only the place changes.
    (
        Part::Text,
        &[("a.py", "print(torch.zeros(3).cuda())")],
        ("a.py", "# moved down\nprint(torch.zeros(3).cuda())"),
    ),
    // The other file is part of what is said of this one.
    (
        Part::Others,
        &[
            ("a.py", "import b\n\nprint(b.make() + torch.ones(3))"),
            (
                "b.py",
                "device = torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")\n\n\n\
             def make():\n    return torch.zeros(3, device=device)",
            ),
        ],
        (
            "b.py",
            "# moved down\ndevice = torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")\n\n\n\
             def make():\n    return torch.zeros(3, device=device)",
        ),
    ),
    // The import named nothing in the project.
    (
        Part::Links,
        &[("a.py", "import z\n\nprint(torch.cuda.is_available(), z.WEIGHTS + torch.ones(3))")],
        (
            "z.py",
            "device = torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")\n\
             WEIGHTS = torch.zeros(3, device=device)",
        ),
    ),
    // The function was not worth interpreting, so `b.py` was not read.
    (
        Part::Functions,
        &[
            ("a.py", "import b\n\n\ndef both():\n    return b.left() + b.right()"),
            ("b.py", "def left():\n    return 1\n\n\ndef right():\n    return 1"),
        ],
        (
            "b.py",
            "def left():\n    return torch.zeros(3)\n\n\ndef right():\n    return torch.ones(3, device=\"cuda\")",
        ),
    ),
    // A function named like a test is one, unless another file imports it.
    (
        Part::ImportedNames,
        &[(
            "a.py",
            "device = torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")\ndata = torch.rand(64, 8)\n\
             net = nn.Linear(8, 2).to(device)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n\n\n\
             def train():\n    net.train()\n    optimizer.zero_grad()\n    \
             net(data.to(device)).square().mean().backward()\n    optimizer.step()\n\n\n\
             def test():\n    net.eval()\n    return net(data.to(device)).argmax(dim=-1).float().mean().item()\n\n\n\
             for epoch in range(3):\n    train()",
        )],
        ("z.py", "from a import test\n\nprint(test())"),
    ),
    // The constructor moves nothing, but another file moves the object.
    (
        Part::All,
        &[(
            "a.py",
            "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.to(\"cuda\")\n        \
             self.fc = nn.Linear(3, 3)",
        )],
        ("z.py", "import a\n\nnet = a.Net()\nnet.cuda()"),
    ),
];

#[test]
fn every_part_of_the_dependencies_is_needed() {
    for (part, files, edit) in SCENARIOS {
        let same = |ignored: Option<Part>| {
            let folder = tempfile::tempdir().expect("a folder");
            let write = |&(name, text): &(&str, &str)| {
                let text = format!("import torch\nfrom torch import nn\n\n{text}\n");
                std::fs::write(folder.path().join(name), text).expect("it is written");
            };
            let mut resolver = resolver(folder.path());
            let options = Options { cwd: folder.path().to_owned() };
            let mut inputs = || discover(&[folder.path().to_owned()], &options, &mut resolver).files;
            let mut memo = Memo::default();
            memo.ignored = ignored;
            let mut memo = Arc::new(memo);
            files.iter().for_each(write);
            analyze_again(&inputs(), true, &|| (), &mut memo);
            write(&edit);
            let inputs = inputs();
            said(&analyze_again(&inputs, true, &|| (), &mut memo)) == said(&analyze(&inputs, true, &|| ()))
        };
        assert!(same(None), "{part:?}");
        assert!(!same(Some(part)), "{part:?} is not needed");
    }
}

/// Analyzes the project `edit`ed, and returns the work that this took.
fn work_after(edit: impl FnOnce(&Path)) -> Work {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), format!("import torch\n{text}")).expect("it is written");
    };
    write("device.py", "DEVICE = \"cuda\"\n");
    write(
        "make.py",
        "from device import DEVICE\n\n\ndef make():\n    return torch.zeros(3, device=DEVICE)\n",
    );
    write("main.py", "from make import make\n\nprint(make())\n");
    write("other.py", "print(torch.zeros(3).cuda())\n");
    let mut resolver = resolver(folder.path());
    let options = Options { cwd: folder.path().to_owned() };
    let mut memo = Arc::new(Memo::default());
    let mut run = || {
        let inputs = discover(&[folder.path().to_owned()], &options, &mut resolver).files;
        analyze_again(&inputs, true, &|| (), &mut memo);
        memo.work()
    };
    let before = run();
    assert_eq!(before, Work { lowered: 4, interpreted: 4 });
    edit(folder.path());
    let after = run();
    Work { lowered: after.lowered - before.lowered, interpreted: after.interpreted - before.interpreted }
}

#[test]
fn only_what_an_edit_touches_is_computed_again() {
    let add = |name: &'static str, text: &'static str| {
        move |folder: &Path| {
            let path = folder.join(name);
            let old = std::fs::read_to_string(&path).unwrap_or_default();
            std::fs::write(path, old + text).expect("it is written");
        }
    };
    assert_eq!(work_after(|_| ()), Work { lowered: 0, interpreted: 0 });
    let work = |interpreted| Work { lowered: 1, interpreted };
    assert_eq!(work_after(add("main.py", "print(make() + 1)\n")), work(1), "only the edited file");
    assert_eq!(work_after(add("device.py", "OTHER = 1\n")), work(3), "and all files that have read it");
    assert_eq!(work_after(add("z_new.py", "print(1)\n")), work(1), "a file that nothing imports");
}
