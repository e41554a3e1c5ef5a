//! `docs/verify-causes.md` and `docs/verify-report.md`: the causes and the fields are those of the program.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod machine;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use machine::Machine;
use serde_json::Value;

/// What is in backquotes in the first column of the tables of this page.
fn first_column(page: &str) -> BTreeSet<String> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page)).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_cause_is_listed_and_no_other() {
    let causes = samedevice::verify::CAUSES.iter().flat_map(|ids| ids.iter().map(|id| (*id).to_owned()));
    assert_eq!(first_column("verify-causes.md"), causes.collect());
}

/// The names of all fields, with those around them: `devices[].name`.
fn fields(value: &Value, path: &str, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                all.insert(path.clone());
                // Their keys are data.
                if !["worlds.backends", "torch.packages"].contains(&path.as_str()) {
                    fields(value, &path, all);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, &format!("{path}[]"), all)),
        _ => {}
    }
}

#[test]
fn every_field_is_listed_and_no_other() {
    let uuid = "GPU-a0111111-1111-1111-1111-111111111111";
    let listed = format!("0, {uuid}, Stub GPU 0, 550.54.14, 40960, 700, 8.0, Default, Disabled");
    let machine =
        Machine::usable().smi(&[&listed], &[&format!("{uuid}, 1, python, 39000")]).set("STUB_DEVICES", "2");
    let mut all = BTreeSet::new();
    fields(&machine.verify("--run --memory 1GiB"), "", &mut all);
    for (function, setting) in
        [("cuInit=999", "STUB_FAIL"), ("cuInit", "STUB_CRASH"), ("cuInit", "STUB_HANG")]
    {
        fields(&Machine::usable().set(setting, function).verify("--time-limit 1"), "", &mut all);
    }
    // What PyTorch says, where it is imported.
    let imported = Machine::usable().python("echo '{\"version\": \"2.15.0\"}'").verify("--import");
    fields(&imported, "", &mut all);
    // Of an outcome that cannot be brought about: the program that cannot start itself.
    all.insert("driver.outcome.reason".to_owned());
    assert_eq!(first_column("verify-report.md"), all);
}
