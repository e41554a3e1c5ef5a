//! What a run spends: every function ends within its budget, and what does not is said.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use samedevice::analysis::{Analysis, analyze};
use samedevice::config::Settings;
use samedevice::discover::Input;
use samedevice::finding::{Confidence, Severity};
use samedevice::lower::STACK_BYTES;

/// Analyzes one program that is in a folder of its own.
fn analysis(program: &str) -> Result<Analysis, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("work");
    std::fs::create_dir_all(&root)?;
    let settings = Settings {
        file: None,
        extends: Vec::new(),
        root: root.clone(),
        rules: BTreeSet::new(),
        severity: BTreeMap::new(),
        per_file_ignores: Vec::new(),
        excludes: Vec::new(),
        force_exclude: false,
        strict: false,
        fail_on_severity: Severity::Warning,
        confidence: BTreeMap::new(),
        min_confidence: Confidence::Likely,
        baseline: None,
        fix: false,
        unsafe_fixes: false,
        fixable: None,
        unfixable: Vec::new(),
        oom_threshold: 1 << 30,
        max_accelerator_memory: 1 << 40,
    };
    let input = Input {
        path: root.join("program.py"),
        name: "program.py".to_owned(),
        root: root.into(),
        settings: Arc::new(settings),
        bytes: Some(program.as_bytes().to_vec()),
        named: true,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).stack_size(STACK_BYTES).build()?;
    Ok(pool.install(|| analyze(&[input], true, &|| ())))
}

/// The names of what ran out of budget, in order.
fn exhausted(program: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let analysis = analysis(program)?;
    for e in &analysis.exhausted {
        let at = e.place.span;
        let text = program.get(at.start as usize..at.end as usize);
        assert!(text == Some(e.name.as_str()) || text == Some(""), "{e:?}: {text:?}");
    }
    Ok(analysis.exhausted.iter().map(|e| e.name.as_str().to_owned()).collect())
}

/// So many statements that one function cannot be gone through.
fn many_statements(indent: &str) -> String {
    (0..6_000).fold(String::new(), |mut text, i| {
        let _ = writeln!(text, "{indent}x = x + torch.ones(2) * {i}");
        text
    })
}

#[test]
fn functions_that_run_out_are_named() -> Result<(), Box<dyn Error>> {
    let (body, deeper) = (many_statements("    "), many_statements("        "));
    let program = format!(
        "import torch\nfrom torch import nn\n\ndef short(x):\n    return x + torch.ones(2)\n\ndef long(x):\n{body}    return x\n\nclass Net(nn.Module):\n    def __init__(self, x):\n{deeper}\n    def forward(self, x):\n{deeper}        return x\n"
    );
    assert_eq!(exhausted(&program)?, ["long", "__init__", "forward"]);
    let script = format!("import torch\n\nx = torch.ones(2)\n{}", many_statements("").repeat(2));
    assert_eq!(exhausted(&script)?, ["<module>"]);
    assert!(exhausted("import torch\n\nx = torch.ones(2)\n")?.is_empty());
    Ok(())
}

/// What it takes to analyze a program.
fn work(program: &str) -> Result<u64, Box<dyn Error>> {
    Ok(analysis(program)?.work)
}

/// So many times the text, with the number in it, one after the other.
fn times(n: usize, text: &dyn Fn(usize) -> String) -> String {
    (0..n).map(text).collect()
}

/// A program of some length.
type Shape = fn(usize) -> String;

