//! `--files-from`: the paths that a file lists.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::Failure;
use crate::source::read;

/// The paths that a list has: one a line, or, with `null`, each with NUL after it. `-` is standard input. Empty lines are none.
///
/// # Errors
/// If the list cannot be read.
pub fn paths(list: &Path, null: bool) -> Result<Vec<PathBuf>, Failure> {
    let mut bytes = Vec::new();
    let done = if list == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes)
    } else {
        File::open(list).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    done.map_err(|error| {
        let reason = read::io_reason(&error);
        Failure::Other(format!("cannot read the list of files `{}`: {reason}", list.display()))
    })?;
    let end = if null { 0 } else { b'\n' };
    let entries = bytes.split(|&byte| byte == end).map(|entry| match entry {
        [line @ .., b'\r'] if !null => line,
        line => line,
    });
    Ok(entries.filter(|entry| !entry.is_empty()).map(path).collect())
}

#[cfg(unix)]
fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
