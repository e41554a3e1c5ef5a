//! The rows of the sources that a finding shows, cut to the size of a screen.
//!
//! miette draws a snippet from a text and offsets in it. With a whole file, it would search the file from its start for each finding, and
//! could print a line of a megabyte. So it gets an excerpt: the rows around each label, of all files with labels, with long rows clipped,
//! unprintable characters replaced, and the offsets adjusted.

use std::ops::Range;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use crate::source::{Source, Sources};
use crate::span::{FileId, Place};

use super::words::{is_dangerous, one_line};

/// Rows shown above and below a label.
pub(super) const CONTEXT: usize = 1;
/// If a place has more rows than this, only its first row is shown.
const MAX_ROWS: usize = 12;
/// How many characters of a row are shown at most.
const MAX_COLUMNS: usize = 200;
/// How many characters are shown before the first label of a clipped row.
const LEAD: usize = 60;

/// The text that miette sees.
#[derive(Debug, Default)]
pub(super) struct Excerpt {
    text: String,
    rows: Vec<Row>,
    names: Vec<String>,
    ellipsis: &'static str,
}

#[derive(Debug)]
struct Row {
    /// Offset of the row in the excerpt's text.
    start: usize,
    /// Row in the file, or in the cell of a notebook, from 1.
    number: usize,
    /// How many characters of the row were left out, minus the length of the ellipsis that replaces them.
    hidden: isize,
    /// Index of the file's name.
    name: usize,
    /// The number of the row's block. The rows of a block are consecutive in the file.
    block: usize,
}

/// A place that is being added to the excerpt.
struct Mark {
    file: FileId,
    bytes: Range<usize>,
    /// First and last row, from 1.
    rows: (usize, usize),
    /// The range in the excerpt.
    shown: Range<usize>,
}

impl Excerpt {
    /// The rows around the places, and the ranges of the places in the excerpt. The file of the first place comes first.
    pub(super) fn new(sources: &Sources, places: &[Place], unicode: bool) -> (Self, Vec<SourceSpan>) {
        let mut excerpt = Self { ellipsis: if unicode { "…" } else { "..." }, ..Self::default() };
        let mut marks: Vec<_> = places.iter().map(|&place| Mark::new(sources, place)).collect();
        let mut files: Vec<FileId> = Vec::new();
        for mark in &marks {
            if !files.contains(&mark.file) {
                files.push(mark.file);
            }
        }
        let mut blocks = 0;
        for file in files {
            let source = sources.get(file);
            for (first, last) in blocks_of(source, marks.iter().filter(|mark| mark.file == file)) {
                let start = source.line_starts().get(first - 1).copied().unwrap_or(0);
                excerpt.names.push(one_line(&source.name_at(start)).into_owned());
                for row in first..=last {
                    excerpt.push_row(source, file, row, blocks, &mut marks);
                }
                blocks += 1;
            }
        }
        let length = |range: &Range<usize>| range.end.saturating_sub(range.start);
        let spans = marks.iter().map(|m| (m.shown.start, length(&m.shown)).into()).collect();
        (excerpt, spans)
    }

    fn push_row(&mut self, source: &Source, file: FileId, number: usize, block: usize, marks: &mut [Mark]) {
        let text = source.row_text(number);
        let first = source.line_starts().get(number - 1).copied().unwrap_or(0);
        let base = first as usize;
        // Converts an offset in the file to an offset in this row.
        let local = |offset: usize| offset.saturating_sub(base).min(text.len());
        let on_row = |mark: &Mark| mark.file == file && mark.rows.0 <= number && number <= mark.rows.1;
        let wanted = marks.iter().find(|m| on_row(m)).map_or(0, |m| local(m.bytes.start));
        let window = window(text, wanted);
        let marker = if window.start > 0 { self.ellipsis.chars().count() } else { 0 };
        let hidden = isize::try_from(count(text, 0..window.start)).unwrap_or(isize::MAX);
        let hidden = hidden.saturating_sub_unsigned(marker);
        let (start, name) = (self.text.len(), self.names.len() - 1);
        let shown = number - source.rows_before(first);
        self.rows.push(Row { start, number: shown, hidden, name, block });

        let shown = self.push_text(text, &window);
        let shown_text = self.text.get(shown.clone()).unwrap_or_default();
        // Replacement changes the length in bytes, but not the number of characters.
        let moved = |offset: usize| {
            let characters = count(text, window.start..local(offset).clamp(window.start, window.end));
            shown_text.char_indices().nth(characters).map_or(shown.end, |(i, _)| shown.start + i)
        };
        for mark in marks.iter_mut().filter(|m| m.file == file) {
            if mark.rows.0 == number {
                mark.shown.start = moved(mark.bytes.start);
            }
            if mark.rows.1 == number {
                mark.shown.end = moved(mark.bytes.end);
            }
        }
    }

