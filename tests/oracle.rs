//! Programs on which PyTorch and the linter once disagreed: what their comments announce is found, and nothing else. The
//! first line of each is PyTorch's verdict (`tools/random_programs/verdicts.py`); the tests need no PyTorch.

mod harness;

use std::fs;
use std::path::Path;

use harness::{Found, check};
use samedevice::rules::example::expectations;

/// Rules about speed, memory and style: PyTorch has no opinion on them.
const ELSEWHERE: &str = "SD5,SD6,SD7";

#[test]
fn what_pytorch_says_is_found() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/oracle");
    let options = ["--ignore", ELSEWHERE].map(str::to_owned);
    let mut found = check(&folder, Path::new("."), false, &options).map_err(std::io::Error::other)?;
    let mut missing = String::new();
    let mut total = 0;
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|e| e != "py") {
            continue;
        }
        total += 1;
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        for (row, code) in expectations(&fs::read_to_string(&path)?) {
            let code = code.to_string();
            match found.iter().position(|f| f.file == name && f.row == row && f.code == code) {
                Some(at) => drop(found.remove(at)),
                None => missing.push_str(&format!("    - {name}:{row} {code}\n")),
            }
        }
    }
    let too_much: String = found
        .iter()
        .map(|Found { file, row, code, message }| format!("    + {file}:{row} {code} {message}\n"))
        .collect();
    assert!(total > 0, "no programs in {}", folder.display());
    assert!(
        missing.is_empty() && too_much.is_empty(),
        "of {total} programs these differ ('-' is missing, '+' is too much)\n{missing}{too_much}"
    );
    Ok(())
}

/// A program without findings works everywhere, and one with findings fails somewhere: by PyTorch's word.
#[test]
fn every_program_has_a_verdict() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/oracle");
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|e| e != "py") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let verdict = text.lines().next().unwrap_or_default();
        assert!(verdict.starts_with("# PyTorch: 0 GPUs: "), "{}: no verdict", path.display());
        let (fails, announced) = (verdict.contains("raises"), !expectations(&text).is_empty());
        assert_eq!(fails, announced, "{}: {verdict}", path.display());
    }
    Ok(())
}
