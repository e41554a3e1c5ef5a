//! SARIF against the official schema. `.ci/run` fetches that and a Python with `jsonschema` and names them in
//! `SARIF_SCHEMA` and `SARIF_PYTHON`; without these the test says so and passes, unless `CI` is set.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod samples;

use std::path::Path;
use std::process::Command;

use samedevice::report::Format;

#[test]
fn the_official_schema_holds() {
    let (Some(schema), Some(python)) = (std::env::var_os("SARIF_SCHEMA"), std::env::var_os("SARIF_PYTHON"))
    else {
        assert!(
            std::env::var_os("CI").is_none(),
            "CI is set, and SARIF_SCHEMA or SARIF_PYTHON is not: use .ci/run"
        );
        eprintln!("skipped: SARIF_SCHEMA and SARIF_PYTHON are not set; .ci/run sets them");
        return;
    };
    let folder = std::env::temp_dir().join(format!("samedevice-sarif-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut validate = Command::new(python);
    validate.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sarif/validate.py")).arg(schema);
    let samples = [
        ("none", samples::Sample::new()),
        ("plain", samples::plain()),
        ("rich", samples::rich()),
        ("at_the_end", samples::at_the_end()),
        ("columns", samples::columns()),
    ];
    for (name, sample) in samples {
        let log = folder.join(name).with_extension("sarif");
        std::fs::write(&log, sample.render(Format::Sarif)).unwrap();
        validate.arg(log);
    }
    let output = validate.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
    std::fs::remove_dir_all(folder).unwrap();
}
