//! `samedevice verify`: what it writes, and what it reads of that.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod machine;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use machine::{Machine, Torch, problem};
use serde_json::{Value, json};

/// A report as the first version wrote it.
const OLD: &str = include_str!("machine/report-of-0.1.0.json");

#[test]
fn a_report_for_an_issue_has_what_people_ask_for() {
    let torch = Torch {
        packages: &[
            ("nvidia-cudnn-cu12", "9.10.2.21"),
            ("torchvision", "0.29.0"),
            ("torchaudio", "2.11.1"),
            ("triton", "3.9.0"),
            ("xformers", "0.0.40"),
        ],
        ..Torch::cu126()
    };
    let machine = Machine::with_driver()
        .environment("home/train/.venv")
        .installed("home/train/.venv/lib/python3.11/site-packages", &torch)
        .point("VIRTUAL_ENV", "home/train/.venv")
        .system("etc/os-release", "NAME=\"Ubuntu\"\nPRETTY_NAME=\"Ubuntu 22.04.4 LTS\"\n");
    let machine = machine.set("STUB_VERSION", "13020").set("STUB_CAPABILITY", "12.0");
    let text = machine.run("verify --output-format markdown").stdout;
    assert!(text.starts_with(&format!("### samedevice {} verify\n", env!("CARGO_PKG_VERSION"))), "{text}");
    for part in [
        "| System | Ubuntu 22.04.4 LTS on ",
        "| Kernel | 6.8.0-45-generic |",
        "| Driver | 550.54.14, supports CUDA up to 13.2, ",
        "| cuda:0 | Stub GPU 0, compute capability 12.0, ",
        "| Python | 3.11.7, ~/train/.venv (found by VIRTUAL_ENV), packages by pip |",
        "| PyTorch | 2.15.0+cu126, built for CUDA 12.6 ",
        "| torchvision | 0.29.0 |",
        "| torchaudio | 2.11.1 |",
        "| triton | 3.9.0 |",
        "| xformers | 0.0.40 |",
        "| `LD_LIBRARY_PATH` | ",
        "**error** `gpu-not-in-build`: ",
        "- message: `CUDA error: no kernel image is available for execution on the device`",
        "```sh\n~/train/.venv/bin/python -m pip install torch==2.15.0+cu130 torchvision==0.29.0+cu130 torchaudio==2.11.1 --index-url",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains(&machine.path("home").display().to_string()), "{text}");
}

#[test]
fn where_the_driver_fails_the_gpu_has_its_name_from_the_bus() {
    let machine = Machine::with_gpu()
        .torch(&Torch::cu126())
        .system("sys/bus/pci/devices/0000:10:00.0/device", "0x2684\n");
    let text = machine.run("verify --output-format markdown").stdout;
    assert!(text.contains("| On the PCI bus | 10de:2684 |"), "{text}");
    let machine = machine
        .system("usr/share/misc/pci.ids", "10de  NVIDIA Corporation\n\t2684  AD102 [GeForce RTX 4090]\n");
    let text = machine.run("verify --output-format markdown").stdout;
    assert!(text.contains("| On the PCI bus | NVIDIA AD102 [GeForce RTX 4090] |"), "{text}");
}

#[test]
fn a_report_can_go_into_a_file() {
    let machine = Machine::usable();
    let run = machine.run("verify --output-format json --output-file report.json");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    let written: Value =
        serde_json::from_slice(&fs::read(machine.path("project/report.json")).unwrap()).unwrap();
    assert_eq!(written["status"], "usable");
    let again = machine.run("verify --machine report.json --output-format json").json();
    assert_eq!(again, written);
    let run = machine.run("verify --output-file missing/report.txt");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("cannot write `missing/report.txt`: no such file or directory"), "{run:?}");
}

#[test]
fn every_error_is_told_as_programs_tell_it() {
    for (machine, id, message) in [
        (
            Machine::with_driver().torch(&Torch::pypi()),
            "driver-too-old",
            "driver on your system is too old (found version 12040)",
        ),
        (
            Machine::with_driver().torch(&Torch::cpu()),
            "cpu-only-build",
            "Torch not compiled with CUDA enabled",
        ),
        (Machine::bare().torch(&Torch::cu126()), "no-gpu", "Found no NVIDIA driver on your system"),
        (
            Machine::usable().set("STUB_FAIL", "cuInit=802"),
            "fabric-manager",
            "Error 802: system not yet initialized",
        ),
        (
            Machine::usable().set("CUDA_VISIBLE_DEVICES", "-1"),
            "hidden-by-visible-devices",
            "No CUDA GPUs are available",
        ),
        (Machine::with_driver().environment("project/.venv"), "no-pytorch", "No module named 'torch'"),
    ] {
        let report = machine.verify("");
        assert!(problem(&report, id).contains(message), "{id}");
        let text = machine.run("verify").stdout;
        assert!(text.contains("\n  message: ") && text.contains(message), "{text}");
    }
}

