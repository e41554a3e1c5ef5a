//! Changed files → the disk.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::apply::{Change, changed};
use crate::source::read;

/// The bytes of a file after changes of its text, which is `text` now. All formats of files become bytes here.
///
/// # Errors
/// Why it cannot be, in words, if its encoding has no such characters or a change is not in the text.
pub fn bytes(old: &[u8], text: &str, changes: &[Change]) -> Result<Vec<u8>, String> {
    let new = changed(text, changes).ok_or_else(|| "the change is not in the text".to_owned())?;
    read::encode(old, &new).map_err(|reason| reason.to_string())
}

/// Why a file has not been written.
#[derive(Debug, thiserror::Error)]
pub enum Unwritten {
    /// Somebody else has changed it.
    #[error("it has changed since it was read; run again")]
    Changed,
    /// It is not to be changed.
    #[error("it is read-only")]
    ReadOnly,
    /// The operating system refused.
    #[error("{}", read::io_reason(.0))]
    Io(#[from] std::io::Error),
    /// It cannot be read any more.
    #[error("{0}")]
    Gone(#[from] read::Unreadable),
}

/// Puts `after` in the place of `before`, as a whole or not at all: a new file is written next to it and takes its name. A link keeps
/// leading to the file, which keeps its permissions.
///
/// # Errors
/// [`Unwritten`] if the file's bytes are not `before` any more, or it cannot be written. Then it is as it was.
pub fn replace(path: &Path, before: &[u8], after: &[u8]) -> Result<(), Unwritten> {
    let target: PathBuf = path.canonicalize()?;
    let permissions = fs::metadata(&target)?.permissions();
    if permissions.readonly() {
        return Err(Unwritten::ReadOnly);
    }
    let folder = target.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".samedevice-").tempfile_in(folder)?;
    file.write_all(after)?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    if read::bytes(&target)? != before {
        return Err(Unwritten::Changed);
    }
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}
