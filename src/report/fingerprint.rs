//! The identity of a finding across edits, for baselines and for the services that track alerts.
//!
//! A fingerprint is a hash of the rule, the file's path, the text of the lines the finding is on and the
//! text that it marks. Line numbers are not in it, so edits elsewhere leave it alone; which of several equal
//! places it is *is* in it, and is counted in the file's text rather than among the findings, so that
//! selecting, suppressing or fixing one finding does not rename another.

use std::fmt;
use std::hash::Hasher;
use std::path::Path;

use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
// Specified down to the bit and frozen since 2021, as no hash of the standard library is; one small file
// without dependencies, where a cryptographic hash would bring a build script.
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::finding::Finding;
use crate::source::{Source, Sources};
use crate::span::{FileId, Span};

use super::place::relative_name;

/// Shown as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Fingerprint(u64);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The fingerprints of the findings, in their order. Paths count from `root`, which should be the project's
/// folder: another one gives other fingerprints.
pub fn fingerprints(sources: &Sources, root: &Path, findings: &[Finding]) -> Vec<Fingerprint> {
    let mut files: FxHashMap<FileId, File> = FxHashMap::default();
    findings
        .iter()
        .map(|finding| {
            let place = finding.primary.place;
            let file = files.entry(place.file).or_insert_with(|| File::new(sources.get(place.file), root));
            file.fingerprint(finding, place.span)
        })
        .collect()
}

/// What the fingerprints of one file share.
struct File<'a> {
    source: &'a Source,
    name: String,
    /// The hash of each row's normalised text.
    rows: Vec<u64>,
    /// For each row, how many rows above it are equal to it.
    earlier: Vec<u32>,
}

impl<'a> File<'a> {
    fn new(source: &'a Source, root: &Path) -> Self {
        let mut seen: FxHashMap<u64, u32> = FxHashMap::default();
        let mut normal = String::new();
        let mut rows = Vec::with_capacity(source.line_starts().len());
        let mut earlier = Vec::with_capacity(rows.capacity());
        for row in 1..=source.line_starts().len() {
            normalise(source.row_text(row), &mut normal);
            let hash = xxh3_64(normal.as_bytes());
            let count = seen.entry(hash).or_default();
            rows.push(hash);
            earlier.push(*count);
            *count += 1;
        }
        Self { source, name: relative_name(root, source), rows, earlier }
    }

    fn fingerprint(&self, finding: &Finding, span: Span) -> Fingerprint {
        let first = self.row_of(span.start);
        // A span that ends with its line's end is on that line only.
        let last = self.row_of(span.end.saturating_sub(1).max(span.start));
        let marked = span.slice(self.source.text());
        let mut hash = Xxh3::new();
        hash.write_u16(finding.code.0.to_le());
        hash.write(self.name.as_bytes());
        hash.write_u8(0);
        for row in self.rows.get(first..=last).unwrap_or_default() {
            hash.write(&row.to_le_bytes());
        }
        let mut normal = String::new();
        normalise(marked, &mut normal);
        hash.write(normal.as_bytes());
        hash.write_u8(0);
        hash.write(&self.earlier.get(first).copied().unwrap_or(0).to_le_bytes());
        hash.write(&self.earlier_in_row(first, span, marked).to_le_bytes());
        Fingerprint(hash.finish())
    }

    /// Which of the equal texts of its row is it?
    fn earlier_in_row(&self, row: usize, span: Span, marked: &str) -> u32 {
        if marked.is_empty() {
            return 0;
        }
        let start = self.source.line_starts().get(row).copied().unwrap_or(span.start);
        let before = Span::new(start, span.start).slice(self.source.text());
        u32::try_from(before.matches(marked).count()).unwrap_or(u32::MAX)
    }

    /// The row of an offset, from 0.
    fn row_of(&self, offset: u32) -> usize {
        self.source.line_starts().partition_point(|&start| start <= offset).saturating_sub(1)
    }
}

/// Puts the text into `out` with each run of white space as one space and none at the ends.
fn normalise(text: &str, out: &mut String) {
    out.clear();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Code, Label};
    use crate::span::Place;
    use crate::world::World;

    /// The fingerprints of a finding on each occurrence of `needle`.
    fn prints(name: &str, text: &str, needle: &str) -> Vec<String> {
        let mut sources = Sources::default();
        let file = sources.add(Source::new(format!("/p/{name}").into(), name.into(), text.into()));
        let findings: Vec<_> = text
            .match_indices(needle)
            .map(|(at, _)| Span::new(at as u32, (at + needle.len()) as u32))
            .map(|span| {
                let label = Label::new(Place { file, span }, String::new());
                Finding::new(Code(101), World::NoCuda, "m", label)
            })
            .collect();
        fingerprints(&sources, Path::new("/p"), &findings).iter().map(ToString::to_string).collect()
    }

    const BEFORE: &str = "x = f(a.cuda(), a.cuda())\ny = a.cuda()\nx = f(a.cuda(), a.cuda())\n";

    #[test]
    fn equal_places_of_a_file_differ() {
        let mut all = prints("a.py", BEFORE, "a.cuda()");
        assert_eq!(all.len(), 5);
        assert!(all.iter().all(|p| p.len() == 16 && p.chars().all(|c| c.is_ascii_hexdigit())));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn edits_elsewhere_indentation_and_line_ends_change_nothing() {
        let edited = format!("import torch\r\n\r\n{}", BEFORE.replace("x =", "\tx  =").replace('\n', "\r\n"));
        assert_eq!(prints("a.py", &edited, "a.cuda()"), prints("a.py", BEFORE, "a.cuda()"));
    }

    #[test]
    fn the_statement_and_the_path_count() {
        let other = prints("a.py", &BEFORE.replace("y =", "z ="), "a.cuda()");
        let same = prints("a.py", BEFORE, "a.cuda()");
        let differ: Vec<_> = other.iter().zip(&same).map(|(a, b)| a != b).collect();
        assert_eq!(differ, [false, false, true, false, false]);
        assert!(prints("b.py", BEFORE, "a.cuda()").iter().zip(&same).all(|(a, b)| a != b));
    }

    #[test]
    fn baselines_on_disk_depend_on_this_value() {
        assert_eq!(prints("a.py", "a.cuda()\n", "a.cuda()"), ["fed829ff4af757cf"]);
    }
}
