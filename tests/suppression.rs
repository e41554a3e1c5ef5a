//! What is suppressed hides no other line: comments and `per-file-ignores` take away what they are about, and the rest is told.

mod support;

use std::collections::BTreeSet;

use serde_json::Value;
use support::Project;

const MARK: (&str, &str) = ("pyproject.toml", "[project]\nname = \"x\"\n");
const IMPORTS: &str = "import torch\nfrom torch import nn\n";

/// A place: code, file, row.
type At = (String, String, u64);

fn at(code: &str, file: &str, row: u64) -> At {
    (code.to_owned(), file.to_owned(), row)
}

/// The findings, each with all of its places, the primary one first.
fn findings(project: &Project, arguments: &str) -> Vec<Vec<At>> {
    let run = project.run(&format!("check --no-cache --min-confidence low --output-format json {arguments}"));
    let Ok(Value::Array(found)) = serde_json::from_str(&run.stdout) else { panic!("{run:?}") };
    let place = |code: &Value, v: &Value| {
        let file = v["filename"].as_str().unwrap_or_default();
        let file = file.strip_prefix(&format!("{}/", project.root().display())).unwrap_or(file);
        at(code.as_str().unwrap_or_default(), file, v["location"]["row"].as_u64().unwrap_or_default())
    };
    let places = |f: &Value| {
        let related = f["related"].as_array().into_iter().flatten();
        std::iter::once(f).chain(related).map(|v| place(&f["code"], v)).collect()
    };
    found.iter().map(places).collect()
}

/// Where findings are told.
fn told(project: &Project, arguments: &str) -> BTreeSet<At> {
    findings(project, arguments).into_iter().filter_map(|places| places.into_iter().next()).collect()
}

fn set(places: &[(&str, &str, u64)]) -> BTreeSet<At> {
    places.iter().map(|&(code, file, row)| at(code, file, row)).collect()
}

/// A program, and the rows of its lines that each need CUDA: those that are marked with `@`.
fn program(text: &str) -> (Vec<String>, Vec<usize>) {
    let lines: Vec<&str> = text.lines().collect();
    let rows = (0..lines.len()).filter(|&n| lines[n].ends_with('@')).map(|n| n + 1).collect();
    (lines.into_iter().map(|line| line.trim_end_matches('@').to_owned()).collect(), rows)
}

/// So many pieces of text, each made of its number.
fn repeat(n: usize, piece: impl Fn(usize) -> String) -> String {
    (0..n).map(piece).collect()
}

/// Programs of lines that each need CUDA.
fn programs(n: usize) -> Vec<String> {
    let functions = repeat(n, |i| format!("def f{i}():\n    return nn.Linear(2, 2).cuda()@\n"));
    let calls = repeat(n, |i| format!("    f{i}()\n"));
    vec![
        repeat(n, |i| format!("a{i} = nn.Linear(2, 2).cuda()@\n")),
        functions.clone(),
        format!("{functions}def main():\n{calls}main()\n"),
        // Where the device is decided once, each use of it is a way of its own.
        format!(
            "device = \"cuda\"\n{}",
            repeat(n, |i| format!("def f{i}():\n    return nn.Linear(2, 2).to(device)@\n"))
        ),
        format!("device = \"cuda\"\n{}", repeat(n, |i| format!("a{i} = nn.Linear(2, 2).to(device)@\n"))),
        format!(
            "class M(nn.Module):\n    def forward(self, x):\n{}        return x\n",
            repeat(n, |_| "        x = x + torch.ones(2, device=\"cuda\")@\n".to_owned())
        ),
        format!("class T:\n{}", repeat(n, |i| format!("    def f{i}(self, x):\n        return x.cuda()@\n"))),
        format!(
            "{}def f{n}(x):\n    return x\nf0(torch.ones(2))\n",
            repeat(n, |i| format!("def f{i}(x):\n    x = x.cuda()@\n    return f{}(x)\n", i + 1))
        ),
        repeat(n, |i| {
            let made = if i % 2 == 0 { "torch.cuda.FloatTensor(3)" } else { "nn.Linear(2, 2).cuda()" };
            format!("a{i} = {made}@\n")
        }),
    ]
}

