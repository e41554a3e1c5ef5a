//! The file of a baseline: JSON, with one sorted line for each kind of finding, so that diffs are small and merges rarely conflict.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Baseline, Entry, Identity};
use crate::finding::Code;
use crate::report::fingerprint::Fingerprint;
use crate::source::read::io_reason;
use crate::source::write::prepared;

/// The version of the format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// What is wrong with the file of a baseline.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// It cannot be read.
    #[error("cannot read the baseline `{}`: {}", .0.display(), io_reason(.1))]
    Unreadable(PathBuf, io::Error),
    /// It is not JSON, or JSON of another kind.
    #[error("`{}` is not a valid baseline: {reason}; delete it and run `samedevice check --update-baseline` to create a new one", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the row and column.
        reason: String,
    },
    /// It cannot be written.
    #[error("cannot write the baseline `{}`: {}", .0.display(), io_reason(.1))]
    Unwritable(PathBuf, io::Error),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    findings: BTreeMap<String, Vec<Line>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Line {
    code: String,
    fingerprint: String,
    /// The marked code.
    marked: String,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    count: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reached_from: Vec<String>,
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(count: &usize) -> bool {
    *count == 1
}

/// Reads a baseline. `None`: there is no such file.
///
/// # Errors
/// If it cannot be read, or is not a baseline of this version.
pub fn read(path: &Path) -> Result<Option<Baseline>, BaselineError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(BaselineError::Unreadable(path.to_owned(), error)),
    };
    parse(&text).map(Some).map_err(|reason| BaselineError::Malformed { path: path.to_owned(), reason })
}

fn parse(text: &str) -> Result<Baseline, String> {
    let document: Document = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if document.version != VERSION {
        return Err(format!(
            "its version is {}, and this samedevice reads version {VERSION}",
            document.version
        ));
    }
    let mut entries: BTreeMap<Identity, Entry> = BTreeMap::new();
    for (path, lines) in document.findings {
        for line in lines {
            let unknown =
                |what: &str, text: &str| format!("`{text}` is not a {what}, in the findings of `{path}`");
            let rule = code(&line.code).ok_or_else(|| unknown("rule code", &line.code))?;
            let fingerprint: Fingerprint =
                line.fingerprint.parse().map_err(|()| unknown("fingerprint", &line.fingerprint))?;
            let entry = Entry { count: line.count, marked: line.marked, reached_from: line.reached_from };
            // After a merge of two branches, the file may contain one finding twice.
            let known =
                entries.entry(Identity { path: path.clone(), rule, fingerprint }).or_insert(entry.clone());
            known.count = known.count.max(entry.count);
            known.reached_from.extend(entry.reached_from);
            known.reached_from.sort_unstable();
            known.reached_from.dedup();
        }
    }
    entries.retain(|_, entry| entry.count > 0);
    Ok(Baseline { entries })
}

/// The code in a text such as `SD101`.
fn code(text: &str) -> Option<Code> {
    text.strip_prefix("SD")?.parse().ok().map(Code)
}

/// Writes a baseline completely, or not at all. Does nothing if the file has the same content.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, baseline: &Baseline) -> Result<(), BaselineError> {
    let text = text(baseline);
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    replace(path, &text).map_err(|error| BaselineError::Unwritable(path.to_owned(), error))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    // If the path is a link, the link stays and its target is written.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    prepared(&target, text.as_bytes())?.persist(&target)?;
    Ok(())
}

fn text(baseline: &Baseline) -> String {
    let mut files: BTreeMap<&str, Vec<Line>> = BTreeMap::new();
    for (identity, entry) in &baseline.entries {
        files.entry(&identity.path).or_default().push(Line {
            code: identity.rule.to_string(),
            fingerprint: identity.fingerprint.to_string(),
            marked: entry.marked.clone(),
            count: entry.count,
            reached_from: entry.reached_from.clone(),
        });
    }
    let mut text = format!("{{\n  \"version\": {VERSION},\n  \"findings\": {{");
    for (number, (path, lines)) in files.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\n    {}: [", json(path));
        for (number, line) in lines.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let _ = write!(text, "{comma}\n      {}", json(line));
        }
        text.push_str("\n    ]");
    }
    text.push_str(if files.is_empty() { "}\n}\n" } else { "\n  }\n}\n" });
    text
}

/// Serialises a value whose keys and values can always be written as JSON.
fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
