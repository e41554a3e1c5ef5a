//! What people read: what the documents show is what the program prints, what they list is complete, and the commands in
//! them exist.
//!
//! A block that opens with `console` and a line `$ samedevice …` is a run of the program in this repository.
//! `SAMEDEVICE_UPDATE=1` writes the outputs and the screenshot again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anstyle_svg::{Palette, Term};
use clap::CommandFactory;
use clap::error::ErrorKind;
use samedevice::cli::Cli;
use samedevice::report::Format;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SCREENSHOT: &str = "docs/screenshot.svg";
/// What the screenshot shows.
const SHOWN: &str = "samedevice check --select SD204 fixtures/example";
/// The sixteen colours of its terminal, from black to bright white.
const COLOURS: [u32; 16] = [
    0x45475a, 0xf38ba8, 0xa6e3a1, 0xf9e2af, 0x89b4fa, 0xcba6f7, 0x94e2d5, 0xbac2de, 0x7f849c, 0xf38ba8,
    0xa6e3a1, 0xf9e2af, 0x89b4fa, 0xf5c2e7, 0x94e2d5, 0xffffff,
];

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(name)).expect("the file is there")
}

/// All Markdown files of this folder, as paths from the root.
fn markdown(folder: &str) -> impl Iterator<Item = String> {
    let mut names: Vec<PathBuf> = fs::read_dir(Path::new(ROOT).join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    names.sort();
    names.into_iter().map(|path| path.strip_prefix(ROOT).unwrap().to_string_lossy().into_owned())
}

/// The documents that this file checks. The pages of the rules have tests of their own.
fn documents() -> Vec<String> {
    markdown("").chain(markdown("docs")).collect()
}

fn is_update() -> bool {
    std::env::var_os("SAMEDEVICE_UPDATE").is_some()
}

/// What the command prints. Its line is a plain one: words between blanks.
fn output(command: &str, color: bool) -> String {
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("samedevice"), "{command}");
    let mut run = Command::new(env!("CARGO_BIN_EXE_samedevice"));
    run.args(words).args(["--color", if color { "always" } else { "never" }]);
    run.current_dir(ROOT).env("COLUMNS", "100").env("FORCE_HYPERLINK", "0");
    let ours = ["SAMEDEVICE_CONFIG", "SAMEDEVICE_OUTPUT_FILE", "SAMEDEVICE_OUTPUT_FORMAT"];
    for name in ours.into_iter().chain(["CLICOLOR_FORCE", "NO_COLOR", "GITHUB_WORKSPACE"]) {
        run.env_remove(name);
    }
    let output = run.output().expect("the program starts");
    assert!(matches!(output.status.code(), Some(0 | 1)), "{command}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The text with the outputs of its commands as they are now.
fn refreshed(text: &str) -> String {
    let mut fresh = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        fresh.push_str(line);
        fresh.push('\n');
        if line != "```console" {
            continue;
        }
        let prompt = lines.next().expect("a block is not empty");
        let command = prompt.strip_prefix("$ ").expect("a block starts with its command");
        let printed = output(command, false);
        let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
        fresh.push_str(&format!("{prompt}\n{}\n```\n", printed.join("\n")));
        assert!(lines.any(|line| line == "```"), "the block of `{command}` ends");
    }
    fresh
}

#[test]
fn what_they_show_is_what_the_program_prints() {
    for document in documents() {
        let text = read(&document);
        let fresh = refreshed(&text);
        if is_update() {
            fs::write(Path::new(ROOT).join(&document), &fresh).unwrap();
            continue;
        }
        let stale = text.lines().zip(fresh.lines()).find(|(old, new)| old != new);
        assert!(text == fresh, "{document} is stale at {stale:?}: run `SAMEDEVICE_UPDATE=1 cargo test`");
    }
}

#[test]
fn the_screenshot_is_current() {
    let rgb = |hex: u32| {
        let [_, red, green, blue] = hex.to_be_bytes();
        anstyle::RgbColor(red, green, blue)
    };
    let term = Term::new()
        .palette(Palette(COLOURS.map(rgb)))
        .fg_color(rgb(0xcdd6f4).into())
        .bg_color(rgb(0x1e1e2e).into());
    let text = format!("\x1b[32m$\x1b[0m \x1b[1m{SHOWN}\x1b[0m\n{}", output(SHOWN, true));
    let fresh = term.render_svg(text.trim_end());
    if is_update() {
        fs::write(Path::new(ROOT).join(SCREENSHOT), &fresh).unwrap();
        return;
    }
    assert!(read(SCREENSHOT) == fresh, "{SCREENSHOT} is stale: run `SAMEDEVICE_UPDATE=1 cargo test`");
}

/// The code blocks of a document in one of these languages, each with its language.
fn blocks<'t>(text: &'t str, languages: &[&str]) -> Vec<(&'t str, Vec<&'t str>)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let body = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        if languages.contains(&language) {
            blocks.push((language, body));
        }
    }
    blocks
}

