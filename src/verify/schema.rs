//! `docs/machine.schema.json`, from the types. `SAMEDEVICE_UPDATE=1` writes it anew.

use std::path::Path;

use schemars::generate::SchemaSettings;

use super::machine::Machine;

fn schema() -> String {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<Machine>();
    schema.insert(
        "title".to_owned(),
        "A machine, as `samedevice verify --output-format json` describes it".into(),
    );
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

#[test]
fn the_schema_of_reports_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/machine.schema.json");
    let fresh = schema();
    if std::env::var_os("SAMEDEVICE_UPDATE").is_some() {
        std::fs::write(path, fresh).unwrap();
        return;
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == fresh,
        "docs/machine.schema.json is stale: run `SAMEDEVICE_UPDATE=1 cargo test --lib verify::schema`"
    );
}
