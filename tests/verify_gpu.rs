//! `samedevice verify` on a real GPU, compared with `nvidia-smi` and `torch.cuda`. Where there is no GPU these say so and
//! pass, unless `SAMEDEVICE_GPU` is set.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::process::Command;

use serde_json::Value;

/// What the program prints; `None` if it cannot be run or fails.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The GPUs by UUID, with the fields that `nvidia-smi` has for them.
fn listed() -> Option<Vec<Vec<String>>> {
    let query = "--query-gpu=uuid,name,driver_version,memory.total,memory.free,compute_cap";
    let text = output("nvidia-smi", &[query, "--format=csv,noheader,nounits"]);
    let rows = |text: String| -> Vec<Vec<String>> {
        text.lines().map(|line| line.split(',').map(|field| field.trim().to_owned()).collect()).collect()
    };
    let rows = text.map(rows).filter(|rows| !rows.is_empty());
    if rows.is_none() {
        assert!(
            std::env::var_os("SAMEDEVICE_GPU").is_none(),
            "SAMEDEVICE_GPU is set, and `nvidia-smi` shows no GPU"
        );
        eprintln!("skipped: there is no GPU here");
    }
    rows
}

fn verify(arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_samedevice"));
    command.args(["verify", "--output-format", "json", "--uuids"]).args(arguments);
    let output = command.env_remove("CUDA_VISIBLE_DEVICES").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    println!("{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn devices_are_those_of_nvidia_smi() {
    let Some(listed) = listed() else { return };
    let report = verify(&["--run"]);
    let devices = report["devices"].as_array().unwrap();
    assert_eq!(devices.len(), listed.len());
    for row in listed {
        let device = devices.iter().find(|device| device["uuid"] == row[0]).unwrap();
        assert_eq!(
            (&device["name"], &device["capability"]),
            (&Value::from(row[1].clone()), &Value::from(row[5].clone()))
        );
        assert_eq!(report["driver"]["version"], row[2]);
        let mib = |n: usize| row[n].parse::<u64>().unwrap() << 20;
        assert_eq!(device["nvidia_smi_total_bytes"], mib(3));
        // The driver keeps some of it for itself.
        let total = device["total_bytes"].as_u64().unwrap();
        assert!(total <= mib(3) && total > mib(3) / 100 * 95, "{total} of {}", mib(3));
        // The context of the probe takes some, too.
        let free = device["free_bytes"].as_u64().unwrap();
        assert!(free.abs_diff(mib(4)) <= (mib(3) / 100).max(1 << 30), "{free} and {}", mib(4));
        for check in device["checks"].as_array().unwrap() {
            assert_eq!(check["ok"], true, "{check}");
        }
    }
}

#[test]
fn answers_are_those_of_pytorch() {
    if listed().is_none() {
        return;
    }
    let script = "import json, torch\nd = torch.cuda\nprint(json.dumps([torch.__version__, torch.version.cuda, \
        d.is_available(), d.device_count(), d.get_arch_list() if d.is_available() else None, \
        [[d.get_device_name(i), '%d.%d' % d.get_device_capability(i), d.get_device_properties(i).total_memory] \
        for i in range(d.device_count())]]))";
    let Some(text) = output("python3", &["-c", script]) else {
        eprintln!("skipped: `python3` has no PyTorch");
        return;
    };
    let torch: Value = serde_json::from_str(&text).unwrap();
    let python = output("python3", &["-c", "import sys; print(sys.executable)"]).unwrap();
    let report = verify(&["--python", python.trim()]);
    assert_eq!((&report["torch"]["version"], &report["torch"]["cuda"]), (&torch[0], &torch[1]));
    assert_eq!(report["worlds"]["cuda"]["holds"], if torch[2] == true { "yes" } else { "no" });
    assert_eq!(report["worlds"]["gpus"], torch[3]);
    if torch[2] == true {
        assert_eq!(report["torch"]["archs"], torch[4]);
    }
    let devices = report["devices"].as_array().unwrap().iter();
    let devices: Vec<Value> = devices
        .map(|device| serde_json::json!([device["name"], device["capability"], device["total_bytes"]]))
        .collect();
    assert_eq!(Value::from(devices), torch[5]);
}