#[test]
fn whatever_lines_are_suppressed_exactly_the_others_are_told() {
    const LINES: usize = 3;
    for text in programs(LINES) {
        let (lines, rows) = program(&format!("{IMPORTS}{text}"));
        assert_eq!(rows.len(), LINES);
        let project = Project::new(&[]);
        for subset in 0..1_usize << LINES {
            let mut lines = lines.clone();
            let is_suppressed = |n: usize| subset >> n & 1 == 1;
            let comments = ["# samedevice: ignore", "# noqa: SD101, SD106, SD305"];
            for n in (0..LINES).filter(|&n| is_suppressed(n)) {
                let line = &mut lines[rows[n] - 1];
                *line = format!("{line}  {}", comments[subset % 2]);
            }
            project.write("a.py", lines.join("\n"));
            let found = findings(&project, "--isolated --ignore SD002 a.py");
            let found: BTreeSet<u64> = found.into_iter().flatten().map(|(_, _, row)| row).collect();
            let open: BTreeSet<u64> =
                (0..LINES).filter(|&n| !is_suppressed(n)).map(|n| rows[n] as u64).collect();
            let needs: BTreeSet<u64> = rows.iter().map(|&row| row as u64).collect();
            let told: BTreeSet<u64> = found.intersection(&needs).copied().collect();
            assert_eq!(told, open, "{}", lines.join("\n"));
            assert_eq!(found.is_empty(), open.is_empty(), "{}", lines.join("\n"));
            let unused = told_unused(&project);
            assert!(unused.is_empty(), "{unused:?}\n{}", lines.join("\n"));
        }
    }
}

/// The comments that are told to suppress nothing, but for those of several rules of which one counts.
fn told_unused(project: &Project) -> Vec<String> {
    let run = project.run("check --no-cache --isolated --select ALL --output-format concise a.py");
    let nothing =
        |line: &&str| line.contains("there is no finding here") || line.contains("`SD101`, `SD106`, `SD305`");
    run.stdout.lines().filter(nothing).map(str::to_owned).collect()
}

#[test]
fn one_of_many_functions_hides_none_of_the_others() {
    let (mut lines, rows) = program(&format!("{IMPORTS}{}", programs(40)[3]));
    let last = rows[39];
    lines[last - 1].push_str("  # noqa: SD101");
    let project = Project::new(&[("a.py", &lines.join("\n"))]);
    assert_eq!(told(&project, "--isolated"), set(&[("SD101", "a.py", 3)]));
    // Where all but one are suppressed, that one is told, with the place where the device is decided.
    let (mut lines, rows) = program(&format!("{IMPORTS}{}", programs(40)[3]));
    for &row in &rows[..39] {
        lines[row - 1].push_str("  # noqa: SD101");
    }
    project.write("a.py", lines.join("\n"));
    let found = findings(&project, "--isolated");
    assert_eq!(found, [vec![at("SD101", "a.py", 3), at("SD101", "a.py", last as u64)]]);
    lines[2].push_str("  # noqa: SD101");
    project.write("a.py", lines.join("\n"));
    assert!(told(&project, "--isolated").is_empty());
}

#[test]
fn all_comments_of_a_long_chain_are_used() {
    for n in [15, 60] {
        let line = |i: usize| format!("a{i} = nn.Linear(2, 2).cuda()  # samedevice: ignore[SD101]\n");
        let project = Project::new(&[("a.py", &format!("{IMPORTS}{}", repeat(n, line)))]);
        assert!(findings(&project, "--isolated").is_empty());
        let told_at_first =
            repeat(n, |i| if i == 0 { "a = nn.Linear(2, 2).cuda()\n".to_owned() } else { line(i) });
        project.write("a.py", format!("{IMPORTS}{told_at_first}"));
        assert_eq!(findings(&project, "--isolated"), [vec![at("SD101", "a.py", 3)]]);
    }
}

