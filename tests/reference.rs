//! The reference pages that are made from the code: `docs/commands.md` from the command line, and the table of keys in
//! `docs/configuration.md`. `SAMEDEVICE_UPDATE=1` writes them again.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::fmt::Write;
use std::fs;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use samedevice::cli::Cli;
use samedevice::config::keys::{Default, KEYS};

/// Compares a file with what it should be, or writes it.
fn current(name: &str, fresh: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("SAMEDEVICE_UPDATE").is_some() {
        fs::write(path, fresh).unwrap();
        return;
    }
    let written = fs::read_to_string(path).unwrap_or_default();
    assert!(written == fresh, "{name} is stale: run `SAMEDEVICE_UPDATE=1 cargo test --test reference`");
}

/// For a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace("\n\n", " ").replace('\n', " ")
}

/// `-o`, `--output-file FILE`.
fn spelled(arg: &Arg) -> String {
    let value =
        arg.get_value_names().map(|names| names[0].as_str()).filter(|_| arg.get_action().takes_values());
    let Some(long) = arg.get_long() else { return format!("`{}`", value.unwrap_or_default()) };
    let value = match value {
        None => String::new(),
        Some(name) if arg.is_require_equals_set() => format!("[={name}]"),
        Some(name) => format!(" {name}"),
    };
    let short = arg.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    format!("{short}`--{long}{}`", cell(&value))
}

/// What the help says, with values, default and variable.
fn explained(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    // Where the default depends on the configuration, the help has it.
    let (help, default) = match help.split_once(" [default: ") {
        Some((help, default)) => (help.to_owned(), Some(default.trim_end_matches(']').to_owned())),
        None => (help, arg.get_default_values().first().map(|value| value.to_string_lossy().into_owned())),
    };
    let mut text = format!("{help}.");
    let values = arg.get_possible_values();
    if arg.get_action().takes_values() && !values.is_empty() && !arg.is_hide_possible_values_set() {
        let values: Vec<String> = values
            .iter()
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}` ({})", value.get_name(), help.to_string().trim_end_matches('.')),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        let _ = write!(text, " Values: {}.", values.join(", "));
    }
    if let Some(default) = default.filter(|_| arg.get_action().takes_values()) {
        let _ = write!(
            text,
            " Default: {}.",
            if default.contains(' ') { default } else { format!("`{default}`") }
        );
    }
    if let Some(name) = arg.get_env() {
        let _ = write!(text, " Environment variable: `{}`.", name.to_string_lossy());
    }
    cell(&text)
}

/// One command.
fn section(command: &Command, out: &mut String) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = write!(out, "\n## `samedevice {}`\n\n{about}.\n\n```text\n{usage}\n```\n", command.get_name());
    let shown =
        |arg: &&Arg| !arg.is_hide_set() && !["help", "version", "color"].contains(&arg.get_id().as_str());
    let args: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in &args {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    for heading in headings {
        let title = heading.unwrap_or(if args[0].is_positional() { "Arguments" } else { "Options" });
        if args.iter().any(|arg| arg.get_help_heading().is_some()) {
            let _ = write!(out, "\n### {title}\n");
        }
        out.push_str("\n| Flag | Meaning |\n| --- | --- |\n");
        for arg in args.iter().filter(|arg| arg.get_help_heading() == heading) {
            let _ = writeln!(out, "| {} | {} |", spelled(arg), explained(arg));
        }
    }
    if let Some(codes) = command.get_after_help().map(ToString::to_string) {
        let codes = codes.split("\n  ").skip(1).fold(Vec::<String>::new(), |mut rows, line| {
            match (line.split_once("  "), rows.last_mut()) {
                (Some((code, text)), _) if code.len() == 1 => rows.push(format!("| {code} | {text}")),
                (_, Some(row)) => *row = format!("{row} {}", line.trim()),
                _ => {}
            }
            rows
        });
        let _ = write!(
            out,
            "\n### Exit codes of `{}`\n\n| Code | Meaning |\n| --- | --- |\n",
            command.get_name()
        );
        for row in codes {
            let _ = writeln!(out, "{row} |");
        }
    }
}

#[test]
fn the_commands_are_current() {
    let mut cli = Cli::command();
    cli.build();
    let mut out = String::from(
        "# Commands\n\n\
         <!-- Made from the command line's definition: `SAMEDEVICE_UPDATE=1 cargo test --test reference` writes it. -->\n\n\
         The terminal shows the same texts: `samedevice check --help`, `samedevice verify --help` and so on. `samedevice --help` lists the\n\
         commands.\n\
         All commands have `--help`, `--version` and `--color WHEN` (`auto`, `always` or `never`).\n",
    );
    let visible = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    for command in cli.get_subcommands().filter(visible) {
        section(command, &mut out);
    }
    current("docs/commands.md", &out);
}

#[test]
fn the_keys_are_current() {
    let mut keys = String::from("| Key | Type | Default | Meaning |\n| --- | --- | --- | --- |\n");
    for key in &KEYS {
        let default = match key.default {
            Default::Toml(toml) => format!("`{toml}`"),
            Default::Words(words) => words.to_owned(),
            Default::List(names) => {
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            }
        };
        let _ = writeln!(
            keys,
            "| `{}` | {} | {default} | {} |",
            key.name,
            cell(key.kind.in_words()),
            cell(key.help)
        );
    }
    keys.push_str("\nAn example of each:\n\n```toml\n");
    for key in &KEYS {
        let _ = writeln!(keys, "{}", key.example);
    }
    keys.push_str("```\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let text = fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once("<!-- keys -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of keys -->\n").unwrap();
    current("docs/configuration.md", &format!("{before}<!-- keys -->\n{keys}<!-- end of keys -->\n{after}"));
}