/// The words of a command up to where the shell does something else.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars() {
        match (letter, quote) {
            (end, Some(begin)) if end == begin => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(letter),
            ('\'' | '"', None) => {
                word.get_or_insert_default();
                quote = Some(letter);
            }
            ('|' | '<' | '>' | ';' | '&' | '#', None) if word.is_none() => break,
            (';', None) => break,
            (' ', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Does the command line understand this? A command in a sentence may lack what it needs.
fn check_command(document: &str, command: &str, is_whole: bool) {
    let words = words(command);
    if let Err(error) = Cli::command().try_get_matches_from(&words) {
        let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        let is_part = !is_whole && error.kind() == ErrorKind::MissingRequiredArgument;
        // `samedevice` alone is a name.
        assert!(is_help || is_part || words.len() == 1, "{document}: `{command}`: {error}");
    }
}

#[test]
fn the_commands_in_them_exist() {
    let mut count = 0;
    for document in documents().into_iter().chain(markdown("rules")) {
        let text = read(&document);
        for (language, lines) in blocks(&text, &["sh", "console", "yaml", "vim"]) {
            for line in lines {
                // In a clone: `cargo run --release -- check …`.
                let line = line.replace("cargo run --release -- ", "samedevice ");
                if language == "yaml" && !line.contains("run:") && !line.contains("script:") {
                    continue;
                }
                for (at, _) in line.match_indices("samedevice ") {
                    // Not the end of a path.
                    if line[..at].chars().next_back().is_none_or(char::is_whitespace) {
                        check_command(&document, &line[at..], true);
                        count += 1;
                    }
                }
            }
        }
        // In the text: `samedevice check --fix`.
        for span in text.split('`').filter(|span| span.starts_with("samedevice ") && !span.contains('\n')) {
            if !span.contains('…') && !span.starts_with("samedevice =") {
                check_command(&document, span, false);
                count += 1;
            }
        }
    }
    assert!(count > 40, "only {count} commands");
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
fn every_format_is_listed() {
    let formats = <Format as clap::ValueEnum>::value_variants();
    let formats: Vec<_> = formats.iter().filter_map(clap::ValueEnum::to_possible_value).collect();
    assert_eq!(
        table(&read("docs/findings.md"), "Format"),
        names(formats.iter().map(|format| format.get_name()))
    );
}

#[test]
fn every_hook_is_listed() {
    let hooks = read(".pre-commit-hooks.yaml");
    let hooks = hooks.lines().filter_map(|line| line.strip_prefix("- id: "));
    assert_eq!(table(&read("docs/ci.md"), "Hook"), names(hooks));
}

#[test]
fn every_dependency_is_listed() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let mut dependencies: Vec<&toml::Table> =
        ["dependencies", "dev-dependencies"].map(|kind| manifest[kind].as_table().unwrap()).into();
    let targets = manifest["target"].as_table().unwrap().values();
    dependencies.extend(targets.map(|target| target["dependencies"].as_table().unwrap()));
    assert_eq!(
        table(&read("docs/dependencies.md"), "Crate"),
        names(dependencies.into_iter().flat_map(toml::Table::keys).map(String::as_str))
    );
}

#[test]
fn every_variable_of_the_environment_is_listed() {
    let listed = table(&read("docs/configuration.md"), "Variable");
    let command = Cli::command();
    let check = command.find_subcommand("check").unwrap();
    for name in check.get_arguments().filter_map(clap::Arg::get_env) {
        assert!(listed.contains(name.to_str().unwrap()), "docs/configuration.md lacks {name:?}");
    }
}

#[test]
fn nobody_reads_more_than_this() {
    for (document, most) in [("README.md", 250), ("CHANGELOG.md", 80), ("docs/precision.md", 200)] {
        let lines = read(document).lines().count();
        assert!(lines <= most, "{document} has {lines} lines, and may have {most}");
    }
}

/// The anchors of a document: its headings as GitHub and mdBook name them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let letter = |letter: char| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ => letter.is_alphanumeric().then_some(letter),
    };
    let slug =
        |line: &str| line.trim_start_matches('#').trim().to_lowercase().chars().filter_map(letter).collect();
    headings.map(slug).collect()
}

#[test]
fn what_they_link_to_is_there() {
    for document in documents().into_iter().chain(markdown("rules")) {
        let text = read(&document);
        // Without code blocks, which also have `](`.
        let text: String = text.split("\n```").step_by(2).collect();
        let folder = Path::new(ROOT).join(&document);
        let folder = folder.parent().unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if target.is_empty() { Path::new(ROOT).join(&document) } else { folder.join(target) };
            assert!(file.exists(), "{document}: {link}");
            let is_there = anchor.is_empty() || anchors(&fs::read_to_string(file).unwrap()).contains(anchor);
            assert!(is_there, "{document}: there is no heading {link}");
        }
    }
}
