//! Machines that these tests do not run on: Macs.

use super::*;
use crate::verify::machine::{Depth, Driver, Python, SCHEMA, System, Torch, Visible};

/// A Mac with this processor and PyTorch.
fn mac(arch: &str, torch: Option<Torch>) -> Machine {
    let system = System { os: "macos".to_owned(), arch: arch.to_owned(), ..System::default() };
    let driver = Driver {
        outcome: Outcome::NoLibrary,
        loaded_from: None,
        other_library: None,
        load_error: None,
        version: None,
        library_version: None,
        cuda: None,
    };
    Machine {
        schema: SCHEMA,
        samedevice: String::new(),
        depth: Depth::Look,
        status: Status::Unknown,
        worlds: nothing_known(),
        problems: Vec::new(),
        system,
        driver,
        visible: Visible::default(),
        devices: Vec::new(),
        peers: Vec::new(),
        python: Python { prefix: Some("/env".to_owned()), ..Python::default() },
        torch,
    }
}

fn decided(machine: &Machine) -> Verdict {
    let case = Case {
        machine,
        files: &Files::new(),
        listed: &Listed::default(),
        installed: &Installed::default(),
        elsewhere: Vec::new(),
        import: None,
    };
    decide(&case)
}

fn cpu() -> Torch {
    Torch { version: Some("2.15.0".to_owned()), build: Build::Cpu, ..Torch::default() }
}

#[test]
fn a_mac_is_usable_with_a_pytorch_that_is_whole() {
    let verdict = decided(&mac("aarch64", Some(cpu())));
    assert_eq!((verdict.status, verdict.problems), (Status::Usable, Vec::new()));
    let verdict = decided(&mac("aarch64", None));
    assert_eq!(verdict.status, Status::Problem);
    assert_eq!(verdict.problems.first().map(|problem| problem.id.as_str()), Some("no-pytorch"));
    // The hardware is there all the same: findings ask for that.
    assert_eq!(verdict.worlds.backends["mps"].holds, Holds::Yes);
    let broken = Torch { broken: vec!["it has no `version.py`".to_owned()], ..cpu() };
    assert_eq!(decided(&mac("aarch64", Some(broken))).status, Status::Problem);
}

#[test]
fn a_mac_with_another_processor_is_not_known() {
    let verdict = decided(&mac("x86_64", Some(cpu())));
    assert_eq!((verdict.status, verdict.worlds.cuda.holds), (Status::Unknown, Holds::No));
}
