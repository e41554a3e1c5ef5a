//! Changes of a notebook's text → changes of its file.
//!
//! Nothing is written anew but the strings of the lines that change, and in these only what changes: outputs, metadata, indentation
//! and the order of keys stay as they are, byte for byte.

use std::ops::Range;

use super::literal::{encoded, escapes_non_ascii, units};
use super::{Cell, Decoded, Notebook, decode};

/// Why changes cannot be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// The bytes are no notebook in Python.
    #[error("it is no notebook in Python: {0}")]
    NoNotebook(String),
    /// A range ends in another cell than it begins in, or is not in the text.
    #[error("the bytes {0:?} are not in one cell")]
    NotInOneCell(Range<usize>),
    /// Two ranges have bytes in common.
    #[error("two changes overlap at byte {0}")]
    Overlap(usize),
    /// A range begins or ends within a character.
    #[error("the bytes {0:?} do not begin and end between characters")]
    WithinCharacter(Range<usize>),
}

/// Replaces ranges of a notebook's text (see [`decode`]) by other texts, in the file. An empty range inserts; at the beginning of
/// a cell, into that cell. Of several insertions at one place the first comes first. Inserted lines become strings of their own
/// where the cell has a list of them.
///
/// # Errors
/// If the bytes are no notebook, or a range is not one of characters in one cell. Then nothing can be written.
pub fn write_back(raw: &[u8], edits: &[(Range<usize>, String)]) -> Result<Vec<u8>, WriteError> {
    let no_notebook = |reason: &str| WriteError::NoNotebook(reason.to_owned());
    let file = String::from_utf8(raw.to_vec()).map_err(|_| no_notebook("it is not UTF-8"))?;
    let (text, notebook) = match decode(file) {
        Ok(Decoded::Python(text, notebook)) => (text, notebook),
        Ok(Decoded::Other(language)) => return Err(no_notebook(&language)),
        Err((_, broken)) => return Err(no_notebook(&broken.message)),
    };
    let mut file = notebook.raw.clone();
    for (range, content) in notebook.raw_edits(&text, edits)?.into_iter().rev() {
        file.replace_range(range, &content);
    }
    Ok(file.into_bytes())
}

/// A change of a cell.
type Edit<'a> = (Range<usize>, &'a str);

impl Notebook {
    /// The same as [`write_back`], as changes of the file: disjoint ranges in order, and the JSON to put there. `text` is the one
    /// that was decoded with it.
    ///
    /// # Errors
    /// See [`write_back`].
    pub fn raw_edits(
        &self,
        text: &str,
        edits: &[(Range<usize>, String)],
    ) -> Result<Vec<(Range<usize>, String)>, WriteError> {
        let mut sorted: Vec<Edit> =
            edits.iter().map(|(range, content)| (range.clone(), content.as_str())).collect();
        // Stable: insertions at one place keep their order. They go before what is replaced there.
        sorted.sort_by_key(|(range, _)| (range.start, range.end));
        for (range, _) in &sorted {
            let whole = range.start <= range.end
                && text.is_char_boundary(range.start)
                && text.is_char_boundary(range.end.min(text.len()));
            if !whole {
                return Err(WriteError::WithinCharacter(range.clone()));
            }
        }
        for pair in sorted.windows(2) {
            if pair[1].0.start < pair[0].0.end {
                return Err(WriteError::Overlap(pair[1].0.start));
            }
        }
        let mut raw = Vec::new();
        let mut rest = &sorted[..];
        while let Some((range, _)) = rest.first() {
            let cell = self.cell_at(range.start).ok_or_else(|| WriteError::NotInOneCell(range.clone()))?;
            // An insertion at the end of a cell is one at the beginning of the next, unless there is none.
            let last = cell.text.end == self.length;
            let here = |edit: &&Edit| edit.0.start < cell.text.end || last;
            let (own, others) = rest.split_at(rest.iter().take_while(here).count());
            if let Some((beyond, _)) = own.iter().find(|(range, _)| range.end > cell.text.end) {
                return Err(WriteError::NotInOneCell(beyond.clone()));
            }
            raw.extend(Rewriter { notebook: self, cell }.rewritten(own));
            rest = others;
        }
        Ok(raw)
    }
}

