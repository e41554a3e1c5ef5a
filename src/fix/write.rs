//! Writes changed files to the disk.

use std::fs;
use std::path::{Path, PathBuf};

use crate::source::read;
use crate::source::write::prepared;

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
pub enum Unwritten {
    /// Another program has changed it.
    #[error("it has changed since it was read; run again")]
    Changed,
    /// It is read-only.
    #[error("it is read-only")]
    ReadOnly,
    /// The operating system refused.
    #[error("{}", read::io_reason(.0))]
    Io(#[from] std::io::Error),
    /// It can no longer be read.
    #[error("{0}")]
    Gone(#[from] read::Unreadable),
}

/// Replaces `before` by `after`, completely or not at all: writes a new file next to it and renames that. If the path is a link, the link
/// stays. The file keeps its permissions.
///
/// # Errors
/// [`Unwritten`] if the file's bytes are no longer `before`, or it cannot be written. Then the file is unchanged.
pub fn replace(path: &Path, before: &[u8], after: &[u8]) -> Result<(), Unwritten> {
    let target: PathBuf = path.canonicalize()?;
    if fs::metadata(&target)?.permissions().readonly() {
        return Err(Unwritten::ReadOnly);
    }
    let file = prepared(&target, after)?;
    if read::bytes(&target)? != before {
        return Err(Unwritten::Changed);
    }
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}