#[test]
fn later_places_that_are_suppressed_make_room_for_others() {
    let line = |i: usize| {
        let comment = if (1..=12).contains(&i) { "  # samedevice: ignore" } else { "" };
        format!("a{i} = nn.Linear(2, 2).cuda(){comment}\n")
    };
    let project = Project::new(&[("a.py", &format!("{IMPORTS}{}", repeat(15, line)))]);
    let rows = [3, 16, 17].map(|row| at("SD101", "a.py", row));
    assert_eq!(findings(&project, "--isolated"), [rows]);
}

#[test]
fn a_suppressed_place_on_the_way_takes_that_way_alone() {
    let text = format!(
        "{IMPORTS}def build():\n    return nn.Linear(2, 2).cuda()\n\na = build()  # samedevice: ignore\n"
    );
    let project = Project::new(&[("a.py", &text)]);
    assert!(told(&project, "--isolated").is_empty());
    project.write("a.py", format!("{text}b = build()\n"));
    assert_eq!(told(&project, "--isolated"), set(&[("SD101", "a.py", 4)]));
    // Where the device was decided, all that hangs on it is suppressed, and nothing else.
    let text = format!(
        "{IMPORTS}device = \"cuda\"  # samedevice: ignore[SD101]\na = nn.Linear(2, 2).to(device)\nb = nn.Linear(2, 2).to(device)\nc = nn.Linear(2, 2).cuda()\n"
    );
    project.write("a.py", text);
    assert_eq!(findings(&project, "--isolated"), [vec![at("SD101", "a.py", 6)]]);
    // It is of use, too, where another line comes before.
    let text = format!(
        "{IMPORTS}c = nn.Linear(2, 2).cuda()\ndevice = \"cuda\"  # samedevice: ignore[SD101]\na = nn.Linear(2, 2).to(device)\n"
    );
    project.write("a.py", text);
    assert_eq!(findings(&project, "--isolated"), [vec![at("SD101", "a.py", 3)]]);
}

/// `main.py` goes through these files, of which each needs CUDA on row 3.
fn chain(files: &[&str]) -> Project {
    let project = Project::new(&[MARK]);
    let imports = files.iter().map(|f| format!("import {f}\n")).collect::<String>();
    let calls = files.iter().map(|f| format!("    {f}.run(x)\n")).collect::<String>();
    project.write("main.py", format!("{imports}\n\ndef main(x):\n{calls}\n\ndef start(x):\n    main(x)\n"));
    for file in files {
        project.write(&format!("{file}.py"), "import torch\ndef run(x):\n    return x.cuda()\n");
    }
    project
}

#[test]
fn of_a_chain_through_files_the_first_one_that_is_not_suppressed_is_told() {
    let project = chain(&["a", "b", "c"]);
    assert_eq!(told(&project, "--isolated"), set(&[("SD101", "a.py", 3)]));
    let silent = "import torch\ndef run(x):\n    return x.cuda()  # samedevice: ignore[SD101]\n";
    project.write("a.py", silent);
    assert_eq!(told(&project, "--isolated"), set(&[("SD101", "b.py", 3)]));
    assert_eq!(told(&project, "--isolated b.py c.py"), set(&[("SD101", "b.py", 3)]));
    project.write("b.py", silent);
    assert_eq!(told(&project, "--isolated"), set(&[("SD101", "c.py", 3)]));
    project.write("c.py", silent);
    assert!(told(&project, "--isolated").is_empty());
    assert!(!told(&project, "--isolated --no-ignores").is_empty());
}

#[test]
fn a_comment_after_a_use_in_another_file_is_there_for_when_that_is_mended() {
    let project = chain(&["a", "b"]);
    project.write("b.py", "import torch\ndef run(x):\n    return x.cuda()  # samedevice: ignore[SD101]\n");
    assert_eq!(told(&project, "--isolated"), set(&[("SD101", "a.py", 3)]));
}

