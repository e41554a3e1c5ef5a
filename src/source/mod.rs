//! Texts of files, and positions in them.

mod content;
pub mod encoding;
pub mod read;
pub mod write;

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use memchr::memmem;

pub use self::content::{Content, NoContent};
use crate::notebook::Notebook;
use crate::span::{FileId, Place, Span};
use crate::work::spend;

/// One file and its text, decoded to UTF-8, without a byte order mark. Line ends are kept. The text of a notebook is that of its
/// code cells.
#[derive(Debug)]
pub struct Source {
    /// Absolute path.
    pub path: PathBuf,
    /// The path as it is shown: relative to the working directory, with `/`.
    pub name: String,
    content: OnceLock<Content>,
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
        Self::with_content(path, name, Content::from(text))
    }

    /// A file with what has been read from it.
    pub fn with_content(path: PathBuf, name: String, content: Content) -> Self {
        Self { path, name, content: OnceLock::from(content), lines: OnceLock::new() }
    }

    /// A file on disk, whose text is read when somebody asks for it: after it has been lowered, that of few files is needed.
    pub fn on_disk(path: PathBuf, name: String) -> Self {
        Self { path, name, content: OnceLock::new(), lines: OnceLock::new() }
    }

    fn content(&self) -> &Content {
        self.content.get_or_init(|| Content::read(&self.path).unwrap_or_default())
    }

    /// The text; empty if it cannot be read any more.
    pub fn text(&self) -> &str {
        &self.content().text
    }

    /// Where the text comes from, if it is that of a notebook.
    pub fn notebook(&self) -> Option<&Notebook> {
        self.content().notebook.as_deref()
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

    /// The row (from 1) of a byte offset in the text, that of a notebook included. Offsets past the end give the last one.
    pub fn row(&self, offset: u32) -> usize {
        self.line_starts().partition_point(|&start| start <= offset).max(1)
    }

    /// The position of a byte offset; in a notebook, within the cell. Offsets past the end give the end.
    pub fn position(&self, offset: u32) -> Position {
        let row = self.row(offset);
        let start = self.line_starts()[row - 1] as usize;
        let end = (offset as usize).min(self.text().len());
        spend(end.saturating_sub(start));
        let column = self.text().get(start..end).map_or(0, |s| s.chars().count()) + 1;
        Position { row: row - self.rows_before(offset), column }
    }

    /// The positions of the first byte of a range and of the one after its last; in a notebook, both within the cell that it begins
    /// in.
    pub fn extent(&self, span: Span) -> (Position, Position) {
        let end = span.end.max(span.start);
        let start = self.position(span.start);
        let Some((_, cell)) = self.cell_bytes(span.start) else { return (start, self.position(end)) };
        let last = u32::try_from(cell.end).unwrap_or(u32::MAX);
        if end < last {
            return (start, self.position(end));
        }
        // The byte after the cell is in the next one: this one's text ends with its last line end.
        let end = self.position(last.saturating_sub(1).max(span.start));
        (start, end)
    }

    /// The same as positions in the file as it is on disk, which differ in a notebook only.
    pub fn file_extent(&self, span: Span) -> (Position, Position) {
        let Some(notebook) = self.notebook() else { return self.extent(span) };
        let raw = notebook.raw_range(span.start as usize..span.end as usize);
        (raw_position(notebook, raw.start), raw_position(notebook, raw.end))
    }

    /// Changes of the text as changes of the file as it is on disk: the positions between which something goes, and what is put there.
    /// None for a notebook in which they cannot be made.
    pub fn file_changes(&self, edits: Vec<(Span, String)>) -> Vec<((Position, Position), String)> {
        let Some(notebook) = self.notebook() else {
            return edits.into_iter().map(|(span, content)| (self.extent(span), content)).collect();
        };
        let range = |span: Span| span.start as usize..span.end as usize;
        let edits: Vec<_> = edits.into_iter().map(|(span, content)| (range(span), content)).collect();
        let position = |at| raw_position(notebook, at);
        let changes = notebook.raw_edits(self.text(), &edits).unwrap_or_default().into_iter();
        changes.map(|(raw, json)| ((position(raw.start), position(raw.end)), json)).collect()
    }

    /// The number of the cell (from 1, all cells counted) that a byte offset is in, if this is a notebook.
    pub fn cell(&self, offset: u32) -> Option<usize> {
        self.cell_bytes(offset).map(|(number, _)| number)
    }

    /// The rows of a notebook's text before the cell that a byte offset is in.
    pub fn rows_before(&self, offset: u32) -> usize {
        let cell = self.cell_bytes(offset);
        cell.map_or(0, |(_, bytes)| self.row(u32::try_from(bytes.start).unwrap_or(u32::MAX)) - 1)
    }

    /// The name of the file, with the cell of a notebook that a byte offset is in: `a.ipynb:cell 3`.
    pub fn name_at(&self, offset: u32) -> Cow<'_, str> {
        match self.cell(offset) {
            Some(number) => Cow::Owned(format!("{}:cell {number}", self.name)),
            None => Cow::Borrowed(&self.name),
        }
    }

    fn cell_bytes(&self, offset: u32) -> Option<(usize, Range<usize>)> {
        self.notebook()?.cell(offset as usize)
    }

    /// The text of a row (from 1, see [`Self::row`]) without its line end.
    pub fn row_text(&self, row: usize) -> &str {
        let starts = self.line_starts();
        let Some(&start) = row.checked_sub(1).and_then(|r| starts.get(r)) else { return "" };
        let end = starts.get(row).map_or(self.text().len(), |&e| e as usize);
        spend(end.saturating_sub(start as usize));
        self.text().get(start as usize..end).unwrap_or("").trim_end_matches(['\n', '\r'])
    }
}

fn raw_position(notebook: &Notebook, raw: usize) -> Position {
    let (row, column) = notebook.raw_position(raw);
    Position { row, column }
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
