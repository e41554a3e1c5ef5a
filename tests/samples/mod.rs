//! Findings for the tests of the outputs, made by hand so that these test nothing else.
#![allow(dead_code, reason = "each test program uses some of them")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::path::Path;

use samedevice::finding::Label;
use samedevice::finding::{Applicability, Code, Edit, Finding, Fix, Judgement, Severity, Verdict};
use samedevice::report::{Format, Report, write};
use samedevice::rules::page::{FixKind, Page};
use samedevice::source::{Source, Sources};
use samedevice::span::{FileId, Place, Span};
use samedevice::world::World;

/// A run's result.
pub struct Sample {
    pub sources: Sources,
    pub findings: Vec<Finding>,
    pub pages: Vec<Page>,
    pub checked: usize,
    pub suppressed: usize,
}

pub const ROOT: &str = "/home/me/proj";

impl Sample {
    pub fn new() -> Self {
        Self { sources: Sources::default(), findings: Vec::new(), pages: pages(), checked: 0, suppressed: 0 }
    }

    pub fn file(&mut self, name: &str, text: &str) -> FileId {
        self.checked += 1;
        let path = if name.starts_with('/') || name.contains(":/") {
            name.into()
        } else {
            Path::new(ROOT).join(name)
        };
        self.sources.add(Source::new(path, name.to_owned(), text.to_owned()))
    }

    /// The place of the `n`-th (from 0) occurrence of `needle`.
    pub fn place(&self, file: FileId, needle: &str, n: usize) -> Place {
        let text = self.sources.get(file).text();
        let (at, _) = text.match_indices(needle).nth(n).expect("the sample has the text");
        let at = u32::try_from(at).unwrap();
        Place { file, span: Span::new(at, at + u32::try_from(needle.len()).unwrap()) }
    }

    /// The empty place after the first occurrence of `needle`.
    pub fn after(&self, file: FileId, needle: &str) -> Place {
        let end = self.place(file, needle, 0).span.end;
        Place { file, span: Span::new(end, end) }
    }

    pub fn label(&self, file: FileId, needle: &str, text: &str) -> Label {
        Label::new(self.place(file, needle, 0), text)
    }

    pub fn report(&self) -> Report<'_> {
        Report {
            sources: &self.sources,
            findings: &self.findings,
            pages: &self.pages,
            checked: self.checked,
            suppressed: self.suppressed,
            accepted: 0,
            fixed: 0,
            unsafe_fixes: false,
            low: 0,
            failed: false,
            not_checked: &[],
            version: "0.1.0",
            summary: true,
            color: false,
            unicode: true,
            links: false,
            width: 100,
            root: Path::new(ROOT),
        }
    }

    pub fn render(&self, format: Format) -> String {
        render(format, &self.report())
    }
}

pub fn render(format: Format, report: &Report) -> String {
    let mut out = Vec::new();
    write(format, report, &mut out).expect("a Vec takes everything");
    String::from_utf8(out).expect("the formats are UTF-8")
}

fn page(code: u16, name: &'static str, world: &'static str, severity: Severity, fix: FixKind) -> Page {
    Page {
        code: Code(code),
        name,
        world,
        severity,
        likely: severity,
        default_on: true,
        fix,
        since: "0.1.0",
        summary: "The summary, with `code`\nover two lines.",
        body: "The summary, with `code`\nover two lines.\n\n## Why\nBecause.\n",
    }
}

pub fn pages() -> Vec<Page> {
    vec![
        page(1, "syntax-error", "always", Severity::Error, FixKind::None),
        page(101, "unguarded-cuda", "no-cuda", Severity::Error, FixKind::None),
        page(201, "mixed-device-operation", "always", Severity::Error, FixKind::Sometimes),
        page(601, "created-then-moved", "cuda", Severity::Warning, FixKind::Safe),
        page(602, "non-blocking-without-pinned-memory", "cuda", Severity::Info, FixKind::None),
    ]
}

/// One finding with one place.
pub fn plain() -> Sample {
    let mut s = Sample::new();
    let file = s.file("train.py", "import torch\n\nmodel = make()\nmodel.cuda()\nmodel.train()\n");
    let label = s.label(file, "model.cuda()", "needs CUDA, and nothing asks for it");
    s.findings.push(Finding::new(
        Code(101),
        World::NoCuda,
        "`model.cuda()` runs without a check for CUDA",
        label,
    ));
    s
}

