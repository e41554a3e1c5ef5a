//! What comments and settings suppress: which rules, on which lines.
//!
//! This is known before interpretation begins. A suppressed finding must not hide another one. So before code drops a finding because
//! another place reports the cause, it asks here whether that place reports anything.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::finding::{Code, Finding, Label, Role, Silenced};
use crate::span::{FileId, Place, Span};

/// The suppressions of all files.
#[derive(Clone, Default, Debug)]
pub struct Silence(FxHashMap<FileId, InFile>);

impl Silence {
    /// Adds a file: `off` has the rules that settings switch off there, and `comments` has the suppressions of its comments.
    pub fn add(&mut self, file: FileId, off: Vec<Code>, comments: Vec<Silencer>) {
        if !off.is_empty() || !comments.is_empty() {
            self.0.insert(file, InFile::new(off, comments));
        }
    }

    /// Adds what is suppressed in a file to a fingerprint.
    pub fn fingerprint(&self, file: FileId, into: &mut impl Hasher) {
        self.0.get(&file).hash(into);
    }

    /// Is nothing suppressed anywhere?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Do the settings switch off one of these rules in this file, but not in all files?
    pub fn is_off(&self, codes: &[Code], file: FileId) -> bool {
        self.0.get(&file).is_some_and(|known| known.off.iter().any(|code| codes.contains(code)))
    }

    /// Does a comment suppress one of these rules at the place?
    pub fn is_commented(&self, codes: &[Code], place: Place) -> bool {
        self.0.get(&place.file).is_some_and(|known| known.is_commented(codes, place.span))
    }

    /// How much of a finding is suppressed. All of it, if its file switches the rule off, or if a comment is at its place or on the flow
    /// that leads there.
    pub fn of(&self, f: &Finding) -> Silenced {
        if self.is_empty() {
            return Silenced::Nothing;
        }
        let codes = &[f.code];
        let commented = |place: &Place| self.is_commented(codes, *place);
        let flow = f.labels().filter(|label| label.role == Role::Flow).map(|label| &label.place);
        if self.is_off(codes, f.primary.place.file)
            || std::iter::once(&f.primary.place).chain(flow).any(commented)
        {
            return Silenced::Everything;
        }
        let other = |label: &Label| match &label.role {
            Role::Flow => false,
            Role::Repeated { through } => std::iter::once(&label.place).chain(through).any(commented),
            Role::Consequence => commented(&label.place),
        };
        if f.labels().any(other) { Silenced::Places } else { Silenced::Nothing }
    }
}

/// A comment that suppresses rules.
#[derive(Clone, Debug)]
pub struct Silencer {
    /// Its lines, from the beginning of the first to the end of the last; `None`: the whole file.
    pub lines: Option<Span>,
    /// The rules.
    pub codes: Arc<[Code]>,
}

#[derive(Clone, Hash, Debug)]
struct InFile {
    off: Vec<Code>,
    whole: Vec<Code>,
    lines: Ranges,
    codes: Vec<Arc<[Code]>>,
}

impl InFile {
    fn new(off: Vec<Code>, comments: Vec<Silencer>) -> Self {
        let (whole, some): (Vec<_>, Vec<_>) = comments.into_iter().partition(|c| c.lines.is_none());
        let whole = whole.iter().flat_map(|c| c.codes.iter().copied()).collect();
        let lines = Ranges::new(some.iter().filter_map(|c| c.lines));
        Self { off, whole, lines, codes: some.into_iter().map(|c| c.codes).collect() }
    }

    fn is_commented(&self, codes: &[Code], at: Span) -> bool {
        let any = |known: &[Code]| known.iter().any(|code| codes.contains(code));
        any(&self.whole) || self.lines.touching(at).any(|n| self.codes.get(n).is_some_and(|known| any(known)))
    }
}

/// Ranges of lines of a file, indexed so that the ranges that touch a place are found quickly.
#[derive(Clone, Hash, Default, Debug)]
pub struct Ranges {
    /// Sorted by start, each with its index and the furthest end so far.
    sorted: Vec<(Span, usize, u32)>,
}

impl Ranges {
    /// Indexes the ranges, which are numbered in this order.
    pub fn new(ranges: impl Iterator<Item = Span>) -> Self {
        let mut sorted: Vec<_> = ranges.enumerate().map(|(n, span)| (span, n, span.end)).collect();
        sorted.sort_by_key(|&(span, n, _)| (span.start, n));
        let mut furthest = 0;
        for (_, _, end) in &mut sorted {
            furthest = furthest.max(*end);
            *end = furthest;
        }
        Self { sorted }
    }

    /// The indices of the ranges that the place touches. A place that ends with a line end does not touch the next line; an empty place
    /// touches its line.
    pub fn touching(&self, at: Span) -> impl Iterator<Item = usize> + '_ {
        let end = at.end.max(at.start.saturating_add(1));
        let later = self.sorted.partition_point(|(span, ..)| span.start < end);
        let near = self.sorted[..later].iter().rev().take_while(move |(_, _, furthest)| *furthest > at.start);
        near.filter(move |(span, ..)| span.end > at.start).map(|&(_, n, _)| n)
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;
    use crate::span::Span;

    #[test]
    fn places_touch_the_ranges_that_they_share_a_byte_with() {
        let spans = [(0, 10), (10, 20), (0, 30), (30, 40), (5, 6)].map(|(a, b)| Span::new(a, b));
        let ranges = Ranges::new(spans.into_iter());
        let touching = |from, to| {
            let mut found: Vec<usize> = ranges.touching(Span::new(from, to)).collect();
            found.sort_unstable();
            found
        };
        assert_eq!(touching(3, 10), [0, 2, 4]);
        assert_eq!(touching(10, 11), [1, 2]);
        assert_eq!(touching(10, 10), [1, 2]);
        assert_eq!(touching(29, 31), [2, 3]);
        assert_eq!(touching(40, 50), [0; 0]);
    }
}
