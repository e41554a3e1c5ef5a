//! Every program on every page in `rules/`: what its comments announce is found, and nothing else.

mod harness;

use std::fs;
use std::path::Path;

use harness::{Found, check};
use samedevice::rules::example::{self, File, Program};
use samedevice::rules::page::{KEYS, Page};
use samedevice::rules::registry::registry;

#[test]
fn programs_on_the_pages_yield_what_their_comments_announce() {
    let mut total = 0;
    let mut table = String::new();
    for page in registry() {
        let programs = example::programs(page.body).unwrap_or_default();
        total += programs.len();
        for program in &programs {
            if let Some(differences) = differences(page, program) {
                table.push_str(&format!("{}\n{differences}", page.slug()));
            }
        }
    }
    assert!(table.is_empty(), "of {total} programs these differ ('-' is missing, '+' is too much)\n{table}");
}

/// What is missing and what is too much; `None` when all is right.
fn differences(page: &Page, program: &Program) -> Option<String> {
    let Program { section, line, files, .. } = program;
    // The body starts below the front matter and its two fences.
    let first_line = line + KEYS.len() + 2;
    let title = format!("  {section:?}, line {first_line}\n");
    let mut options = program.options.clone();
    options.extend(["--extend-select".to_owned(), page.code.to_string()]);
    let mut found = match check_files(files, &options) {
        Ok(found) => found,
        Err(message) => return Some(format!("{title}    ! {message}\n")),
    };
    let mut missing = Vec::new();
    for file in files {
        for (row, code) in example::expectations(&file.text) {
            let code = code.to_string();
            match found.iter().position(|f| f.file == file.name && f.row == row && f.code == code) {
                Some(at) => drop(found.remove(at)),
                None => missing.push(format!("    - {}:{row} {code}\n", file.name)),
            }
        }
    }
    let too_much = found
        .iter()
        .map(|Found { file, row, code, message }| format!("    + {file}:{row} {code} {message}\n"));
    let lines: String = missing.into_iter().chain(too_much).collect();
    if lines.is_empty() { None } else { Some(title + &lines) }
}

/// Writes the files into a fresh folder and checks them there. The project's own configuration is used only if
/// it brings one.
fn check_files(files: &[File], options: &[String]) -> Result<Vec<Found>, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    for file in files {
        let path = folder.path().join(&file.name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|e| e.to_string())?;
        }
        fs::write(&path, file.bytes()).map_err(|e| e.to_string())?;
    }
    let configured = files.iter().any(|f| f.name.ends_with(".toml"));
    check(folder.path(), Path::new("."), configured, options)
}
