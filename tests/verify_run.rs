//! `--run`: devices are used, the results checked, and everything is given back.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod machine;

use machine::{GIB, Machine, expect, problem, problems};
use serde_json::Value;

/// The stub's functions that need or make a context.
const TOUCHING: [&str; 5] =
    ["cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc_v2", "cuMemGetInfo_v2", "cuLaunchKernel"];

fn checks(report: &Value, device: usize) -> Vec<(String, bool)> {
    let checks = report["devices"][device]["checks"].as_array().unwrap().iter();
    checks.map(|c| (c["name"].as_str().unwrap().to_owned(), c["ok"].as_bool().unwrap())).collect()
}

fn passed(names: &[&str]) -> Vec<(String, bool)> {
    names.iter().map(|name| ((*name).to_owned(), true)).collect()
}

#[test]
fn questions_alone_disturb_nobody() {
    let machine = Machine::usable().set("STUB_DEVICES", "2").logged();
    let report = machine.verify("");
    let log = machine.log();
    assert!(log.contains("cuDeviceGetAttribute"), "{log}");
    for function in TOUCHING {
        assert!(!log.contains(function), "{function}: {log}");
    }
    assert_eq!(report["depth"], "look");
    assert_eq!(checks(&report, 0), []);
    assert_eq!(report["devices"][0]["free_bytes"], Value::Null, "that needs a context");
    assert_eq!(report["peers"][0], serde_json::json!({"from": 0, "to": 1, "direct": true}));
}

#[test]
fn devices_are_used_and_given_back() {
    let machine = Machine::usable().set("STUB_DEVICES", "2").logged();
    let report = machine.verify("--run");
    assert_eq!(report["status"], "usable", "{report:#}");
    for device in [0, 1] {
        assert_eq!(
            checks(&report, device),
            passed(&["context", "allocation", "copy", "kernel", "peer-copy"])
        );
        assert_eq!(report["devices"][device]["free_bytes"], 20 * GIB);
    }
    let log = machine.log();
    assert!(log.ends_with("left: 0 contexts, 0 allocations, 0 modules\n"), "{log}");
    let largest = log.lines().filter_map(|line| line.strip_prefix("allocated ")?.parse::<u64>().ok()).max();
    assert!(largest.is_some_and(|bytes| bytes <= 64 << 20), "{largest:?}");
    let text = machine.run("verify --run").stdout;
    assert!(text.contains("kernel works: 1048576 results are correct"), "{text}");
    let report = Machine::usable().verify("--run");
    assert_eq!(checks(&report, 0), passed(&["context", "allocation", "copy", "kernel"]), "one has no peer");
}

#[test]
fn devices_that_do_not_reach_each_other() {
    let machine = Machine::usable().set("STUB_DEVICES", "2").set("STUB_PEERS", "0");
    assert_eq!(machine.verify("")["peers"][1]["direct"], false);
    assert!(machine.run("verify").stdout.contains("no GPU has direct access to another's memory"));
    let machine = machine.set("STUB_PEERS", "1");
    assert!(machine.run("verify").stdout.contains("every GPU has direct access to the others' memory"));
    let report = machine.set("STUB_PEERS", "0").verify("--run");
    assert_eq!(checks(&report, 0).last(), Some(&("peer-copy".to_owned(), true)), "it goes through the host");
}

#[test]
fn wrong_results_are_seen() {
    for (what, check) in [("copy", "copy"), ("kernel", "kernel")] {
        let report = Machine::usable().set("STUB_WRONG", what).verify("--run");
        expect(&report, "wrong-results", "yes", &[check, "came back wrong"]);
        assert!(checks(&report, 0).contains(&(check.to_owned(), false)));
        assert_eq!(report["status"], "problem");
    }
    let report = Machine::usable().set("STUB_WRONG", "peer").set("STUB_DEVICES", "2").verify("--run");
    assert_eq!(problems(&report), ["peer-copy-failed", "peer-copy-failed"]);
    assert!(problem(&report, "peer-copy-failed").contains("byte 7 came back wrong"));
}

#[test]
fn what_fails_is_named_and_the_rest_given_back() {
    for (function, code, id, part) in [
        ("cuDevicePrimaryCtxRetain", 999, "device-fails", "context"),
        ("cuDevicePrimaryCtxRetain", 9999, "device-fails", "9999 (UNLISTED)"),
        ("cuMemAlloc_v2", 2, "low-memory", "allocation"),
        ("cuMemcpyHtoD_v2", 214, "memory-errors", "214 (ECC_UNCORRECTABLE)"),
        ("cuModuleLoadData", 222, "device-fails", "222 (UNSUPPORTED_PTX_VERSION)"),
        ("cuLaunchKernel", 719, "device-fails", "`cuLaunchKernel` answered 719"),
    ] {
        let machine = Machine::usable().set("STUB_FAIL", format!("{function}={code}")).logged();
        let report = machine.verify("--run");
        expect(&report, id, "yes", &[part]);
        let log = machine.log();
        // The stub's failing function leaves nothing behind, and so must we.
        assert!(log.ends_with("left: 0 contexts, 0 allocations, 0 modules\n"), "{function}: {log}");
    }
}

#[test]
fn a_crash_or_hang_in_use_keeps_what_was_learnt() {
    let report = Machine::usable().set("STUB_CRASH", "cuLaunchKernel").verify("--run");
    expect(&report, "driver-crashed", "yes", &["copying and computing on device 0"]);
    assert_eq!(report["devices"][0]["name"], "Stub GPU 0");
    assert_eq!(report["status"], "problem");
    let report = Machine::usable().set("STUB_HANG", "cuLaunchKernel").verify("--run --time-limit 1");
    expect(&report, "driver-hangs", "yes", &["copying and computing on device 0"]);
}

#[test]
fn sizes_are_allocated_only_if_asked_for() {
    let machine = Machine::usable().logged();
    let report = machine.verify("--run --memory 10GiB,30GiB");
    let tried = report["devices"][0]["allocations"].as_array().unwrap();
    assert_eq!((&tried[0]["bytes"], &tried[0]["ok"]), (&Value::from(10 * GIB), &Value::from(true)));
    assert_eq!(tried[1]["ok"], false);
    assert!(
        tried[1]["detail"].as_str().unwrap().contains("not tried"),
        "more than is free is never asked for"
    );
    let log = machine.log();
    assert!(
        log.contains(&format!("allocated {}\n", 10 * GIB)) && !log.contains(&(30 * GIB).to_string()),
        "{log}"
    );
    assert!(log.ends_with("left: 0 contexts, 0 allocations, 0 modules\n"), "{log}");
    let run = Machine::usable().run("verify --memory 1GiB");
    assert!(run.code == Some(2) && run.stderr.contains("--run"), "{run:?}");
}
