//! The identity of a finding across edits, for baselines and for services that track alerts.
//!
//! A fingerprint is a hash of the rule, the file's path, the tokens of the statement and the marked tokens, without what formatters change
//! ([`crate::lower::tokens`]). It does not contain line numbers, so edits elsewhere do not change it. It contains the index of the place
//! among equal places. That index is counted in the file's text, not among the findings, so that selecting, suppressing or fixing one
//! finding does not change the fingerprint of another.

use std::fmt;
use std::hash::Hasher;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
// The algorithm is specified bit by bit and frozen since 2021; no hash of the standard library is. The crate is one small file without
// dependencies, while a cryptographic hash would need a build script.
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::finding::{Code, Finding};
use crate::lower::Kind;
use crate::lower::tokens::{Tokens, tokens};
use crate::source::{Source, Sources};
use crate::span::{FileId, Place, Span};
use crate::work::spend;

use super::place::relative_name;

/// A fingerprint. [`fmt::Display`] shows 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Fingerprint(u64);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Parses the text that [`fmt::Display`] shows.
impl FromStr for Fingerprint {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_hex = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        is_hex.then(|| u64::from_str_radix(text, 16).ok().map(Self)).flatten().ok_or(())
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The fingerprints of the findings, in their order. Paths are relative to the repository that contains the file, and to `root` for a file
/// that is in none, so the working directory does not matter. A fingerprint belongs to the cause ([`Finding::cause`]), so that a run over a caller and a run over the whole
/// project give the same one.
pub fn fingerprints(sources: &Sources, root: &Path, findings: &[Finding]) -> Vec<Fingerprint> {
    let name = |source: &Source| relative_name(repository(&source.path).unwrap_or(root), source);
    let mut prints = Prints::new(sources, name);
    findings.iter().map(|finding| prints.of(finding)).collect()
}

/// The root of the repository that contains the file.
fn repository(file: &Path) -> Option<&Path> {
    file.ancestors().skip(1).find(|folder| folder.join(".git").exists())
}

/// Makes fingerprints.
pub struct Prints<'a, N> {
    sources: &'a Sources,
    /// Maps a file to the path in its fingerprints.
    name: N,
    files: FxHashMap<FileId, File>,
}

impl<'a, N: Fn(&Source) -> String> Prints<'a, N> {
    /// For findings in these files. `name` maps a file to the path in its fingerprints.
    pub fn new(sources: &'a Sources, name: N) -> Self {
        Self { sources, name, files: FxHashMap::default() }
    }

    /// The fingerprint of a finding.
    pub fn of(&mut self, finding: &Finding) -> Fingerprint {
        let place = finding.cause();
        self.file(place.file).fingerprint(finding.code, place.span)
    }

    /// A fingerprint that is the same for all places of a file with equal tokens in equal statements.
    pub fn alike(&mut self, rule: Code, place: Place) -> Fingerprint {
        Fingerprint(self.file(place.file).marked(rule, place.span).hash.finish())
    }

    fn file(&mut self, file: FileId) -> &File {
        self.files.entry(file).or_insert_with(|| {
            let source = self.sources.get(file);
            File::new(source, (self.name)(source))
        })
    }
}

/// What the fingerprints of one file share.
struct File {
    name: String,
    tokens: Tokens,
    /// For each statement, the hash of its tokens, and the number of equal statements before it.
    statements: Vec<(u64, u32)>,
}

impl File {
    fn new(source: &Source, name: String) -> Self {
        let tokens = tokens(source.text(), Kind::of(source));
        spend(source.text().len());
        let mut seen: FxHashMap<u64, u32> = FxHashMap::default();
        let numbered = |statement: &Range<usize>| {
            let hash = xxh3_64(normal(&tokens, statement.clone()).as_bytes());
            let count = seen.entry(hash).or_default();
            *count += 1;
            (hash, *count - 1)
        };
        let statements = tokens.statements.iter().map(numbered).collect();
        Self { name, tokens, statements }
    }

    fn fingerprint(&self, rule: Code, span: Span) -> Fingerprint {
        let Marked { statement, first, text, mut hash } = self.marked(rule, span);
        let (_, earlier) = self.statements.get(statement).copied().unwrap_or_default();
        hash.write(&earlier.to_le_bytes());
        hash.write(&self.earlier_in_statement(statement, first, text).to_le_bytes());
        Fingerprint(hash.finish())
    }

    /// The marked tokens, and the hash without the index among equal places.
    fn marked(&self, rule: Code, span: Span) -> Marked<'_> {
        let all = &self.tokens.tokens;
        let first = all.partition_point(|token| token.span.end <= span.start);
        let last = all.partition_point(|token| token.span.start < span.end).max(first);
        let text = normal(&self.tokens, first..last);
        let statement = self.tokens.statements.partition_point(|statement| statement.end <= first);
        let mut hash = Xxh3::new();
        hash.write_u16(rule.0.to_le());
        hash.write(self.name.as_bytes());
        hash.write_u8(0);
        let (tokens, _) = self.statements.get(statement).copied().unwrap_or_default();
        hash.write(&tokens.to_le_bytes());
        hash.write(text.as_bytes());
        hash.write_u8(0);
        Marked { statement, first, text, hash }
    }

    /// The number of equal pieces before this one in its statement. In a very long statement, only the nearest tokens are searched.
    fn earlier_in_statement(&self, statement: usize, first: usize, marked: &str) -> u32 {
        let Some(start) = self.tokens.statements.get(statement).map(|tokens| tokens.start) else { return 0 };
        if marked.is_empty() || first <= start {
            return 0;
        }
        let near = start.max(first.saturating_sub(NEAR));
        spend(first - near);
        let before = normal(&self.tokens, near..first);
        u32::try_from(before.matches(marked).count()).unwrap_or(u32::MAX)
    }
}

/// A marked piece of a file.
struct Marked<'a> {
    /// The index of its statement.
    statement: usize,
    /// The index of its first token.
    first: usize,
    /// Its tokens.
    text: &'a str,
    hash: Xxh3,
}

/// How many tokens before a place are searched for equal pieces.
const NEAR: usize = 1000;

/// The text of some tokens.
fn normal(tokens: &Tokens, range: Range<usize>) -> &str {
    let Some([first, .., last]) = tokens.tokens.get(range.clone()) else {
        let one = tokens.tokens.get(range).and_then(<[_]>::first);
        return one.map_or("", |token| &tokens.normal[token.normal.clone()]);
    };
    &tokens.normal[first.normal.start..last.normal.end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Label;
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

    /// `ruff format` turns each text into the other, except for the import.
    #[test]
    fn formatting_changes_nothing() {
        let before = "x = f('a', (b.cuda()), u'c')\nif x: y = [b.cuda(), 1,]; b.cuda( )\n";
        let after = "import torch\n\nx = f(\n    \"a\",\n    b.cuda(),\n    \"c\",\n)\nif x:\n    y = [\n        b.cuda(),\n        1,\n    ]\n    b.cuda( )\n";
        let (before, after) = (prints("a.py", before, "b.cuda("), prints("a.py", after, "b.cuda("));
        assert_eq!((before.len(), &before), (3, &after));
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
        assert_eq!(prints("a.py", "a.cuda()\n", "a.cuda()"), ["5f3b4b04fbe31eaf"]);
    }
}