    /// Appends the part of a row in the window, and returns its range.
    fn push_text(&mut self, text: &str, window: &Range<usize>) -> Range<usize> {
        if window.start > 0 {
            self.text.push_str(self.ellipsis);
        }
        let start = self.text.len();
        let shown = text.get(window.clone()).unwrap_or_default().chars();
        self.text.extend(shown.map(|c| match c {
            '\t' => '\t',
            c if is_dangerous(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        }));
        let end = self.text.len();
        if window.end < text.len() {
            self.text.push_str(self.ellipsis);
        }
        self.text.push('\n');
        start..end
    }

    /// The index of the row with this offset.
    fn row_at(&self, offset: usize) -> usize {
        self.rows.partition_point(|row| row.start <= offset).saturating_sub(1)
    }
}

impl Mark {
    fn new(sources: &Sources, place: Place) -> Self {
        let source = sources.get(place.file);
        let starts = source.line_starts();
        let row = |offset: usize| starts.partition_point(|&start| start as usize <= offset).max(1);
        let start = source.text().floor_char_boundary(place.span.start as usize);
        let end = source.text().floor_char_boundary(place.span.end as usize).max(start);
        let first = row(start);
        // A place that ends with a line end does not include the next row.
        let mut last = row(end.saturating_sub(1).max(start));
        if last - first >= MAX_ROWS {
            last = first;
        }
        Self { file: place.file, bytes: start..end, rows: (first, last), shown: 0..0 }
    }
}

/// The ranges of rows to show for the marks of one file, in order.
fn blocks_of<'a>(source: &Source, marks: impl Iterator<Item = &'a Mark>) -> Vec<(usize, usize)> {
    let total = source.line_starts().len();
    // The empty row after the last line end is shown if a mark is on it, but not as context.
    let last_row = if source.row_text(total).is_empty() { total.saturating_sub(1) } else { total };
    let around = |mark: &Mark| {
        let (first, last) = mark.rows;
        // Rows of other cells of a notebook are not context.
        let mut above = first.saturating_sub(CONTEXT).max(1)..first;
        let above = above.find(|&row| same_cell(source, row, first));
        let mut below = (last..=(last + CONTEXT).min(last_row)).rev();
        let below = below.find(|&row| same_cell(source, row, last));
        (above.unwrap_or(first), below.unwrap_or(last).max(last))
    };
    let mut wanted: Vec<_> = marks.map(around).collect();
    wanted.sort_unstable();
    let mut blocks: Vec<(usize, usize)> = Vec::new();
    for (first, last) in wanted {
        match blocks.last_mut() {
            Some(block) if first <= block.1 + 1 && same_cell(source, block.1, first) => {
                block.1 = block.1.max(last)
            }
            _ => blocks.push((first, last)),
        }
    }
    blocks
}

/// Are two rows in one cell, if the file is a notebook?
fn same_cell(source: &Source, a: usize, b: usize) -> bool {
    let cell = |row: usize| source.line_starts().get(row - 1).and_then(|&start| source.cell(start));
    cell(a) == cell(b)
}

/// The part of a row to show, such that the byte `wanted` is in it.
fn window(text: &str, wanted: usize) -> Range<usize> {
    // A character has at most four bytes, so short rows need not be counted.
    if text.len() <= MAX_COLUMNS
        || (text.len() <= 4 * MAX_COLUMNS && count(text, 0..text.len()) <= MAX_COLUMNS)
    {
        return 0..text.len();
    }
    let before = text.get(..wanted).unwrap_or_default();
    let start = match before.char_indices().rev().nth(MAX_COLUMNS - LEAD) {
        // If the byte is far to the right, the window begins a little before it.
        Some(_) => before.char_indices().rev().nth(LEAD - 1).map_or(wanted, |(i, _)| i),
        None => 0,
    };
    let rest = text.get(start..).unwrap_or_default();
    let end = rest.char_indices().nth(MAX_COLUMNS).map_or(text.len(), |(i, _)| start + i);
    start..end
}

fn count(text: &str, range: Range<usize>) -> usize {
    text.get(range).map_or(0, |s| s.chars().count())
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let (first, last) =
            (self.row_at(span.offset()), self.row_at(span.offset() + span.len().saturating_sub(1)));
        let (Some(top), Some(bottom)) = (self.rows.get(first), self.rows.get(last)) else {
            return Err(MietteError::OutOfBounds);
        };
        // miette requests the text between two labels to find out whether they fit into one snippet.
        if top.block != bottom.block || span.offset() + span.len() > self.text.len() {
            return Err(MietteError::OutOfBounds);
        }
        let in_block = |i: &usize| self.rows.get(*i).is_some_and(|row| row.block == top.block);
        let low = (first.saturating_sub(before)..=first).find(in_block).unwrap_or(first);
        let high = (last..=last + after).rev().find(in_block).unwrap_or(last);
        let start = self.rows.get(low).map_or(0, |row| row.start);
        let end = self.rows.get(high + 1).map_or(self.text.len(), |row| row.start);
        // Only the call without context, which is for the heading of the snippet, uses the column.
        let column = if before == 0 {
            let shown = count(&self.text, top.start..span.offset());
            top.hidden.saturating_add_unsigned(shown).unsigned_abs()
        } else {
            0
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.names.get(top.name).cloned().unwrap_or_default(),
            self.text.get(start..end).unwrap_or_default().as_bytes(),
            (start, end - start).into(),
            self.rows.get(low).map_or(0, |row| row.number - 1),
            column,
            high - low + 1,
        )))
    }
}
