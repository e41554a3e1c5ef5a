//! Jupyter notebooks: the bytes of an `.ipynb` file ⇄ one Python text of its code cells.
//!
//! The text holds the code cells in the order of the file, each ending with a line end. Cells that IPython hands to something
//! else (`%%bash`), and those in other languages, are left out. A [`Notebook`] knows for every byte of the text in which cell it
//! is and where it is written in the file, and writes changes of the text back into the file ([`write_back`]).

mod json;
mod literal;
mod magics;
#[cfg(test)]
mod tests;
mod write;

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use self::literal::units;
pub use self::write::{WriteError, write_back};

/// Where the text of a notebook comes from.
#[derive(Debug)]
pub struct Notebook {
    /// The file, as it is.
    raw: String,
    /// The code cells that are in the text, in order.
    cells: Vec<Cell>,
    /// Where each of them begins in the text.
    starts: Vec<u32>,
    /// The JSON strings that the cells are made of, in order.
    literals: Vec<Literal>,
    /// The length of the text in bytes.
    length: usize,
    /// Code cells that are not in the text, with their cell magic, which nothing is known about. Cells are counted from 1.
    unknown: Vec<(usize, String)>,
    /// Where the lines of the file begin.
    raw_lines: OnceLock<Vec<usize>>,
}

/// A code cell.
#[derive(Debug)]
struct Cell {
    /// Which of all cells of the notebook it is, from 1.
    number: usize,
    /// Its bytes in the text.
    text: Range<usize>,
    /// Does the text end with a line end that the cell does not have?
    closed: bool,
    /// Its strings, as indices.
    literals: Range<usize>,
    /// Where these are written in the file, with the quotes or brackets around.
    source: Range<usize>,
    /// Are they in a list?
    listed: bool,
}

/// A JSON string.
#[derive(Debug)]
struct Literal {
    /// Where what it says begins in the text.
    start: usize,
    /// Where it is written in the file, quotes included.
    raw: Range<usize>,
}

/// What a file turned out to be.
#[derive(Debug)]
pub enum Decoded {
    /// A notebook in Python, and the text of its cells.
    Python(String, Notebook),
    /// A notebook in this language.
    Other(String),
}

/// Why a file is no notebook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Where, in bytes from the beginning of the file.
    pub at: usize,
    /// What is wrong, without a full stop.
    pub message: String,
}

/// Is a file with this path a notebook?
pub fn is_notebook(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ipynb")
}

/// Reads a notebook. A byte order mark may be in front of it.
///
/// # Errors
/// If the file is no notebook, or one of a format before 4; it is given back with the reason.
pub fn decode(raw: String) -> Result<Decoded, (String, Broken)> {
    let document = match json::read(&raw) {
        Ok(document) => document,
        Err(broken) => return Err((raw, broken)),
    };
    if let Some(language) = document.language.filter(|language| !json::is_python(language)) {
        return Ok(Decoded::Other(language));
    }
    let mut text = String::new();
    let (mut cells, mut literals, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for code in document.cells {
        let (start, first) = (text.len(), literals.len());
        for raw_literal in code.literals {
            literals.push(Literal { start: text.len(), raw: raw_literal.clone() });
            text.extend(units(&raw, raw_literal).map(|unit| unit.decoded));
        }
        let own = &text[start..];
        if own.is_empty() || !magics::is_python(own, document.databricks) {
            unknown.extend(magics::unknown(own).map(|magic| (code.number, magic.to_owned())));
            text.truncate(start);
            literals.truncate(first);
            continue;
        }
        let closed = !own.ends_with('\n');
        if closed {
            text.push('\n');
        }
        cells.push(Cell {
            number: code.number,
            text: start..text.len(),
            closed,
            literals: first..literals.len(),
            source: code.source,
            listed: code.listed,
        });
    }
    let starts = cells.iter().map(|cell| u32::try_from(cell.text.start).unwrap_or(u32::MAX)).collect();
    let length = text.len();
    let notebook = Notebook { raw, cells, starts, literals, length, unknown, raw_lines: OnceLock::new() };
    Ok(Decoded::Python(text, notebook))
}

impl Notebook {
    /// Where the cells begin in the text, in bytes.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Code cells that are not in the text, because nothing is known about their cell magic: the number of each among all cells (from
    /// 1), and the magic without `%%`.
    pub fn unknown(&self) -> &[(usize, String)] {
        &self.unknown
    }

    /// The cell that a byte of the text is in: its number among all cells of the notebook (from 1), and its bytes in the text. What
    /// follows the text counts as the last one's. `None`: the text is empty.
    pub fn cell(&self, offset: usize) -> Option<(usize, Range<usize>)> {
        self.cell_at(offset).map(|cell| (cell.number, cell.text.clone()))
    }

    /// Where a range of the text is written in the file, in bytes: from the first character to the end of the last.
    pub fn raw_range(&self, text: Range<usize>) -> Range<usize> {
        let start = self.raw_character(text.start).start;
        if text.end <= text.start {
            start..start
        } else {
            start..self.raw_character(text.end - 1).end.max(start)
        }
    }

    /// The row and column (from 1, in characters) of a byte of the file.
    pub fn raw_position(&self, raw: usize) -> (usize, usize) {
        let lines = self.raw_lines.get_or_init(|| {
            std::iter::once(0)
                .chain(memchr::memchr_iter(b'\n', self.raw.as_bytes()).map(|at| at + 1))
                .collect()
        });
        let row = lines.partition_point(|&start| start <= raw);
        let start = lines.get(row.saturating_sub(1)).copied().unwrap_or(0);
        let before = self.raw.get(start..raw).unwrap_or_default();
        (row, before.chars().count() + 1)
    }

    /// Where the character at a byte of the text is written. A line end that the file does not have is at the quote that ends
    /// the cell.
    fn raw_character(&self, offset: usize) -> Range<usize> {
        let index = self.literals.partition_point(|literal| literal.start <= offset);
        let Some(literal) = index.checked_sub(1).and_then(|index| self.literals.get(index)) else {
            return 0..0;
        };
        let mut at = literal.start;
        for unit in units(&self.raw, literal.raw.clone()) {
            at += unit.decoded.len_utf8();
            if at > offset {
                return unit.raw;
            }
        }
        let end = literal.raw.end.saturating_sub(1);
        end..end
    }

    fn cell_at(&self, offset: usize) -> Option<&Cell> {
        let index = self.cells.partition_point(|cell| cell.text.start <= offset);
        self.cells.get(index.checked_sub(1)?)
    }
}
