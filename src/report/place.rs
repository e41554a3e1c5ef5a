//! Places in the form of the machine formats: paths, rows and columns.

use std::path::{Component, Path};

use serde::Serialize;

use crate::source::{Position, Source, Sources};
use crate::span::Place;

/// A position in JSON.
#[derive(Clone, Copy, Serialize)]
pub(super) struct JsonPosition {
    row: usize,
    column: usize,
}

impl From<Position> for JsonPosition {
    fn from(position: Position) -> Self {
        Self { row: position.row, column: position.column }
    }
}

/// The position of the first character, and the position after the last, within the cell of a notebook: for people.
pub(super) fn extent(sources: &Sources, place: Place) -> (Position, Position) {
    sources.get(place.file).extent(place.span)
}

/// The same within the file on the disk, such as a notebook's JSON: for programs that know nothing about cells.
pub(super) fn file_extent(sources: &Sources, place: Place) -> (Position, Position) {
    sources.get(place.file).file_extent(place.span)
}

/// The cell of a notebook that a place begins in.
pub(super) fn cell(sources: &Sources, place: Place) -> Option<usize> {
    sources.get(place.file).cell(place.span.start)
}

/// A file's name, with the cell of the place if it is a notebook: `a.ipynb:cell 3`.
pub(super) fn with_cell(name: &str, sources: &Sources, place: Place) -> String {
    match cell(sources, place) {
        Some(number) => format!("{name}:cell {number}"),
        None => name.to_owned(),
    }
}

/// The file's path relative to `root`, with `/`; `None` if it is outside.
pub(super) fn below(root: &Path, path: &Path) -> Option<String> {
    let rest = path.strip_prefix(root).ok()?;
    let parts: Vec<_> = rest
        .components()
        .map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy()),
            _ => None,
        })
        .collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// The file's path relative to `root`; outside, the name that the run shows.
pub(super) fn relative_name(root: &Path, source: &Source) -> String {
    below(root, &source.path).unwrap_or_else(|| source.name.clone())
}
