//! Changed files → the disk.

use std::fs;
use std::path::{Path, PathBuf};

use crate::source::read;
use crate::source::write::prepared;

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
