//! The text of a configuration file.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use miette::{Diagnostic, GraphicalReportHandler};
use samedevice::config::file::{Layer, parse};
use samedevice::config::{ConfigError, Patterns};
use samedevice::finding::Severity;
use samedevice::rules::registry::registry;
use samedevice::span::Span;

use super::lies_within;

/// The text of a `samedevice.toml`; or of a `pyproject.toml`, if it has a table for tools.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let pyproject = text.contains("[tool");
    match read(&text, pyproject) {
        Err(error) => of_mistake(error, &text),
        Ok(None) => assert!(pyproject),
        Ok(Some(layer)) => of_layer(&layer),
    }
}

fn read(text: &str, pyproject: bool) -> Result<Option<Layer>, ConfigError> {
    parse(text, pyproject, Path::new("/project"), registry())
}

/// A mistake is in the file, and can be shown.
fn of_mistake(error: ConfigError, text: &str) {
    for label in error.labels().into_iter().flatten() {
        let (start, end) = (label.offset(), label.offset() + label.len());
        let offset = |at: usize| u32::try_from(at).expect("a small file");
        lies_within(Span::new(offset(start), offset(end)), text);
    }
    let error = error.in_file("samedevice.toml", text);
    let mut drawing = String::new();
    GraphicalReportHandler::new().render_report(&mut drawing, &error).expect("a drawing");
    assert!(!error.to_string().is_empty() && !drawing.is_empty());
}

/// What is read, written out and read again is the same.
fn of_layer(layer: &Layer) {
    for path in ["/project/a/b.py", "/b.py", "/project/é"] {
        layer.extend_exclude.matches(Path::new(path));
        layer.per_file_ignores.iter().for_each(|entry| {
            entry.matches(Path::new(path));
        });
    }
    let text = written(layer);
    let again = match read(&text, false) {
        Ok(again) => again.expect("a file of its own"),
        Err(error) => panic!("{error}\n{text}"),
    };
    assert_eq!(written(&again), text);
}

fn written(layer: &Layer) -> String {
    let mut text = String::new();
    let mut add = |key: &str, value: String| text += &format!("{key} = {value}\n");
    if let Some(select) = &layer.selection.select {
        add("select", list(select));
    }
    add("extend-select", list(&layer.selection.extend_select));
    add("ignore", list(&layer.selection.ignore));
    if let Some(exclude) = &layer.exclude {
        add("exclude", list(exclude.texts()));
    }
    add("extend-exclude", list(Patterns::texts(&layer.extend_exclude)));
    for (key, flag) in [
        ("force-exclude", layer.force_exclude),
        ("strict", layer.strict),
        ("fix", layer.fix),
        ("unsafe-fixes", layer.unsafe_fixes),
    ] {
        flag.into_iter().for_each(|flag| add(key, flag.to_string()));
    }
    for (key, path) in [("extend", &layer.extend), ("baseline", &layer.baseline)] {
        path.iter().for_each(|path| add(key, quoted(path.value.to_string_lossy())));
    }
    for (key, bytes) in
        [("oom-threshold", layer.oom_threshold), ("max-accelerator-memory", layer.max_accelerator_memory)]
    {
        bytes.into_iter().for_each(|bytes| add(key, bytes.to_string()));
    }
    text += "[per-file-ignores]\n";
    for entry in &layer.per_file_ignores {
        text += &format!("{} = {}\n", quoted(&entry.glob), list(&entry.rules));
    }
    text += "[severity]\n";
    // A rule's code and its name are two keys that stand for the same; the last one counts. Else their order means nothing.
    let severities: BTreeMap<String, Severity> =
        layer.severity.iter().map(|(selector, severity)| (selector.to_string(), *severity)).collect();
    for (selector, severity) in severities {
        text += &format!("{} = {}\n", quoted(selector), quoted(severity.name()));
    }
    text
}

fn list(items: &[impl Display]) -> String {
    format!("[{}]", items.iter().map(quoted).collect::<Vec<_>>().join(", "))
}

fn quoted(text: impl Display) -> String {
    toml::Value::String(text.to_string()).to_string()
}