#[test]
fn what_nobody_has_to_mend_is_only_in_the_document() {
    let machine = Machine::usable().set("STUB_VERSION", "12000");
    assert!(problem(&machine.verify(""), "driver-minor-older").contains("12.0"));
    for format in ["text", "markdown"] {
        let text = machine.run(&format!("verify --output-format {format}")).stdout;
        assert!(!text.contains("driver-minor-older"), "{text}");
    }
}

#[test]
fn long_variables_are_cut() {
    let value: Vec<String> = (0..500).map(|n| n.to_string()).collect();
    let machine = Machine::usable().set("CUDA_VISIBLE_DEVICES", value.join(","));
    let text = machine.run("verify").stdout;
    assert!(text.contains("(CUDA_VISIBLE_DEVICES=0,1,2,") && text.contains(",…)"), "{text}");
    assert!(text.lines().all(|line| line.len() < 300), "{text}");
    assert_eq!(machine.verify("")["visible"]["value"], value.join(","));
    let hidden = Machine::usable().set("CUDA_VISIBLE_DEVICES", format!("9,{}", value.join(",")));
    let text = hidden.run("verify").stdout;
    assert!(text.contains("hides every GPU") && text.lines().all(|line| line.len() < 300), "{text}");
}

#[test]
fn the_last_line_promises_no_more_than_is_true() {
    let last = |machine: &Machine| {
        let text = machine.run("verify").stdout;
        text.lines().last().unwrap().to_owned()
    };
    let two = Machine::usable().set("STUB_DEVICES", "2");
    assert_eq!(last(&two), "PyTorch can use 2 GPUs here.");
    let one = Machine::usable().set("STUB_DEVICES", "2").set("STUB_CAPABILITY", "8.6,3.5");
    assert_eq!(last(&one), "PyTorch can use 1 of 2 GPUs here: cuda:0, but not cuda:1.");
    let none = Machine::with_driver().environment("project/.venv");
    assert_eq!(
        last(&none),
        "There is no PyTorch here, though the driver works: 1 CUDA device is visible, and no PyTorch was found. Fix the first \
         error above first."
    );
    let text = none.run("verify").stdout;
    assert!(!text.contains("is_available()` is true"), "{text}");
    let old = Machine::with_driver().torch(&Torch::pypi());
    assert_eq!(
        last(&old),
        "PyTorch cannot use a GPU here: the driver is too old for the CUDA version of PyTorch. Fix the first error above first."
    );
}

#[test]
fn older_reports_stay_readable() {
    let machine = Machine::bare()
        .file("project/old.json", OLD)
        .file("project/train.py", "import torch\nx = torch.zeros(3).cuda()\n");
    let run = machine.run("verify --machine old.json");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stdout.ends_with("PyTorch can use 1 GPU here.\n"), "{run:?}");
    let json = machine.run("verify --machine old.json --output-format json").json();
    let old: Value = serde_json::from_str(OLD).unwrap();
    // All that it says, and what came since as if nobody had asked.
    fn holds(new: &Value, old: &Value) -> bool {
        match (new, old) {
            (Value::Object(new), Value::Object(old)) => {
                old.iter().all(|(key, value)| new.get(key).is_some_and(|new| holds(new, value)))
            }
            (Value::Array(new), Value::Array(old)) => {
                new.len() == old.len() && new.iter().zip(old).all(|(new, old)| holds(new, old))
            }
            _ => new == old,
        }
    }
    assert!(holds(&json, &old), "{json:#}");
    assert_eq!(json["system"]["distribution"], Value::Null);
    let run = machine.run("check --machine old.json --output-format json --isolated train.py");
    assert_eq!(run.json()[0]["verdict"], "refuted", "{run:?}");
}

