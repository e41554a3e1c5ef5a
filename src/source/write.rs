//! Files are replaced as a whole or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// A new file beside `target`, with these bytes and the permissions of `target`, or those of a new file if there is none. It becomes
/// `target` when it is persisted under that path, and is deleted otherwise.
///
/// # Errors
/// Those of the file system.
pub fn prepared(target: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let known = fs::metadata(target).ok().map(|metadata| metadata.permissions());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".samedevice-");
    #[cfg(unix)]
    if known.is_none() {
        use std::os::unix::fs::PermissionsExt as _;
        // The system takes away what the user's mask forbids.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    if let Some(permissions) = known {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}
