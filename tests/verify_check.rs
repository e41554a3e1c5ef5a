//! `check --verify`: findings meet the machine.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod machine;

use machine::{Machine, Torch};
use serde_json::Value;

/// A finding for each world, by the line that it is on.
const PROGRAM: &str = "\
import torch

def here():
    return torch.zeros(3).cuda()  # SD101 no-cuda
def second():
    return torch.zeros(3, device=\"cuda:1\")  # SD401 gpus<2
def large():
    if torch.cuda.is_available():
        return torch.zeros(100_000, 100_000, device=\"cuda\")  # SD501 free<40000000000
def apple():
    return torch.zeros(3, device=\"mps\")  # SD102 no-mps
def mixed():
    if torch.cuda.is_available():
        return torch.zeros(3) + torch.ones(3).cuda()  # SD201 cuda
def third():
    if torch.cuda.is_available():
        return torch.zeros(3, device=\"cuda:2\")  # SD401 gpus<3
def dropped(x: torch.Tensor):
    x.cpu()  # SD203 always
    return x
";

fn with_program(machine: Machine) -> Machine {
    machine.file("project/train.py", PROGRAM)
}

/// Each finding as "ROW CODE VERDICT", and its reason.
fn judged(machine: &Machine, arguments: &str) -> Vec<(String, String)> {
    let run = machine.run(&format!("check --output-format json --isolated {arguments} train.py"));
    assert_eq!(run.stderr, "", "{run:?}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |finding: &Value| {
        let row = &finding["location"]["row"];
        let name = format!("{row} {} {}", text(&finding["code"]), text(&finding["verdict"]));
        (name, text(&finding["verdict_reason"]))
    };
    run.json().as_array().unwrap().iter().map(one).collect()
}

/// Asserts that there is this verdict for a reason that has this in it.
fn expect(judged: &[(String, String)], name: &str, part: &str) {
    let found = judged.iter().find(|(found, _)| found == name);
    let Some((_, reason)) = found else { panic!("no {name} in {judged:#?}") };
    assert!(reason.contains(part), "{name}: {part}: {reason}");
}

#[test]
fn without_an_accelerator_a_module_is_where_its_tensors_are() {
    let program = "\
import torch
from torch import nn

class Noisy(nn.Module):
    def forward(self, x):
        return x + torch.randn(3, 3)  # SD204 cuda
";
    let machine = Machine::bare().torch(&Torch::cu126()).file("project/train.py", program);
    expect(&judged(&machine, "--verify"), "6 SD204 refuted", "no CUDA");
}

#[test]
fn on_a_machine_without_cuda() {
    let judged = judged(&with_program(Machine::bare().torch(&Torch::cu126())), "--verify");
    let none = "this machine has no CUDA: there is no NVIDIA GPU";
    expect(&judged, "4 SD101 confirmed", none);
    expect(&judged, "6 SD401 confirmed", none);
    expect(&judged, "9 SD501 refuted", none);
    expect(&judged, "11 SD102 confirmed", "MPS exists only on macOS, and this system is linux");
    expect(&judged, "14 SD201 refuted", none);
    expect(&judged, "17 SD401 refuted", "the program does not reach this line here: ");
    // Nothing has to move where there is only the CPU.
    expect(&judged, "19 SD203 refuted", "this machine has only the CPU, so nothing moves");
}

#[test]
fn on_a_machine_with_one_gpu() {
    let machine = with_program(Machine::usable()).set("STUB_FREE", "22630");
    let looked = judged(&machine, "--verify");
    expect(&looked, "4 SD101 refuted", "this machine has CUDA: 1 CUDA device is visible (Stub GPU 0)");
    expect(&looked, "6 SD401 confirmed", "this machine has 1 device: `cuda:1` raises here");
    expect(&looked, "9 SD501 open", "the free memory of GPU 0 is not known; `--verify=run` measures it");
    expect(&looked, "14 SD201 confirmed", "this machine has CUDA");
    expect(&looked, "17 SD401 confirmed", "`cuda:2` raises here");
    expect(&looked, "19 SD203 confirmed", "this machine has CUDA");
    let used = judged(&machine, "--verify=run");
    expect(&used, "9 SD501 confirmed", "needs 37.3 GiB; GPU 0 has 22.1 GiB free");
    let used = judged(&with_program(Machine::usable()).set("STUB_FREE", "39000"), "--verify=run");
    expect(&used, "9 SD501 refuted", "GPU 0 has 38.1 GiB free");
    let small = judged(&with_program(Machine::usable()).set("STUB_TOTAL", "8192"), "--verify");
    expect(&small, "9 SD501 confirmed", "needs 37.3 GiB; GPU 0 has 8.0 GiB in total");
}

#[test]
fn on_a_machine_with_several_gpus() {
    let machine =
        with_program(Machine::usable()).set("STUB_DEVICES", "3").set("STUB_FREE", "39000,100,39000");
    let all = judged(&machine, "--verify=run");
    expect(&all, "6 SD401 refuted", "this machine has 3 devices: `cuda:1` exists");
    expect(&all, "17 SD401 refuted", "`cuda:2` exists");
    expect(&all, "9 SD501 open", "GPU 0 has 38.1 GiB free, GPU 1 has 100.0 MiB free");
    let shown = judged(&machine.set("CUDA_VISIBLE_DEVICES", "0,2"), "--verify=run");
    expect(&shown, "6 SD401 refuted", "this machine has 2 devices visible of 3");
    expect(&shown, "17 SD401 confirmed", "this machine has 2 devices visible of 3: `cuda:2` raises here");
    expect(&shown, "9 SD501 refuted", "GPU 1 has 38.1 GiB free");
}

#[test]
fn sizes_are_really_allocated_if_asked_for() {
    let machine = with_program(Machine::usable()).set("STUB_FREE", "39000").logged();
    expect(&judged(&machine, "--verify=run --memory"), "9 SD501 refuted", "GPU 0 allocated it");
    let log = machine.log();
    assert!(
        log.contains("allocated 40000000000\n")
            && log.ends_with("left: 0 contexts, 0 allocations, 0 modules\n")
    );
    let machine = with_program(Machine::usable()).set("STUB_FREE", "22630").logged();
    expect(&judged(&machine, "--verify=run --memory"), "9 SD501 confirmed", "GPU 0 has 22.1 GiB free");
    assert!(!machine.log().contains("allocated 40000000000"), "more than is free is never asked for");
    let run = machine.run("check --verify --memory");
    assert!(run.code == Some(2) && run.stderr.contains("needs `--verify=run`"), "{run:?}");
}

#[test]
fn what_is_not_known_is_open() {
    for machine in [
        with_program(Machine::usable()).set("STUB_CRASH", "cuInit"),
        // AMD's GPUs are not asked for where Windows has them.
        with_program(Machine::with_driver().torch(&Torch::rocm()))
            .system("proc/version", "Linux microsoft WSL2\n"),
    ] {
        let judged = judged(&machine, "--verify");
        let part = "whether this machine has CUDA is not known";
        for name in ["4 SD101 open", "6 SD401 open", "9 SD501 open", "14 SD201 open", "17 SD401 open"] {
            expect(&judged, name, part);
        }
    }
    let machine = with_program(Machine::usable()).set("STUB_HANG", "cuInit");
    expect(&judged(&machine, "--verify --time-limit 1"), "4 SD101 open", "the driver does not respond");
    // Available, but nothing runs.
    let machine = with_program(Machine::usable()).set("STUB_CAPABILITY", "12.0");
    let judged = judged(&machine, "--verify");
    expect(&judged, "14 SD201 open", "its PyTorch has no code for cuda:0 (Stub GPU 0)");
    expect(&judged, "4 SD101 refuted", "this machine has CUDA");
}

#[test]
fn a_cpu_build_has_no_cuda_whatever_the_driver_says() {
    let judged = judged(&with_program(Machine::with_driver().torch(&Torch::cpu())), "--verify");
    expect(&judged, "4 SD101 confirmed", "PyTorch 2.15.0+cpu is built without CUDA");
    expect(&judged, "14 SD201 refuted", "PyTorch 2.15.0+cpu is built without CUDA");
}

#[test]
fn which_findings_there_are_does_not_depend_on_the_machine() {
    let names = |machine: &Machine, arguments: &str| -> Vec<String> {
        let run = machine
            .run(&format!("check --output-format json --isolated --min-confidence low {arguments} train.py"));
        let json = run.json();
        json.as_array().unwrap().iter().map(|f| format!("{} {}", f["location"]["row"], f["code"])).collect()
    };
    let without = names(&with_program(Machine::bare()), "");
    assert!(without.len() == 7, "{without:?}");
    for machine in [Machine::bare(), Machine::usable(), Machine::usable().set("STUB_CRASH", "cuInit")] {
        assert_eq!(names(&with_program(machine), "--verify"), without);
    }
}

#[test]
fn only_what_is_confirmed() {
    let machine = with_program(Machine::usable());
    let all = judged(&machine, "--verify");
    let confirmed: Vec<_> = all.iter().filter(|(name, _)| name.ends_with(" confirmed")).cloned().collect();
    assert!(!confirmed.is_empty() && confirmed.len() < all.len());
    assert_eq!(judged(&machine, "--verify --only-confirmed"), confirmed);
    let run = machine.run("check --only-confirmed train.py");
    assert!(run.code == Some(2) && run.stderr.contains("--verify"), "{run:?}");
}

#[test]
fn the_exit_code_can_follow_the_machine() {
    let program = "import torch\n\nx = torch.zeros(3).cuda()\n";
    let code = |machine: Machine, arguments: &str| {
        machine.file("project/train.py", program).run(&format!("check --isolated {arguments}")).code
    };
    let unknown = || Machine::usable().set("STUB_CRASH", "cuInit");
    assert_eq!(code(Machine::usable(), "--verify"), Some(1), "the finding is there");
    for (which, refuted, open, confirmed) in [
        ("any", Some(1), Some(1), Some(1)),
        ("possible", Some(0), Some(1), Some(1)),
        ("confirmed", Some(0), Some(0), Some(1)),
    ] {
        let arguments = format!("--verify --fail-on-verdict {which}");
        assert_eq!(code(Machine::usable(), &arguments), refuted, "{which}");
        assert_eq!(code(unknown(), &arguments), open, "{which}");
        assert_eq!(code(Machine::bare(), &arguments), confirmed, "{which}");
    }
    assert_eq!(code(Machine::usable(), "--verify --only-confirmed"), Some(0), "nothing is left");
    assert_eq!(code(Machine::usable(), "--fail-on-verdict confirmed"), Some(2), "no machine was asked");
}

#[test]
fn a_finding_fails_if_the_machine_and_its_severity_say_so() {
    let program = "import torch\n\nx = torch.zeros(3).cuda()\n";
    let code = |machine: Machine, severity: &str, level: &str, which: &str| {
        let settings = format!("severity = {{ SD101 = '{severity}' }}\n");
        let machine = machine.file("project/samedevice.toml", &settings).file("project/train.py", program);
        machine.run(&format!("check --verify --fail-on-verdict {which} --fail-on-severity {level}")).code
    };
    // Neither condition makes up for the other.
    for (severity, level, confirmed, refuted) in
        [("error", "error", 1, 0), ("warning", "error", 0, 0), ("warning", "warning", 1, 0)]
    {
        for which in ["confirmed", "possible"] {
            let (yes, no) = (Machine::bare(), Machine::usable());
            assert_eq!(code(yes, severity, level, which), Some(confirmed), "{severity} {level} {which}");
            assert_eq!(code(no, severity, level, which), Some(refuted), "{severity} {level} {which}");
        }
        let any = code(Machine::usable(), severity, level, "any");
        assert_eq!(any, Some(confirmed), "{severity} {level}: whatever the machine says");
    }
}

#[test]
fn the_verdict_is_in_every_format() {
    let machine =
        Machine::usable().file("project/train.py", "import torch\n\nx = torch.zeros(3, device=\"cuda:1\")\n");
    let verdict = "confirmed: this machine has 1 device: `cuda:1` raises here";
    let shown = |format: &str| {
        let run = machine.run(&format!("check --isolated --verify --output-format {format}"));
        assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""), "{format}");
        run.stdout
    };
    let full = shown("full");
    assert!(full.contains(verdict) && full.contains("\nOn the machine: 1 confirmed.\n"), "{full}");
    let concise = shown("concise");
    assert!(
        concise.contains(&format!("; {verdict})")) && concise.ends_with("[hard-coded-device-index]\n"),
        "{concise}"
    );
    assert!(shown("github").contains(verdict));
    let json: Value = serde_json::from_str(&shown("json")).unwrap();
    let line: Value = serde_json::from_str(&shown("json-lines")).unwrap();
    for finding in [&json[0], &line] {
        assert_eq!(finding["verdict"], "confirmed");
        assert_eq!(finding["verdict_reason"], "this machine has 1 device: `cuda:1` raises here");
    }
    let sarif: Value = serde_json::from_str(&shown("sarif")).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["properties"]["verdict"], "confirmed");
    assert_eq!(result["properties"]["verdictReason"], "this machine has 1 device: `cuda:1` raises here");
    assert!(result["message"]["text"].as_str().unwrap().contains(verdict));
    let plain = machine.run("check --isolated --output-format json").json();
    assert_eq!((&plain[0]["verdict"], &plain[0]["verdict_reason"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_saved_report_stands_for_its_machine() {
    let gpus = Machine::usable().set("STUB_DEVICES", "2").run("verify --run --output-format json").stdout;
    // A box for tests: no GPU, no PyTorch, and a driver that must not be touched.
    let ci = with_program(Machine::with_driver().set("STUB_ABORT", "1"))
        .file("project/gpu-box.json", gpus)
        .logged();
    let judged = judged(&ci, "--machine gpu-box.json");
    expect(
        &judged,
        "4 SD101 refuted",
        "the machine of `gpu-box.json` has CUDA: 2 CUDA devices are visible (Stub GPU 0)",
    );
    expect(&judged, "6 SD401 refuted", "the machine of `gpu-box.json` has 2 devices");
    expect(&judged, "9 SD501 confirmed", "needs 37.3 GiB; GPU 0 has 20.0 GiB free, GPU 1 has 20.0 GiB free");
    expect(&judged, "17 SD401 confirmed", "`cuda:2` raises there");
    assert_eq!(ci.log(), "", "the driver of this machine was loaded");
    let text = ci.run("verify --machine gpu-box.json");
    assert!(text.stdout.contains("Stub GPU 1") && text.code == Some(0), "{text:?}");
}

#[test]
fn a_report_that_is_none() {
    let machine = with_program(Machine::bare())
        .file("project/broken.json", "{\"schema\": ")
        .file("project/other.json", "[]")
        .file("project/future.json", "{\"schema\": 99}")
        .file("project/short.json", "{\"schema\": 1}");
    for (file, part) in [
        ("nowhere.json", "cannot read `nowhere.json`"),
        ("broken.json", "is not a machine report: EOF"),
        ("other.json", "it has no `schema`"),
        ("future.json", "a report of schema 99, and this samedevice reads schema 1"),
        ("short.json", "missing field"),
    ] {
        for command in ["check --machine", "verify --machine"] {
            let run = machine.run(&format!("{command} {file}"));
            assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{command} {file}");
            assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
        }
    }
    let run = machine.run("check --machine short.json");
    assert!(
        run.stderr.contains("samedevice verify --output-format json --output-file FILE"),
        "the way out: {}",
        run.stderr
    );
}

#[test]
fn linting_never_loads_the_driver() {
    let machine = with_program(Machine::usable().set("STUB_ABORT", "1")).logged();
    for arguments in [
        "check",
        "check --output-format sarif",
        "check --statistics",
        "check --show-files",
        "rule",
        "rule SD101",
        "--help",
    ] {
        let run = machine.run(arguments);
        assert!(matches!(run.code, Some(0 | 1)), "{arguments}: {run:?}");
        assert_eq!(machine.log(), "", "{arguments}");
    }
    // Nothing to judge, nothing to ask.
    let run = machine.run("check --verify --select SD003 train.py");
    assert_eq!((run.code, machine.log().as_str()), (Some(0), ""), "{run:?}");
    // The test can fail: that is what it looks like when the driver is loaded.
    machine.run("check --verify train.py");
    assert!(machine.log().starts_with("loaded\n"));
}

#[test]
fn a_finding_may_bite_on_several_kinds_of_machines() {
    let program = "import torch\n\n\
        if torch.cuda.is_available():\n    device = \"cuda\"\n\
        elif torch.backends.mps.is_available():\n    device = \"mps\"\n\
        else:\n    device = \"cpu\"\n\
        print(torch.zeros(3) + torch.zeros(3, device=device))\n";
    let verdict = |machine: &Machine, arguments: &str| {
        let judged = judged(machine, arguments);
        let [(name, reason)] = judged.as_slice() else { panic!("{judged:?}") };
        (name.clone(), reason.clone())
    };
    let here = |machine: Machine| machine.file("project/train.py", program);
    assert_eq!(verdict(&here(Machine::usable()), "--verify").0, "9 SD201 confirmed");
    let bare = here(Machine::bare());
    assert_eq!(verdict(&bare, "--verify").0, "9 SD201 refuted");
    // A Mac, as its report has it.
    let mut mac = bare.verify("");
    mac["system"]["os"] = "macos".into();
    mac["worlds"]["backends"]["mps"] =
        serde_json::json!({"holds": "yes", "because": "it is a Mac with Apple's GPU"});
    let bare = bare.file("project/mac.json", mac.to_string());
    let (name, reason) = verdict(&bare, "--machine mac.json");
    assert_eq!(name, "9 SD201 confirmed");
    assert!(reason.contains("Apple's GPU"), "{reason}");
}

#[test]
fn a_list_of_gpus_is_forgotten_where_there_is_none() {
    let program = "import torch\nfrom torch import nn\n\nnet = nn.DataParallel(nn.Linear(8, 2), device_ids=[0, 1, 2, 3])\n";
    let judge = |machine: Machine| judged(&machine.file("project/train.py", program), "--verify");
    expect(&judge(Machine::bare()), "4 SD402 refuted", "has no CUDA");
    expect(
        &judge(Machine::usable().set("STUB_DEVICES", "2")),
        "4 SD402 confirmed",
        "2 devices: `cuda:3` raises here",
    );
    expect(
        &judge(Machine::usable().set("STUB_DEVICES", "4")),
        "4 SD402 refuted",
        "4 devices: `cuda:3` exists",
    );
}

/// What a machine says of a world, through the library.
fn said(machine: &Value, world: samedevice::world::World) -> (samedevice::finding::Verdict, String) {
    use samedevice::finding::{Code, Finding, Label};
    use samedevice::span::{FileId, Place, Span};
    let machine = serde_json::from_value(machine.clone()).unwrap();
    let judge = samedevice::verify::judge::Judge::here(&machine);
    let place = Place { file: FileId(0), span: Span::new(0, 0) };
    let judgement = judge.judge(&Finding::new(Code(101), world, "wrong", Label::new(place, "")));
    (judgement.verdict, judgement.reason)
}

#[test]
fn every_world_is_judged() {
    use samedevice::finding::Verdict::{Confirmed, Open, Refuted};
    use samedevice::world::{Backend, World};
    let torch =
        Torch { xpu: Some("20250101"), packages: &[("torch-npu", "2.5.1")], requires: &[], ..Torch::cu126() };
    let two = Machine::with_driver()
        .torch(&torch)
        .set("STUB_DEVICES", "2")
        .set("STUB_CAPABILITY", "7.5,8.6")
        .verify("");
    let none = Machine::bare().torch(&Torch::cu126()).verify("");
    let hangs = Machine::usable().set("STUB_CRASH", "cuInit").verify("");
    let empty = Machine::bare().verify("");
    for (world, on_two, on_none, on_unknown) in [
        (World::Always, Confirmed, Confirmed, Confirmed),
        (World::NoCuda, Refuted, Confirmed, Open),
        (World::Cuda, Confirmed, Refuted, Open),
        (World::FewerGpus(1), Refuted, Confirmed, Open),
        (World::FewerGpus(2), Refuted, Confirmed, Open),
        (World::FewerGpus(3), Confirmed, Confirmed, Open),
        (World::Gpus(2), Confirmed, Refuted, Open),
        (World::Gpus(3), Refuted, Refuted, Open),
        (World::FreeBelow(1 << 50), Confirmed, Refuted, Open),
        (World::CapabilityBelow(7, 5), Refuted, Refuted, Open),
        (World::CapabilityBelow(8, 0), Open, Refuted, Open),
        (World::CapabilityBelow(9, 0), Confirmed, Refuted, Open),
        (World::No(Backend::Mps), Confirmed, Confirmed, Confirmed),
        (World::With(Backend::Mps), Refuted, Refuted, Refuted),
        (World::No(Backend::Xpu), Open, Confirmed, Confirmed),
        (World::With(Backend::Npu), Open, Refuted, Refuted),
        (World::No(Backend::Hpu), Confirmed, Confirmed, Confirmed),
    ] {
        for (machine, expected) in [(&two, on_two), (&none, on_none), (&hangs, on_unknown)] {
            let (verdict, reason) = said(machine, world);
            assert_eq!(verdict, expected, "{world}: {reason}");
            assert!(!reason.is_empty(), "{world}");
        }
    }
    assert_eq!(said(&empty, World::With(Backend::Xla)).0, Open, "no PyTorch, no plug-in to look for");
    assert_eq!(
        said(&two, World::CapabilityBelow(8, 0)).1,
        "needs 8.0; cuda:0 has compute capability 7.5, cuda:1 has compute capability 8.6"
    );
}
