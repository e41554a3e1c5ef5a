//! The README: what it shows is what the program prints, and what it lists is complete.
//!
//! A block that opens with `console` and a line `$ samedevice …` is a run of the program in this repository.
//! `SAMEDEVICE_UPDATE=1` writes the outputs anew.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use samedevice::config::keys::{Default, KEYS};
use samedevice::report::Format;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(name)).expect("the file is there")
}

/// What the command prints. Its line is a plain one: words between blanks.
fn output(command: &str) -> String {
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("samedevice"), "{command}");
    let mut run = Command::new(env!("CARGO_BIN_EXE_samedevice"));
    run.args(words).current_dir(ROOT).env("COLUMNS", "100").env("NO_COLOR", "1");
    let ours = ["SAMEDEVICE_CONFIG", "SAMEDEVICE_OUTPUT_FILE", "SAMEDEVICE_OUTPUT_FORMAT"];
    for name in ours.into_iter().chain(["CLICOLOR_FORCE", "GITHUB_WORKSPACE"]) {
        run.env_remove(name);
    }
    let output = run.output().expect("the program starts");
    assert!(matches!(output.status.code(), Some(0 | 1)), "{command}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The text with the outputs of its commands as they are now, and the commands.
fn refreshed(text: &str) -> (String, Vec<String>) {
    let (mut fresh, mut commands) = (String::new(), Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        fresh.push_str(line);
        fresh.push('\n');
        if line != "```console" {
            continue;
        }
        let prompt = lines.next().expect("a block is not empty");
        let command = prompt.strip_prefix("$ ").expect("a block starts with its command");
        fresh.push_str(&format!("{prompt}\n{}\n```\n", output(command).trim_end()));
        commands.push(command.to_owned());
        assert!(lines.any(|line| line == "```"), "the block of `{command}` ends");
    }
    (fresh, commands)
}

#[test]
fn what_it_shows_is_what_the_program_prints() {
    let text = read("README.md");
    let (fresh, commands) = refreshed(&text);
    assert!(!commands.is_empty());
    if std::env::var_os("SAMEDEVICE_UPDATE").is_some() {
        fs::write(Path::new(ROOT).join("README.md"), &fresh).unwrap();
        return;
    }
    let stale = text.lines().zip(fresh.lines()).find(|(old, new)| old != new);
    assert!(text == fresh, "README.md is stale at {stale:?}: run `SAMEDEVICE_UPDATE=1 cargo test`");
}

/// The rows of the table whose first column has this title: what is in backquotes in that column.
fn table(text: &str, title: &str) -> BTreeSet<String> {
    let head = format!("| {title} |");
    let rows = text.lines().skip_while(|line| !line.starts_with(&head)).skip(2);
    let first = |row: &str| Some(row.split('`').nth(1)?.to_owned());
    rows.take_while(|line| line.starts_with('|')).filter_map(first).collect()
}

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn what_it_lists_is_complete() {
    let text = read("README.md");
    assert_eq!(table(&text, "Key"), names(KEYS.iter().map(|key| key.name)));
    for key in &KEYS {
        let default = match key.default {
            Default::Toml(toml) => format!("`{toml}`"),
            Default::Words(words) => words.to_owned(),
            Default::List(_) => "`.git`, `.venv`, `build` and their like".to_owned(),
        };
        let row = format!("| `{}` | {default} | {} |\n", key.name, key.help);
        assert!(text.contains(&row), "the README lacks this row: {row}");
    }
    let formats = <Format as clap::ValueEnum>::value_variants();
    let formats: Vec<_> = formats.iter().filter_map(clap::ValueEnum::to_possible_value).collect();
    assert_eq!(table(&text, "Format"), names(formats.iter().map(|format| format.get_name())));
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let mut dependencies: Vec<&toml::Table> =
        ["dependencies", "dev-dependencies"].map(|kind| manifest[kind].as_table().unwrap()).into();
    let targets = manifest["target"].as_table().unwrap().values();
    dependencies.extend(targets.map(|target| target["dependencies"].as_table().unwrap()));
    assert_eq!(
        table(&text, "Crate"),
        names(dependencies.into_iter().flat_map(toml::Table::keys).map(String::as_str))
    );
    let hooks = read(".pre-commit-hooks.yaml");
    let hooks = hooks.lines().filter_map(|line| line.strip_prefix("- id: "));
    assert_eq!(table(&text, "Hook"), names(hooks));
}

#[test]
fn what_it_links_to_is_there() {
    for document in ["README.md", "CONTRIBUTING.md", "docs/design.md", "docs/verify.md", "rules/README.md"] {
        let text = read(document);
        let folder = Path::new(ROOT).join(document);
        let folder = folder.parent().unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            let elsewhere = link.contains("://") || target.is_empty();
            assert!(elsewhere || folder.join(target).exists(), "{document}: {link}");
        }
    }
}