#[test]
fn a_file_whose_rule_is_off_is_no_guard() {
    for rules in ["\"SD101\"", "\"SD1\"", "\"ALL\""] {
        let project = chain(&["a", "b", "c"]);
        project.write("samedevice.toml", format!("per-file-ignores = {{ \"a.py\" = [{rules}] }}\n"));
        assert_eq!(told(&project, ""), set(&[("SD101", "b.py", 3)]), "{rules}");
        assert_eq!(told(&project, "b.py"), set(&[("SD101", "b.py", 3)]), "{rules}");
    }
    let project = chain(&["a", "b", "c"]);
    project.write("samedevice.toml", "per-file-ignores = { \"b.py\" = [\"SD101\"], \"a.py\" = [\"SD2\"] }\n");
    assert_eq!(told(&project, ""), set(&[("SD101", "a.py", 3)]));
}

#[test]
fn an_imported_file_whose_rule_is_off_is_no_guard() {
    let a = format!("{IMPORTS}a = nn.Linear(2, 2).cuda()\n");
    let b = format!("{IMPORTS}import a\nb = nn.Linear(2, 2).cuda()\n");
    let project = Project::new(&[MARK, ("a.py", &a), ("b.py", &b)]);
    assert_eq!(told(&project, ""), set(&[("SD101", "a.py", 3)]));
    project.write("samedevice.toml", "per-file-ignores = { \"a.py\" = [\"SD101\"] }\n");
    assert_eq!(told(&project, ""), set(&[("SD101", "b.py", 4)]));
    project.write("samedevice.toml", "");
    project.write("a.py", format!("{IMPORTS}a = nn.Linear(2, 2).cuda()  # noqa: SD101\n"));
    assert_eq!(told(&project, ""), set(&[("SD101", "b.py", 4)]));
}

#[test]
fn what_is_told_where_a_tensor_is_made_is_told_where_it_meets_others_if_that_is_suppressed() {
    let text =
        "import torch\n\n\ndef shifted(x: torch.Tensor):\n    step = torch.arange(3)\n    return x + step\n";
    let project = Project::new(&[("a.py", text)]);
    assert_eq!(told(&project, "--isolated"), set(&[("SD204", "a.py", 5)]));
    // Both lines belong to one way.
    let all = text.replace("x + step", "x + step  # samedevice: ignore");
    project.write("a.py", all);
    assert!(told(&project, "--isolated").is_empty());
    let dropped =
        "import torch\nx = torch.ones(3, device=\"cuda\")\ny = torch.ones(3)\ny.cuda()\nz = x + y\n";
    project.write("a.py", dropped);
    assert!(told(&project, "--isolated --select SD2").contains(&at("SD203", "a.py", 4)));
    project.write("a.py", dropped.replace("y.cuda()", "y.cuda()  # samedevice: ignore[SD203]"));
    assert_eq!(told(&project, "--isolated --select SD2,SD002"), set(&[("SD201", "a.py", 5)]));
}

#[test]
fn what_is_copied_is_told_where_the_original_is_suppressed() {
    let block = "class Block(nn.Module):\n    def forward(self, x):\n        return x + torch.zeros(3, device=\"cuda\")\n";
    let original = format!("{IMPORTS}\n\n{block}");
    let copy = format!("{IMPORTS}\n\n# Copied from nets.first.Block\n{block}");
    let project = Project::new(&[
        MARK,
        ("nets/__init__.py", ""),
        ("nets/first.py", &original),
        ("nets/second.py", &copy),
    ]);
    assert_eq!(told(&project, "--isolated --select SD305"), set(&[("SD305", "nets/first.py", 7)]));
    project.write("nets/first.py", original.replace("\"cuda\")", "\"cuda\")  # samedevice: ignore[SD305]"));
    assert_eq!(told(&project, "--isolated --select SD305"), set(&[("SD305", "nets/second.py", 8)]));
    project.write("nets/first.py", &original);
    project.write("samedevice.toml", "per-file-ignores = { \"nets/first.py\" = [\"SD305\"] }\n");
    assert_eq!(told(&project, "--select SD305"), set(&[("SD305", "nets/second.py", 8)]));
}
