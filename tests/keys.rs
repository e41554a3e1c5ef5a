//! The keys of the configuration: `samedevice config`, and the JSON Schema that editors complete from.
//! `SAMEDEVICE_UPDATE=1` writes that anew.
#![allow(clippy::unwrap_used, reason = "these are tests")]
#![allow(dead_code, reason = "the types are only there to be described")]

mod support;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use samedevice::config::keys::{Default, KEYS, Kind};
use samedevice::rules::registry::registry;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Value, json};
use support::Project;

/// A rule's code or name, a prefix of codes such as `SD2`, or `ALL`.
struct Rule;

impl JsonSchema for Rule {
    fn schema_name() -> Cow<'static, str> {
        "Rule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes = registry().iter().map(|page| page.code.to_string());
        let prefixes: BTreeSet<String> =
            codes.clone().flat_map(|code| [2, 3, 4].map(|length| code[..length].to_owned())).collect();
        let names = registry().iter().map(|page| page.name.to_owned());
        let all: Vec<String> =
            ["ALL".to_owned()].into_iter().chain(prefixes).chain(codes).chain(names).collect();
        json_schema!({
            "description": "A rule's code or name, a prefix of codes such as `SD2`, or `ALL`",
            "type": "string",
            "enum": all,
        })
    }
}

/// How severe findings are.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Level {
    Error,
    Warning,
    Info,
}

/// How severe findings of a rule are; `off`: there are none.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
enum LevelOrOff {
    Error,
    Warning,
    Info,
    Off,
}

/// How sure a finding must be.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Confidence {
    Low,
    Likely,
    Certain,
}

/// A number of bytes, or a size such as `1GiB`.
#[derive(JsonSchema)]
#[serde(untagged)]
enum Size {
    Bytes(u64),
    Text(String),
}

/// The schema of a key's values.
fn values(kind: Kind, generator: &mut SchemaGenerator) -> Schema {
    match kind {
        Kind::Flag(_) => generator.subschema_for::<bool>(),
        Kind::Path(_) => generator.subschema_for::<String>(),
        Kind::Rules(_) => generator.subschema_for::<Vec<Rule>>(),
        Kind::Globs(_) => generator.subschema_for::<Vec<String>>(),
        Kind::Level(_) => generator.subschema_for::<Level>(),
        Kind::Confidence(_) => generator.subschema_for::<Confidence>(),
        Kind::ConfidenceByRule(_) => {
            let mut table = generator.subschema_for::<BTreeMap<String, Confidence>>();
            table.insert("propertyNames".to_owned(), generator.subschema_for::<Rule>().to_value());
            table
        }
        Kind::Bytes(_) => generator.subschema_for::<Size>(),
        Kind::RulesByGlob(_) => generator.subschema_for::<BTreeMap<String, Vec<Rule>>>(),
        Kind::LevelByRule(_) => {
            let mut table = generator.subschema_for::<BTreeMap<String, LevelOrOff>>();
            table.insert("propertyNames".to_owned(), generator.subschema_for::<Rule>().to_value());
            table
        }
    }
}

/// TOML after `key = ` as JSON.
fn as_json(toml: &str) -> Value {
    let table: toml::Table = format!("value = {toml}").parse().unwrap();
    serde_json::to_value(&table["value"]).unwrap()
}

fn schema() -> String {
    let mut generator = SchemaSettings::draft07().into_generator();
    let mut properties = serde_json::Map::new();
    for key in &KEYS {
        let mut property = values(key.kind, &mut generator);
        if let Some(reference) = property.remove("$ref") {
            // In this draft nothing counts beside a reference.
            property.insert("allOf".to_owned(), json!([{"$ref": reference}]));
        }
        property.insert("description".to_owned(), key.help.into());
        match key.default {
            Default::Toml(text) => drop(property.insert("default".to_owned(), as_json(text))),
            Default::List(names) => drop(property.insert("default".to_owned(), names.into())),
            Default::Words(_) => {}
        }
        properties.insert(key.name.to_owned(), property.to_value());
    }
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "The configuration of samedevice",
        "description": "The keys of `samedevice.toml`, and of `[tool.samedevice]` in `pyproject.toml`",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "definitions": generator.take_definitions(true),
    });
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

#[test]
fn the_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/samedevice.schema.json");
    let fresh = schema();
    if std::env::var_os("SAMEDEVICE_UPDATE").is_some() {
        fs::write(path, fresh).unwrap();
        return;
    }
    let written = fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == fresh,
        "docs/samedevice.schema.json is stale: run `SAMEDEVICE_UPDATE=1 cargo test --test keys`"
    );
}

#[test]
fn every_example_is_a_configuration() {
    for key in &KEYS {
        let project = Project::new(&[("samedevice.toml", key.example), ("a.py", "")]);
        fs::write(project.home().join("samedevice.toml"), "").unwrap();
        let run = project.run("check --show-settings");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}: {run:?}", key.name);
        assert!(key.example.starts_with(&format!("{} = ", key.name)), "{}", key.example);
    }
}

#[test]
fn a_default_that_is_written_down_changes_nothing() {
    let default = |key: &samedevice::config::keys::Key| match key.default {
        Default::Toml(text) => Some(format!("{} = {text}\n", key.name)),
        Default::List(names) => Some(format!("{} = {names:?}\n", key.name)),
        Default::Words(_) => None,
    };
    let written: String = KEYS.iter().filter_map(default).collect();
    let settings = |text: &str| {
        let run = Project::new(&[("samedevice.toml", text)]).run("check --show-settings");
        assert_eq!(run.code, Some(0), "{run:?}");
        let lines = run.stdout.lines().filter(|line| !line.contains("config-file") && !line.contains("root"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(settings(&written), settings(""));
}

#[test]
fn keys_are_explained() {
    let project = Project::new(&[]);
    let list = project.run("config").stdout;
    assert!(KEYS.iter().all(|key| list.contains(key.name) && list.contains(key.help)), "{list}");
    let page = project.run("config oom-threshold").stdout;
    for part in
        ["oom-threshold: ", "Type:     a number of bytes", "Default:  \"1GiB\"", "Example:  oom-threshold = "]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(project.run("config exclude").stdout.contains("\".venv\""));
    let all: Value = serde_json::from_str(&project.run("config --output-format json").stdout).unwrap();
    assert_eq!(all.as_array().unwrap().len(), KEYS.len());
    let one: Value = serde_json::from_str(&project.run("config strict --output-format json").stdout).unwrap();
    assert_eq!((&one["name"], &one["default"]), (&json!("strict"), &json!("false")));
    let run = project.run("config oom_treshold");
    assert!(run.code == Some(2) && run.stderr.contains("did you mean `oom-threshold`?"), "{run:?}");
}
