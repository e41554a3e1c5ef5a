//! `--show-files` and `--show-settings`.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use serde::Serialize;

use crate::config::Settings;
use crate::discover::Input;
use crate::finding::Code;
use crate::report::one_line;
use crate::rules::page::Page;

/// One name a line.
pub fn files(inputs: &[Input], out: &mut dyn Write) -> io::Result<()> {
    // Standard output alone would be flushed on every line.
    let mut out = BufWriter::new(out);
    inputs.iter().try_for_each(|input| writeln!(out, "{}", one_line(&input.name)))?;
    out.flush()
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Shown<'a> {
    config_file: Option<String>,
    extends: Vec<String>,
    root: String,
    enabled: Vec<String>,
    exclude: Vec<&'a str>,
    force_exclude: bool,
    strict: bool,
    fail_on_severity: &'a str,
    min_confidence: &'a str,
    baseline: Option<String>,
    fix: bool,
    unsafe_fixes: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    fixable: Option<Vec<String>>,
    unfixable: Vec<String>,
    oom_threshold: u64,
    max_accelerator_memory: u64,
    severity: BTreeMap<String, &'a str>,
    confidence: BTreeMap<String, &'a str>,
    per_file_ignores: BTreeMap<&'a str, Vec<String>>,
}

/// The settings as TOML.
pub fn settings(settings: &Settings, pages: &[Page], out: &mut dyn Write) -> io::Result<()> {
    let named = |code: &Code| {
        let name = pages.iter().find(|page| page.code == *code).map_or("", |page| page.name);
        format!("{code} {name}")
    };
    let shown = Shown {
        config_file: settings.file.as_ref().map(|path| path.display().to_string()),
        extends: settings.extends.iter().map(|path| path.display().to_string()).collect(),
        root: settings.root.display().to_string(),
        enabled: settings.rules.iter().map(named).collect(),
        exclude: settings.excludes.iter().flat_map(|p| p.texts()).map(String::as_str).collect(),
        force_exclude: settings.force_exclude,
        strict: settings.strict,
        fail_on_severity: settings.fail_on_severity.name(),
        min_confidence: settings.min_confidence.name(),
        baseline: settings.baseline.as_ref().map(|path| path.display().to_string()),
        fix: settings.fix,
        unsafe_fixes: settings.unsafe_fixes,
        fixable: settings.fixable.as_ref().map(|list| list.iter().map(ToString::to_string).collect()),
        unfixable: settings.unfixable.iter().map(ToString::to_string).collect(),
        oom_threshold: settings.oom_threshold,
        max_accelerator_memory: settings.max_accelerator_memory,
        severity: settings.severity.iter().map(|(code, level)| (code.to_string(), level.name())).collect(),
        confidence: settings
            .confidence
            .iter()
            .map(|(code, level)| (code.to_string(), level.name()))
            .collect(),
        per_file_ignores: settings
            .per_file_ignores
            .iter()
            .map(|entry| (entry.glob.as_str(), entry.rules.iter().map(ToString::to_string).collect()))
            .collect(),
    };
    let text = toml::to_string_pretty(&shown).map_err(io::Error::other)?;
    write!(out, "{text}")
}