/// Runs the program with this standard input.
fn with_input(machine: &Machine, arguments: &str, input: &[u8]) -> (Option<i32>, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_samedevice"))
        .args(arguments.split_whitespace())
        .current_dir(machine.path("project"))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may not read it.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn reports_come_from_pipes_and_from_powershell() {
    let machine = Machine::bare().file("project/train.py", "import torch\nx = torch.zeros(3).cuda()\n");
    let wide: Vec<u8> = OLD.replace('\n', "\r\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let wide = [&b"\xff\xfe"[..], &wide].concat();
    for bytes in [OLD.as_bytes().to_vec(), [b"\xef\xbb\xbf", OLD.as_bytes()].concat(), wide] {
        let (code, stdout, stderr) = with_input(&machine, "verify --machine -", &bytes);
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        assert!(stdout.contains("PyTorch can use 1 GPU here."), "{stdout}");
        fs::write(machine.path("project/saved.json"), &bytes).unwrap();
        assert_eq!(machine.run("verify --machine saved.json").code, Some(0));
    }
    let (_, stdout, stderr) = with_input(&machine, "check --isolated --machine - train.py", OLD.as_bytes());
    assert!(stdout.contains("the machine of `standard input` has CUDA"), "{stdout}{stderr}");
    let (code, _, stderr) = with_input(&machine, "check --isolated --machine - -", OLD.as_bytes());
    assert!(code == Some(2) && stderr.contains("cannot both come from standard input"), "{stderr}");
}

#[test]
fn what_is_wrong_with_a_report_is_told_by_its_place() {
    let machine = Machine::bare();
    let refused = |report: &str| {
        fs::write(machine.path("project/x.json"), report).unwrap();
        let run = machine.run("verify --machine x.json");
        assert_eq!(run.code, Some(2), "{run:?}");
        run.stderr
    };
    let error = refused(&OLD.replace("\"index\": 0", "\"index\": -1"));
    assert!(error.contains("`x.json` is not a machine report: `devices[0].index`: invalid value"), "{error}");
    assert!(refused("").contains("it is empty"));
    assert!(refused("✓ system    linux").contains("not a machine report"));
    assert!(refused("{\"schema\": 9}").contains("a report of schema 9, and this samedevice reads schema 1"));
}

#[test]
fn contradictions_are_told() {
    let machine = Machine::bare().file("project/x.json", OLD.replacen("\"count\": 1", "\"count\": 4", 1));
    let run = machine.run("verify --machine x.json");
    assert!(
        run.stderr.contains(
            "warning: the report in `x.json` contradicts itself: `visible.count` is 4, and `visible.physical` only 1"
        ),
        "{run:?}"
    );
    // What this program writes has none, whatever the machine.
    for machine in [
        Machine::bare(),
        Machine::usable(),
        Machine::usable().set("STUB_DEVICES", "4").set("CUDA_VISIBLE_DEVICES", "2,1"),
        Machine::usable().set("CUDA_VISIBLE_DEVICES", "-1"),
        Machine::usable().set("STUB_CRASH", "cuDeviceGetName"),
        Machine::with_driver().torch(&Torch::cpu()),
        Machine::usable().set("STUB_FAIL", "cuInit=999"),
    ] {
        machine.run("verify --output-format json --output-file r.json");
        let run = machine.run("verify --machine r.json");
        assert_eq!(run.stderr, "", "{run:?}");
    }
}

#[test]
fn a_machine_without_a_gpu_is_not_told_to_install_cuda() {
    for torch in [None, Some(Torch::cpu()), Some(Torch::cu126()), Some(Torch::pypi())] {
        let machine = Machine::bare();
        let machine = match &torch {
            Some(torch) => machine.torch(torch),
            None => machine.environment("project/.venv"),
        };
        let report = machine.verify("");
        for problem in report["problems"].as_array().unwrap() {
            let command = problem["command"].as_str().unwrap_or_default();
            assert!(!command.contains("whl/cu"), "{problem}");
        }
    }
    let report = Machine::bare().environment("project/.venv").verify("");
    assert!(problem(&report, "no-pytorch").contains("whl/cpu"));
}

#[test]
fn the_first_version_of_windows_for_linux_is_left_behind() {
    let machine = Machine::bare().torch(&Torch::cu126()).set("WSL_DISTRO_NAME", "Ubuntu-22.04");
    let machine =
        machine.system("proc/version", "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)\n");
    let report = machine.verify("");
    let text = problem(&report, "wsl-1");
    assert!(text.contains("wsl --set-version Ubuntu-22.04 2"), "{text}");
    assert_eq!(report["worlds"]["cuda"]["holds"], json!("no"));
}