/// A piece of a cell's new text, as JSON.
struct Piece {
    json: String,
    /// Is it a line end?
    newline: bool,
    /// Does a string end after it?
    ends: bool,
}

/// Strings of a cell that change together, as indices, and the changes.
struct Group<'a> {
    literals: Range<usize>,
    edits: Vec<Edit<'a>>,
}

struct Rewriter<'a> {
    notebook: &'a Notebook,
    cell: &'a Cell,
}

impl Rewriter<'_> {
    /// The changes of the file that make these changes of the cell.
    fn rewritten(&self, edits: &[Edit]) -> Vec<(Range<usize>, String)> {
        self.groups(edits).iter().filter_map(|group| self.change(group)).collect()
    }

    /// Puts together what changes the same strings, or strings side by side.
    fn groups<'e>(&self, edits: &[Edit<'e>]) -> Vec<Group<'e>> {
        let mut groups: Vec<Group> = Vec::new();
        for edit in edits {
            let touched = self.touched(&edit.0);
            match groups.last_mut() {
                Some(group) if touched.start <= group.literals.end => {
                    group.literals.end = group.literals.end.max(touched.end);
                    group.edits.push(edit.clone());
                }
                _ => groups.push(Group { literals: touched, edits: vec![edit.clone()] }),
            }
        }
        groups
    }

    /// The strings that a range touches, as indices. One that takes a string's last line end joins it with the next.
    fn touched(&self, range: &Range<usize>) -> Range<usize> {
        let first = self.literal_at(range.start);
        let end = if range.end > range.start { self.literal_at(range.end - 1) + 1 } else { first + 1 };
        let joined = range.end > range.start && self.start(end) == range.end && end < self.cell.literals.end;
        first..if joined { end + 1 } else { end }
    }

    fn literal_at(&self, offset: usize) -> usize {
        let own = &self.notebook.literals[self.cell.literals.clone()];
        let index = own.partition_point(|literal| literal.start <= offset);
        self.cell.literals.start + index.saturating_sub(1)
    }

    fn start(&self, literal: usize) -> usize {
        if literal >= self.cell.literals.end {
            return self.cell.text.end;
        }
        self.notebook.literals[literal].start
    }

    fn raw(&self, literal: usize) -> Range<usize> {
        self.notebook.literals[literal].raw.clone()
    }

    /// The change of the file for one group; nothing if all of it stays.
    fn change(&self, group: &Group) -> Option<(Range<usize>, String)> {
        let pieces = self.pieces(group);
        let file = &self.notebook.raw;
        if !self.cell.listed {
            let raw = self.cell.source.clone();
            let json: String = pieces.into_iter().map(|piece| piece.json).collect();
            let json = format!("\"{json}\"");
            return (file[raw.clone()] != json).then_some((raw, json));
        }
        let mut strings = strings(&pieces);
        let mut literals = group.literals.clone();
        // What is as it was stays, whatever is between the strings.
        let same = |literal: usize, string: &String| file[self.raw(literal)] == *string;
        while !literals.is_empty() && strings.last().is_some_and(|last| same(literals.end - 1, last)) {
            strings.pop();
            literals.end -= 1;
        }
        let kept = strings.iter().zip(literals.clone()).take_while(|&(string, n)| same(n, string)).count();
        strings.drain(..kept);
        literals.start += kept;
        self.splice(literals, &strings)
    }

    /// Puts strings in the place of some of the list.
    fn splice(&self, literals: Range<usize>, strings: &[String]) -> Option<(Range<usize>, String)> {
        let (all, separator) = (&self.cell.literals, self.separator());
        let json = strings.join(&separator);
        let before = (literals.start > all.start).then(|| self.raw(literals.start - 1).end);
        let after = (literals.end < all.end).then(|| self.raw(literals.end).start);
        match (literals.is_empty(), strings.is_empty()) {
            (true, true) => None,
            (true, false) => match (before, after) {
                (Some(at), _) => Some((at..at, separator + &json)),
                (None, Some(at)) => Some((at..at, json + &separator)),
                (None, None) => Some((self.cell.source.clone(), format!("[{json}]"))),
            },
            (false, false) => Some((self.raw(literals.start).start..self.raw(literals.end - 1).end, json)),
            // With them goes one comma.
            (false, true) => Some(match (before, after) {
                (Some(start), _) => (start..self.raw(literals.end - 1).end, json),
                (None, Some(end)) => (self.raw(literals.start).start..end, json),
                (None, None) => (self.cell.source.clone(), "[]".to_owned()),
            }),
        }
    }

    /// What is between two strings of the list.
    fn separator(&self) -> String {
        let (all, file) = (&self.cell.literals, &self.notebook.raw);
        if all.len() > 1 {
            return file[self.raw(all.start).end..self.raw(all.start + 1).start].to_owned();
        }
        let blank = file.get(self.cell.source.start + 1..self.raw(all.start).start).unwrap_or_default();
        format!(",{}", if blank.is_empty() { " " } else { blank })
    }

    /// The new text of a group, piece by piece.
    fn pieces(&self, group: &Group) -> Vec<Piece> {
        let file = &self.notebook.raw;
        let ascii = self.writes_ascii(group);
        let mut pieces = Vec::new();
        let mut edits = group.edits.iter().peekable();
        // What a change takes away up to here.
        let mut taken = 0;
        let mut put = |at: usize, pieces: &mut Vec<Piece>| {
            while let Some((range, content)) = edits.next_if(|(range, _)| range.start <= at) {
                pieces.extend(content.chars().map(|c| Piece::new(encoded(c, ascii), c)));
                taken = taken.max(range.end);
            }
            taken
        };
        let mut at = self.start(group.literals.start);
        for literal in group.literals.clone() {
            let raw = self.raw(literal);
            for unit in units(file, raw.clone()) {
                if put(at, &mut pieces) <= at {
                    let newline = unit.decoded == '\n';
                    // After the last one there may be more of the same line.
                    let inner = newline || literal + 1 < self.cell.literals.end;
                    let ends = inner && unit.raw.end + 1 == raw.end;
                    pieces.push(Piece { json: file[unit.raw].to_owned(), newline, ends });
                }
                at += unit.decoded.len_utf8();
            }
        }
        let is_last = group.literals.end == self.cell.literals.end;
        if is_last && self.cell.closed && put(at, &mut pieces) <= at {
            pieces.push(Piece::new(encoded('\n', ascii), '\n'));
        }
        put(self.start(group.literals.end), &mut pieces);
        // The cell had no line end there, and needs none. Two are an empty line.
        let ends = pieces.iter().rev().take_while(|piece| piece.newline).take(2).count();
        if is_last && self.cell.closed && ends == 1 {
            pieces.pop();
        }
        pieces
    }

    /// Does the notebook escape what is not ASCII? Its strings themselves say it best.
    fn writes_ascii(&self, group: &Group) -> bool {
        let file = &self.notebook.raw;
        let near = &file[self.raw(group.literals.start).start..self.raw(group.literals.end - 1).end];
        if escapes_non_ascii(near) {
            return true;
        }
        near.is_ascii() && file.trim_start_matches('\u{feff}').is_ascii() && escapes_non_ascii(file)
    }
}

impl Piece {
    /// A piece that is new.
    fn new(json: String, c: char) -> Self {
        Self { json, newline: c == '\n', ends: c == '\n' }
    }
}

/// The strings that the pieces make, quotes included.
fn strings(pieces: &[Piece]) -> Vec<String> {
    let joined = |pieces: &[Piece]| {
        let json: String = pieces.iter().map(|piece| piece.json.as_str()).collect();
        format!("\"{json}\"")
    };
    pieces.split_inclusive(|piece| piece.ends).map(joined).collect()
}
