//! Files → bytes → text, as Python would read them: UTF-8 unless a byte order mark or a PEP 263 cookie says
//! otherwise. Line ends, form feeds and NULs stay as they are; only the byte order mark goes.
//!
//! Every file of a run is opened here. Only regular ones are: opening a named pipe waits until somebody writes to it, and a
//! device may have no end.

use std::fs::{File, FileType};
use std::io::{self, Read};
use std::path::Path;

use super::encoding::{decode, utf8};

/// Longer files are not read: 32 MiB. What people write is a hundredth of that, and what has been generated to be longer is data.
pub const MAX_BYTES: u64 = 32 << 20;

/// Why a file has no text. The words go into the message of SD003, after "cannot read this file: ".
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The operating system refused.
    #[error("{}", io_reason(.0))]
    Io(#[from] io::Error),
    /// A folder, pipe, socket or device, in words with an article.
    #[error("it is {0}, not a regular file")]
    NotRegular(&'static str),
    /// Longer than [`MAX_BYTES`].
    #[error("it is larger than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    /// The bytes are not in the encoding.
    #[error("it is not {encoding} (byte 0x{byte:02x} in line {row}){hint}")]
    NotEncoded {
        /// The encoding that was asked for, as shown to people.
        encoding: String,
        /// The first byte that does not fit.
        byte: u8,
        /// Its row, from 1.
        row: usize,
        /// What to do about it; empty or starts with a comma.
        hint: &'static str,
    },
    /// As above, where the decoder does not tell the position.
    #[error("it declares the encoding `{0}`, but its bytes are not valid in it")]
    NotAsDeclared(String),
    /// The cookie names something that is no encoding, or none that a source file may have.
    #[error("it declares the encoding `{0}`, which samedevice does not know")]
    UnknownEncoding(String),
    /// Python refuses this combination, too.
    #[error("it starts with a UTF-8 byte order mark, but declares the encoding `{0}`")]
    MarkAgainstCookie(String),
    /// UTF-16 or UTF-32, which Python does not read either.
    #[error("it is UTF-16 or UTF-32, which Python does not read; save it as UTF-8")]
    Wide,
}

/// Reads a Python file and decodes it.
///
/// # Errors
/// [`Unreadable`] with the reason, if there can be no text.
pub fn read(path: &Path) -> Result<String, Unreadable> {
    decode(bytes(path)?)
}

/// Reads a file that must be UTF-8, such as a configuration, whatever its first lines say.
///
/// # Errors
/// [`Unreadable`] with the reason, if there can be no text.
pub fn text(path: &Path) -> Result<String, Unreadable> {
    utf8(bytes(path)?, "")
}

/// Reads a file of which only some lines matter, whatever bytes the others have in them.
///
/// # Errors
/// [`Unreadable`] if it is no regular file, too large, or cannot be read.
pub fn text_lossy(path: &Path) -> Result<String, Unreadable> {
    Ok(String::from_utf8_lossy(&bytes(path)?).into_owned())
}

/// Decodes the bytes of a file that must be UTF-8. A byte order mark stays.
///
/// # Errors
/// [`Unreadable`] with the reason, if there can be no text.
pub fn decode_utf8(bytes: Vec<u8>) -> Result<String, Unreadable> {
    if bytes.len() as u64 > MAX_BYTES { Err(Unreadable::TooLarge) } else { utf8(bytes, "") }
}

/// The first bytes of a file, `limit` of them at most.
///
/// # Errors
/// [`Unreadable`] if it is no regular file or cannot be read.
pub fn head(path: &Path, limit: u64) -> Result<Vec<u8>, Unreadable> {
    let (file, _) = open(path)?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file of at most `limit` bytes that must be UTF-8; nothing where it is longer, is none or cannot be read.
pub fn short_text(path: &Path, limit: u64) -> Option<String> {
    let (file, length) = open(path).ok()?;
    let mut bytes = Vec::new();
    (length <= limit).then(|| file.take(limit).read_to_end(&mut bytes))?.ok()?;
    utf8(bytes, "").ok()
}

/// All bytes of a file.
///
/// # Errors
/// [`Unreadable`] if it is no regular file, too large, or cannot be read.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Unreadable> {
    let (file, length) = open(path)?;
    if length > MAX_BYTES {
        return Err(Unreadable::TooLarge);
    }
    let mut bytes = Vec::new();
    // The byte more lets the last read, which finds the end, do without growing.
    bytes.reserve_exact(usize::try_from(length).unwrap_or(0).saturating_add(1));
    upto_max(file, &mut bytes)?;
    Ok(bytes)
}

/// Reads one byte more than allowed at most, so that what has no end does not fill the memory: [`decode`] refuses the rest.
///
/// # Errors
/// Those of the stream.
pub fn upto_max(stream: impl Read, bytes: &mut Vec<u8>) -> io::Result<usize> {
    stream.take(MAX_BYTES + 1).read_to_end(bytes)
}

/// The file and its length, in bytes. It is asked before it is opened what it is.
///
/// # Errors
/// [`Unreadable`] if it is no regular file or cannot be opened.
pub fn open(path: &Path) -> Result<(File, u64), Unreadable> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(Unreadable::NotRegular(kind(metadata.file_type())));
    }
    Ok((File::open(path)?, metadata.len()))
}

fn kind(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a named pipe";
        } else if kind.is_socket() {
            return "a socket";
        } else if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
    }
    if kind.is_dir() { "a folder" } else { "something else" }
}

/// The operating system's words without Rust's "(os error 2)".
pub fn io_reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_lowercase().chain(chars).collect())
}
