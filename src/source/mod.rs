//! Texts of files, and positions in them.

pub mod read;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use memchr::memmem;

use crate::span::{FileId, Place};
use crate::work::spend;

/// One file and its text, decoded to UTF-8, without a byte order mark. Line ends are kept.
#[derive(Debug)]
pub struct Source {
    /// Absolute path.
    pub path: PathBuf,
    /// The path as it is shown: relative to the working directory, with `/`.
    pub name: String,
    text: OnceLock<String>,
    lines: OnceLock<Vec<u32>>,
}

/// A position for people and editors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Position {
    /// Row, from 1.
    pub row: usize,
    /// Column in Unicode scalar values, from 1.
    pub column: usize,
}

impl Source {
    /// A file with this text.
    pub fn new(path: PathBuf, name: String, text: String) -> Self {
        Self { path, name, text: OnceLock::from(text), lines: OnceLock::new() }
    }

    /// A file on disk, whose text is read when somebody asks for it: after it has been lowered, that of few files is needed.
    pub fn on_disk(path: PathBuf, name: String) -> Self {
        Self { path, name, text: OnceLock::new(), lines: OnceLock::new() }
    }

    /// The text; empty if it cannot be read any more.
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| read::read(&self.path).unwrap_or_default())
    }

    /// Byte offsets at which lines start; `\n`, `\r\n` and `\r` end a line.
    pub fn line_starts(&self) -> &[u32] {
        self.lines.get_or_init(|| {
            let bytes = self.text().as_bytes();
            spend(bytes.len());
            let mut starts = vec![0];
            for i in memchr::memchr2_iter(b'\n', b'\r', bytes) {
                if bytes[i] == b'\n' || bytes.get(i + 1) != Some(&b'\n') {
                    starts.push(u32::try_from(i + 1).unwrap_or(u32::MAX));
                }
            }
            starts
        })
    }

    /// The position of a byte offset. Offsets past the end give the end.
    pub fn position(&self, offset: u32) -> Position {
        let starts = self.line_starts();
        let row = starts.partition_point(|&s| s <= offset);
        let start = starts[row.saturating_sub(1)] as usize;
        let end = (offset as usize).min(self.text().len());
        spend(end.saturating_sub(start));
        let column = self.text().get(start..end).map_or(0, |s| s.chars().count()) + 1;
        Position { row: row.max(1), column }
    }

    /// The text of a row (from 1) without its line end.
    pub fn row_text(&self, row: usize) -> &str {
        let starts = self.line_starts();
        let Some(&start) = row.checked_sub(1).and_then(|r| starts.get(r)) else { return "" };
        let end = starts.get(row).map_or(self.text().len(), |&e| e as usize);
        spend(end.saturating_sub(start as usize));
        self.text().get(start as usize..end).unwrap_or("").trim_end_matches(['\n', '\r'])
    }
}

/// A path as people see it: relative to the working directory if it is below, with `/`.
pub fn display_name(path: &Path, cwd: &Path) -> String {
    let path = path.strip_prefix(cwd).unwrap_or(path);
    let name = path.to_string_lossy();
    if std::path::MAIN_SEPARATOR == '/' {
        name.into_owned()
    } else {
        name.replace(std::path::MAIN_SEPARATOR, "/")
    }
}

/// All files of a run. A [`FileId`] is an index.
#[derive(Debug, Default)]
pub struct Sources(Vec<Source>);

impl Sources {
    /// Adds a file.
    pub fn add(&mut self, source: Source) -> FileId {
        let id = FileId(u32::try_from(self.0.len()).unwrap_or(u32::MAX));
        self.0.push(source);
        id
    }

    /// The file. Ids come from [`Sources::add`] of the same run.
    pub fn get(&self, id: FileId) -> &Source {
        &self.0[id.0 as usize]
    }

    /// The files with their ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &Source)> {
        self.0.iter().enumerate().map(|(i, s)| (FileId(u32::try_from(i).unwrap_or(u32::MAX)), s))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text of a place.
    pub fn text(&self, place: Place) -> &str {
        place.span.slice(self.get(place.file).text())
    }
}

/// Is the file of the project at this root a test, or does it help tests? Where the project itself stands does not matter. What is
/// only called so may be a program.
pub fn is_test(path: &Path, root: &Path) -> bool {
    // What makes it one has that word in it, and most paths do not.
    if memmem::find(path.as_os_str().as_encoded_bytes(), b"test").is_none() {
        return false;
    }
    let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
    stem.starts_with("test_") || stem.ends_with("_test") || stem == "conftest" || is_among_tests(path, root)
}

/// Is the file in a folder of tests?
pub fn is_among_tests(path: &Path, root: &Path) -> bool {
    let folders = path.strip_prefix(root).ok().and_then(Path::parent);
    folders.is_some_and(|f| {
        f.components().any(|c| matches!(c.as_os_str().to_str(), Some("tests" | "test" | "testing")))
    })
}

#[cfg(test)]
mod tests {
    use super::{Position, Source};

    #[test]
    fn columns_count_characters_and_rows_know_every_line_end() {
        let s = Source::new("x.py".into(), "x.py".into(), "é = 1\r\nb\rc\n".into());
        assert_eq!(s.position(3), Position { row: 1, column: 3 });
        assert_eq!(s.position(8), Position { row: 2, column: 1 });
        assert_eq!(s.position(10), Position { row: 3, column: 1 });
        assert_eq!((s.row_text(1), s.row_text(2), s.row_text(3)), ("é = 1", "b", "c"));
    }
}
