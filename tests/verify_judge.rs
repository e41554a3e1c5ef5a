//! `check --verify`: what is known of the machine, and does not decide by itself what happens there.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod machine;

use machine::{Machine, Torch};
use serde_json::{Value, json};

/// A finding for each world that a GPU without code is about, and one that is wrong everywhere.
const PROGRAM: &str = "\
import torch

def second():
    return torch.zeros(3, device=\"cuda:1\")  # SD401 gpus<2
def large():
    if torch.cuda.is_available():
        return torch.zeros(100_000, 100_000, device=\"cuda\")  # SD501 free<40000000000
def short():
    if torch.cuda.is_available():
        return torch.zeros(3, device=\"cuda\", dtype=torch.bfloat16)  # SD703 cc<8.0
def mixed():
    if torch.cuda.is_available():
        return torch.zeros(3) + torch.ones(3).cuda()  # SD201 cuda
def nowhere():
    return torch.zeros(3).to(\"cuda0\")  # SD801 always
def named(x: torch.Tensor):
    return x.device == \"cuda\"  # SD802 always
def dropped(x: torch.Tensor):
    x.cpu()  # SD203 always
    return x
";

/// Whose device nobody names: the module's, the argument's.
const BY_OTHERS: &str = "\
import torch
from torch import nn

class Noisy(nn.Module):
    def forward(self, x):
        return x + torch.randn(3, 3)  # SD204 cuda

class Guarded(nn.Module):
    def forward(self, x):
        if torch.cuda.is_available():
            return x + torch.randn(3, 3)  # SD204 cuda
        return x
";

/// The verdict for the finding of this rule in this row, and its reason.
fn verdict(machine: &Machine, arguments: &str, row: u64, code: &str) -> (String, String) {
    let run = machine
        .run(&format!("check --output-format json --isolated --extend-select SD703 {arguments} --min-confidence low train.py"));
    let json = run.json();
    let all = json.as_array().unwrap();
    let found = all.iter().find(|f| f["location"]["row"] == row && f["code"] == code);
    let found = found.unwrap_or_else(|| panic!("no {code} in row {row}: {json:#}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("verdict"), text("verdict_reason"))
}

/// Asserts the verdict, and that the reason has this in it.
fn expect(machine: &Machine, arguments: &str, (row, code): (u64, &str), wanted: &str, part: &str) {
    let (verdict, reason) = verdict(machine, arguments, row, code);
    assert_eq!(verdict, wanted, "{row} {code}: {reason}");
    assert!(reason.contains(part), "{row} {code}: {part}: {reason}");
}

/// The report of a Mac with Apple's GPU and this PyTorch.
fn mac() -> Value {
    let mut report = Machine::bare().torch(&Torch::cpu()).verify("");
    report["system"]["os"] = json!("macos");
    report["system"]["arch"] = json!("aarch64");
    report["worlds"]["cuda"] = json!({"holds": "no", "because": "macOS has no CUDA"});
    report["worlds"]["backends"]["mps"] = json!({"holds": "yes", "because": "it is a Mac with Apple's GPU"});
    report
}

#[test]
fn what_fails_before_it_gets_there_is_open() {
    // PyTorch has no code for this GPU: nothing is refuted or confirmed that is about its number, memory or capability.
    let machine = Machine::usable().set("STUB_CAPABILITY", "3.5").set("STUB_TOTAL", "8192");
    let machine = machine.file("project/train.py", PROGRAM);
    let part = "its PyTorch has no code for cuda:0 (Stub GPU 0): the program fails before this line";
    for finding in [(4, "SD401"), (7, "SD501"), (10, "SD703"), (13, "SD201")] {
        expect(&machine, "--verify", finding, "open", part);
    }
    // With code for it they are decided.
    let torch = Torch { archs: "sm_35 sm_37", ..Torch::cu126() };
    let machine =
        Machine::with_driver().torch(&torch).set("STUB_CAPABILITY", "3.5").set("STUB_TOTAL", "8192");
    let machine = machine.file("project/train.py", PROGRAM);
    for finding in [(4, "SD401"), (7, "SD501"), (10, "SD703"), (13, "SD201")] {
        expect(&machine, "--verify", finding, "confirmed", "");
    }
    // That there are as many GPUs as it takes is no question of their code.
    let machine = Machine::usable().set("STUB_CAPABILITY", "3.5").set("STUB_DEVICES", "2");
    let machine = machine.file("project/train.py", PROGRAM);
    expect(&machine, "--verify", (4, "SD401"), "refuted", "this machine has 2 devices");
}

#[test]
fn what_shows_only_with_an_accelerator() {
    let cpu = Machine::bare().torch(&Torch::cu126()).file("project/train.py", PROGRAM);
    for finding in [(17, "SD802"), (19, "SD203")] {
        expect(
            &cpu,
            "--verify",
            finding,
            "refuted",
            "has only the CPU, so nothing moves: there is no NVIDIA GPU",
        );
    }
    expect(&cpu, "--verify", (15, "SD801"), "confirmed", "it does not depend on the machine");
    let gpu = Machine::usable().file("project/train.py", PROGRAM);
    for finding in [(17, "SD802"), (19, "SD203")] {
        expect(&gpu, "--verify", finding, "confirmed", "this machine has CUDA");
    }
    let unknown = Machine::usable().set("STUB_CRASH", "cuInit").file("project/train.py", PROGRAM);
    expect(&unknown, "--verify", (19, "SD203"), "open", "is not known");
    let apple = Machine::bare().file("project/train.py", PROGRAM).file("project/mac.json", mac().to_string());
    expect(
        &apple,
        "--machine mac.json",
        (19, "SD203"),
        "confirmed",
        "has `mps`: it is a Mac with Apple's GPU",
    );
}

#[test]
fn the_device_that_nobody_names_may_be_another_accelerator() {
    let apple =
        Machine::bare().file("project/train.py", BY_OTHERS).file("project/mac.json", mac().to_string());
    expect(&apple, "--machine mac.json", (6, "SD204"), "open", "its device may be `mps`");
    expect(&apple, "--machine mac.json", (11, "SD204"), "refuted", "");
    let cpu = Machine::bare().torch(&Torch::cu126()).file("project/train.py", BY_OTHERS);
    expect(&cpu, "--verify", (6, "SD204"), "refuted", "no CUDA");
    // A program that names CUDA has none of it on a Mac.
    let apple = Machine::bare().file("project/train.py", PROGRAM).file("project/mac.json", mac().to_string());
    expect(&apple, "--machine mac.json", (13, "SD201"), "refuted", "macOS has no CUDA");
}

#[test]
fn where_pytorch_cannot_be_imported_nothing_is_reached() {
    let machine = Machine::usable().file("project/train.py", PROGRAM);
    let machine =
        machine.without("project/.venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9");
    let part = "on this machine, `import torch` fails: libcudnn.so.9 is missing";
    for finding in [(4, "SD401"), (7, "SD501"), (13, "SD201"), (19, "SD203")] {
        expect(&machine, "--verify", finding, "open", part);
    }
    expect(&machine, "--verify", (15, "SD801"), "confirmed", "it does not depend on the machine");
}
