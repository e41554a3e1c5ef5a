//! Runs the linter on a project in a folder of its own and reads what it found.

use std::path::Path;
use std::process::Command;

/// What the tests look at in a finding.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Found {
    /// The file's path in the project.
    pub file: String,
    /// The row on which it starts.
    pub row: usize,
    /// `SD101`.
    pub code: String,
    /// The sentence.
    pub message: String,
}

/// Checks `what`, relative to `folder`, with the project's own configuration only if it is `configured`.
pub fn check(folder: &Path, what: &Path, configured: bool, options: &[String]) -> Result<Vec<Found>, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_samedevice"));
    command.current_dir(folder).arg("check").args(["--no-cache", "--output-format", "json"]);
    // What the rules say does not hang on how sure it is.
    command.args(["--min-confidence", "low"]);
    if !configured {
        command.arg("--isolated");
    }
    let output = command.args(options).arg(what).output().map_err(|e| e.to_string())?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, errors.lines().next().unwrap_or_default()));
    }
    findings(&output.stdout, folder)
}

fn findings(json: &[u8], folder: &Path) -> Result<Vec<Found>, String> {
    let json: serde_json::Value =
        serde_json::from_slice(json).map_err(|e| format!("the output is no JSON: {e}"))?;
    let entries = json.as_array().ok_or("the output is no array")?;
    let mut found = entries.iter().map(|e| one(e, folder)).collect::<Result<Vec<_>, _>>()?;
    found.sort();
    Ok(found)
}

fn one(entry: &serde_json::Value, folder: &Path) -> Result<Found, String> {
    let text = |key: &str| entry[key].as_str().ok_or_else(|| format!("no `{key}` in {entry}"));
    let row = entry["location"]["row"].as_u64().ok_or_else(|| format!("no row in {entry}"))?;
    Ok(Found {
        file: relative(text("filename")?, folder),
        row: usize::try_from(row).map_err(|e| e.to_string())?,
        code: text("code")?.to_owned(),
        message: text("message")?.to_owned(),
    })
}

/// Paths may be shown absolute or relative; the tests compare them relative to the project.
fn relative(name: &str, folder: &Path) -> String {
    let path = Path::new(name);
    let canonical = folder.canonicalize().unwrap_or_default();
    let path = path.strip_prefix(folder).or_else(|_| path.strip_prefix(canonical)).unwrap_or(path);
    let name = path.to_string_lossy().replace('\\', "/");
    name.strip_prefix("./").map(str::to_owned).unwrap_or(name)
}
