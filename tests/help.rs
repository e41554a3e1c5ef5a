//! Help calls things by names that exist where somebody would write them, or says it in words.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What is printed of a program, with one blank between words.
fn told(name: &str, program: &str) -> Result<String, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("help").join(name);
    fs::create_dir_all(&root)?;
    let file = root.join("program.py");
    fs::write(&file, program)?;
    let run = Command::new(env!("CARGO_BIN_EXE_samedevice"))
        .args(["check", "--isolated", "--no-cache", "--color", "never"])
        .arg(&file)
        .output()?;
    let text = String::from_utf8(run.stdout)?;
    // Help is broken into lines, and what it shows with it.
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn a_tensor_is_made_where_the_one_is_that_it_meets() -> Result<(), Box<dyn Error>> {
    let program = "\
import torch
from torch import nn


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, inputs):
        hidden = self.linear(inputs)
        noise = torch.randn(hidden.shape)
        return hidden + noise

    def later(self, inputs):
        noise = torch.randn(8)
        hidden = self.linear(inputs)
        return hidden + noise
";
    let text = told("made", program)?;
    assert!(text.contains("`noise = torch.randn(hidden.shape, device=hidden.device)`"), "{text}");
    // There is no `hidden` yet.
    assert!(!text.contains("torch.randn(8, device=hidden.device)"), "{text}");
    Ok(())
}

#[test]
fn a_device_is_passed_as_it_is() -> Result<(), Box<dyn Error>> {
    let program = "\
import torch


def run(rows, args):
    rows = torch.ones(3).to(args.device)
    index = torch.zeros(3)
    return rows + index
";
    let text = told("device", program)?;
    assert!(!text.contains("device.device"), "{text}");
    assert!(!text.contains("other.device"), "{text}");
    Ok(())
}

#[test]
fn a_call_of_a_module_names_the_argument_and_the_side() -> Result<(), Box<dyn Error>> {
    let program = "\
import torch
from torch import nn

if torch.cuda.is_available():
    net = nn.Linear(4, 4)
    rows = torch.randn(4).cuda()
    net(rows)
    lstm = nn.LSTM(4, 4).cuda()
    states = torch.zeros(1, 4)
    lstm(states)
";
    let text = told("sides", program)?;
    assert!(text.contains("`net(rows)` raises: `net` is on the CPU, `rows` is on `cuda`"), "{text}");
    assert!(text.contains("move the module: `net.to(rows.device)`"), "{text}");
    assert!(text.contains("`lstm(states)` raises: `states` is on the CPU, `lstm` is on `cuda`"), "{text}");
    assert!(text.contains("`states.to(next(lstm.parameters()).device)`"), "{text}");
    Ok(())
}

#[test]
fn a_message_names_the_operation_and_both_sides() -> Result<(), Box<dyn Error>> {
    let program = "\
import numpy as np
import torch
from torch import nn

if torch.cuda.is_available():
    x = torch.ones(3, device=\"cuda\")
    y = torch.ones(3)
    x += y
    table = np.zeros(3)
    table[:] = x


def shifted(rows: torch.Tensor, args):
    print(torch.zeros(3).to(args.device) * torch.ones(3))
    return rows.view(-1) + torch.ones(3), sum([torch.zeros(3), rows])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)

    def forward(self, x):
        hidden = self.line(x)
        return hidden + torch.ones(3)
";
    // Long messages are wrapped.
    let text = told("sides_named", program)?.replace(" │ ", " ");
    for message in [
        "`x += y` raises: `y` is on the CPU, `x` is on `cuda`",
        "`table[:] = x` raises: `x` is on `cuda`, and NumPy reads only CPU memory",
        "`torch.zeros(3).to(args.device) * torch.ones(3)` raises if `args.device` is a GPU: `torch.ones(3)` is on the CPU",
        "`rows.view(-1) + torch.ones(3)` raises if `rows` is on a GPU: `torch.ones(3)` is on the CPU",
        "`sum([torch.zeros(3), rows])` raises if `rows` is on a GPU: `[torch.zeros(3), rows]` has a tensor on the CPU",
        "`hidden + torch.ones(3)` raises if the module is on a GPU: `torch.ones(3)` is on the CPU, `hidden` is on the module's device",
    ] {
        assert!(text.contains(message), "{message}\n{text}");
    }
    Ok(())
}

#[test]
fn a_parameter_is_moved_by_its_values() -> Result<(), Box<dyn Error>> {
    let program = "\
import torch
from torch import nn


class Bank(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.bank = nn.Parameter(torch.ones(4))
        self.bank.to(device)
        self.rows = torch.ones(4)
        self.rows.to(device)
";
    let text = told("parameter", program)?;
    assert!(text.contains("`self.bank.data = self.bank.data.to(device)`"), "{text}");
    assert!(text.contains("`self.rows = self.rows.to(device)`"), "{text}");
    Ok(())
}