/// What people and generators write row upon row.
const SHAPES: &[(&str, Shape)] = &[
    ("branches that build", |n| {
        let branches = times(n, &|i| format!("    elif kind == \"k{i}\":\n        net = Net({i}).cuda()\n"));
        format!(
            "class Net(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n\ndef build(kind):\n    if kind == \"\":\n        net = Net(0)\n{branches}    return net\n\ndef main(args):\n    return build(args.kind)(torch.ones(2).cuda())\n"
        )
    }),
    ("branches that move", |n| {
        let branches = times(n, &|i| format!("    elif k == {i}:\n        x = x.cuda()\n"));
        format!("def f(k, x):\n    if k == -1:\n        pass\n{branches}    return x + torch.ones(2)\n")
    }),
    ("tests of one thing", |n| {
        let tests = "    if k > 0:\n        y = y.cuda()\n".repeat(n);
        format!("def f(k, x):\n    y = torch.ones(2)\n{tests}    return x + y\n")
    }),
    ("tests of attributes", |n| {
        let sets = times(n, &|i| format!("        self.a{i} = args.a{i}\n"));
        let tests = times(n, &|i| format!("        if self.a{i}:\n            x = x.cuda()\n"));
        format!(
            "class A:\n    def __init__(self, args):\n{sets}    def f(self, x):\n{tests}        return x\n"
        )
    }),
    ("early ends", |n| {
        let ends = times(n, &|i| format!("    if k == {i}:\n        return x.cuda()\n"));
        format!("def f(k, x):\n{ends}    return x\n\ndef g(k, x):\n    return f(k, x) + torch.ones(2)\n")
    }),
    ("loops in a script", |n| {
        format!("import sys\n\nx = torch.ones(2)\n{}", "while sys.argv:\n    x = x.cuda()\n".repeat(n))
    }),
    ("cases", |n| {
        let cases = times(n, &|i| format!("        case {i}:\n            x = x.cuda()\n"));
        format!("def f(k, x):\n    match k:\n{cases}    return x + torch.ones(2)\n")
    }),
    ("managers", |n| {
        format!("def f(x):\n{}    return x\n", "    with torch.no_grad():\n        x = x.cuda()\n".repeat(n))
    }),
    ("one row", |n| format!("x = torch.ones(2)\n{}\n", "x = x.cuda(); ".repeat(n))),
    ("a long test", |n| {
        let test = times(n, &|i| format!("k.a{i} and "));
        format!("def f(k, x):\n    if {test}k:\n        x = x.cuda()\n    return x + torch.ones(2)\n")
    }),
    ("functions that call the one before", |n| {
        let more = times(n, &|i| format!("def f{}(x):\n    return f{i}(x) + torch.ones(2)\n", i + 1));
        format!("def f0(x):\n    return x.cuda()\n{more}")
    }),
    ("functions that call each other", |n| {
        times(n, &|i| {
            let (a, b) = ((i * 7 + 1) % n, (i * 3 + 2) % n);
            format!("def f{i}(x):\n    y = f{a}(x)\n    return f{b}(y.cuda()) + torch.ones(2)\n")
        })
    }),
    ("methods in a ring", |n| {
        let methods = times(n, &|i| {
            format!("    def m{i}(self, x):\n        return self.m{}(x) + self.t\n", (i + 1) % n)
        });
        format!(
            "class M(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.t = torch.ones(2)\n{methods}"
        )
    }),
    ("modules in modules", |n| {
        let classes = times(n, &|i| {
            format!(
                "class C{}(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.c = C{i}()\n    def forward(self, x):\n        return self.c(x).cuda()\n",
                i + 1
            )
        });
        format!("class C0(torch.nn.Module):\n    pass\n\n{classes}")
    }),
    ("classes in a line", |n| {
        let classes = times(n, &|i| {
            format!("class C{}(C{i}):\n    def m{i}(self, x):\n        return x + self.t\n", i + 1)
        });
        format!(
            "class C0(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.t = torch.ones(2)\n{classes}"
        )
    }),
    ("files that are loaded", |n| {
        times(n, &|i| format!("def f{i}(m):\n    m.load_state_dict(torch.load(\"a{i}.pt\"))\n"))
    }),
    ("functions that need a GPU", |n| {
        times(n, &|i| format!("def f{i}(x):\n    return x.cuda()\n\nf{i}(1)\n"))
    }),
    ("what is caught", |n| {
        let tries =
            "    try:\n        x = x.cuda()\n    except RuntimeError:\n        x = x.cpu()\n".repeat(n);
        format!("def f(x):\n{tries}    return x + torch.ones(2)\n")
    }),
    ("a table", |n| {
        let rows = times(n, &|i| format!("    \"k{i}\": torch.ones({i}).cuda(),\n"));
        format!("T = {{\n{rows}}}\n\ndef f(k, x):\n    return T[k] + x + torch.ones(2)\n")
    }),
];