/// Two places in one file, a third in another, a condition, a fix, a verdict; and a warning and a note.
pub fn rich() -> Sample {
    let mut s = Sample::new();
    let train = s.file(
        "src/train.py",
        "import torch\nfrom helpers import mask_for\n\n\ndef step(x: torch.Tensor, args):\n    \
         device = torch.device(\"cuda\")\n    x = x.to(device)\n    mask = mask_for(x)\n    if args.masked:\n        \
         x = x + mask\n    y = torch.zeros(3).cuda()\n    return x.to(device, non_blocking=True)\n",
    );
    let helpers =
        s.file("src/my helpers.py", "import torch\n\n\ndef mask_for(x):\n    return torch.ones(len(x))\n");
    s.checked = 12;
    s.suppressed = 2;
    let label = s.label(train, "x + mask", "CUDA meets the CPU here");
    let origin = s.label(helpers, "torch.ones(len(x))", "made here without `device=`");
    let mut mixed = Finding::new(Code(201), World::Cuda, "`x` is on `cuda`, `mask` on the CPU", label)
        .related(s.place(train, "x.to(device)", 0), "`x` moves to `cuda` here")
        .related(origin.place, origin.text)
        .help("make the mask where `x` is: `torch.ones(len(x), device=x.device)`");
    mixed.condition = Some("when `args.masked` is set".into());
    mixed.verdict = Some(Judgement {
        verdict: Verdict::Confirmed,
        reason: "this machine has CUDA: 1 CUDA device is visible".into(),
    });
    mixed.fix = Some(Fix {
        message: "Pass `device=x.device`".into(),
        applicability: Applicability::Unsafe,
        edits: vec![Edit { place: s.after(helpers, "len(x)"), content: ", device=x.device".into() }],
    });
    let label = s.label(train, "torch.zeros(3).cuda()", "made on the CPU, then copied");
    let mut moved = Finding::new(Code(601), World::Cuda, "a tensor is made on the CPU and copied", label);
    moved.severity = Severity::Warning;
    moved.fix = Some(Fix {
        message: "Pass `device=\"cuda\"`".into(),
        applicability: Applicability::Safe,
        edits: vec![Edit { place: s.place(train, ").cuda()", 0), content: ", device=\"cuda\")".into() }],
    });
    let label = s.label(train, "non_blocking=True", "");
    let mut note = Finding::new(Code(602), World::Cuda, "the copy blocks: its source is not pinned", label);
    note.severity = Severity::Info;
    s.findings = vec![mixed, moved, note];
    s
}

/// An error at the end of the file, after its last line end, and one in an empty file.
pub fn at_the_end() -> Sample {
    let mut s = Sample::new();
    for (name, text) in [("open.py", "x = f(\n    1,\n"), ("empty.py", ""), ("unended.py", "x = (")] {
        let file = s.file(name, text);
        let end = u32::try_from(text.len()).unwrap();
        let label = Label::new(Place { file, span: Span::new(end, end) }, "expected `)`");
        s.findings.push(Finding::new(Code(1), World::Always, "unexpected end of file", label));
    }
    s
}

/// Columns that are neither bytes nor cells: wide characters, tabs, CRLF, lone CR, a place over rows.
pub fn columns() -> Sample {
    let mut s = Sample::new();
    let file = s.file(
        "größe 日本.py",
        "# é\r\nif x:\r\n\tname = \"日本\"; y = f(\"ü\").cuda()\r\n\tz = g(\r\n\t\ty,\r\n\t)\r\nw = \"\u{1b}[31m\u{202e}\".cuda()\r\n",
    );
    let first = s.label(file, "f(\"ü\").cuda()", "here: 日本");
    let second = s.label(file, "g(\r\n\t\ty,\r\n\t)", "over three rows");
    let third = s.label(file, ".cuda()", "");
    let fourth = Label::new(s.place(file, ".cuda()", 1), "after what a terminal would act on");
    s.findings = vec![
        Finding::new(Code(101), World::NoCuda, "`f(\"ü\").cuda()` is unguarded", first)
            .related(third.place, "the call"),
        Finding::new(Code(101), World::NoCuda, "100% of it, over\nrows: a,b", second),
        Finding::new(Code(101), World::NoCuda, "layers[0](x) and \u{1b}[31m", fourth),
    ];
    s
}
