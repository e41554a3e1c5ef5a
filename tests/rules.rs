//! Every program of a rule, on its page in `rules/` and in `fixtures/rules`: what its comments announce is found, and nothing
//! else.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod harness;
mod shown;

use std::fs;
use std::path::Path;

use harness::{Found, check};
use samedevice::rules::example::{self, File, Program};
use samedevice::rules::page::Page;
use samedevice::rules::registry::registry;
use shown::shown;

#[test]
fn programs_yield_what_their_comments_announce() {
    let mut total = 0;
    let mut table = String::new();
    for page in registry() {
        let written = shown(page).unwrap();
        total += written.len();
        for shown in &written {
            if let Some(differences) = differences(page, &shown.program) {
                table.push_str(&format!("{}\n{differences}", shown.place()));
            }
        }
        let silent = written.iter().filter(|shown| shown.program.is_silent()).count();
        assert!(silent >= 3, "{} has {silent} programs without a finding, not 3", page.code);
    }
    assert!(table.is_empty(), "of {total} programs these differ ('-' is missing, '+' is too much)\n{table}");
}

/// What is missing and what is too much; `None` when all is right.
fn differences(page: &Page, program: &Program) -> Option<String> {
    let files = &program.files;
    let mut options = program.options.clone();
    options.extend(["--extend-select".to_owned(), page.code.to_string()]);
    let mut found = match check_files(files, &options) {
        Ok(found) => found,
        Err(message) => return Some(format!("    ! {message}\n")),
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
    if lines.is_empty() { None } else { Some(lines) }
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