#[test]
fn twice_the_length_is_twice_the_work() -> Result<(), Box<dyn Error>> {
    let mut failures = Vec::new();
    for &(name, shape) in SHAPES {
        let of = |n: usize| work(&format!("import torch\n\n{}", shape(n)));
        let (once, twice) = (of(150)?, of(300)?);
        println!("{name}: {once} {twice}");
        // As integers: two and a half times as much.
        if twice * 2 > once * 5 {
            failures.push(format!("{name}: {once} steps become {twice}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

#[test]
fn explosive_functions_end_within_their_budget() -> Result<(), Box<dyn Error>> {
    // Each row has as many parts as the one before has, eight times.
    let rows = |n: usize| times(n, &|i| format!("    a{} = [{}]\n", i + 1, format!("a{i}, ").repeat(8)));
    let program = |n: usize| {
        let (rows, others) = (rows(n), rows(n).replace('a', "b"));
        format!(
            "import torch\n\ndef f(k, x, y):\n    a0 = x.cuda()\n    b0 = y.cpu()\n{rows}{others}    if k:\n        b{n} = a{n}\n    return b{n}\n"
        )
    };
    // Without a budget a row more is eight times the work: eight rows are 16 million parts, and the test still ends.
    let (shallow, deep) = (work(&program(6))?, work(&program(8))?);
    assert!(deep < 2_000_000 && shallow < 2_000_000, "{shallow} {deep}");
    Ok(())
}

/// The rows of findings with that code, from 1.
fn rows(program: &str, code: u16) -> Result<Vec<usize>, Box<dyn Error>> {
    let found = analysis(program)?.findings;
    let row = |start: u32| program.bytes().take(start as usize).filter(|&b| b == b'\n').count() + 1;
    let mut rows: Vec<usize> =
        found.iter().filter(|f| f.code.0 == code).map(|f| row(f.primary.place.span.start)).collect();
    rows.sort_unstable();
    Ok(rows)
}

#[test]
fn deep_statements_are_left_out_alone() -> Result<(), Box<dyn Error>> {
    let sum = "1 + ".repeat(2_100);
    let branches = times(2_100, &|i| format!("elif k == {i}:\n    net = net.cuda()\n"));
    let start = "import torch\n\nx = torch.ones(2).cuda()\n";
    for deep in [
        format!("s = {sum}1\n"),
        format!("k = input()\nnet = torch.nn.Linear(2, 2)\nif k == 0:\n    pass\n{branches}"),
    ] {
        let program = format!("{start}{deep}y = torch.ones(2).cuda()\n");
        assert!(rows(&program, 1)?.is_empty(), "{deep:.40}");
        assert_eq!(rows(&program, 3)?.len(), 1);
        assert_eq!(rows(&program, 101)?.first(), Some(&3));
    }
    // What is left out may do anything to what it mentions.
    let moved =
        format!("net = torch.nn.Linear(2, 2)\ns = {sum}len(net.cuda().name)\nnet(torch.ones(2).cuda())\n");
    assert!(rows(&format!("import torch\n\n{moved}"), 201)?.is_empty());
    // What is broken elsewhere is told as well.
    let broken = format!("{start}s = {sum}1\nif x\n    pass\n");
    assert_eq!((rows(&broken, 1)?.first(), rows(&broken, 3)?), (Some(&5), vec![4]));
    assert_eq!(rows(&broken, 101)?, [3]);
    Ok(())
}

#[test]
fn more_nested_functions_than_an_index_counts() -> Result<(), Box<dyn Error>> {
    // The search for callers asks, for each call, which of the enclosing functions is a method.
    let nested = format!("call = {}x.moved()\n", "lambda: ".repeat(300));
    let program =
        format!("import torch\n\ndef moved(x):\n    return x.cuda()\n\n{nested}moved(torch.ones(2))\n");
    assert_eq!(rows(&program, 101)?, [4]);
    Ok(())
}
