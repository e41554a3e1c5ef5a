//! How a baseline identifies a finding.

use std::path::Path;

use crate::finding::{Code, Finding};
use crate::report::fingerprint::{Fingerprint, Prints};
use crate::source::Sources;
use crate::span::{FileId, Place};

use super::Told;

/// The identity of a finding. It does not depend on the row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Identity {
    /// The path of the file of the cause, relative to the baseline's folder, with `/`.
    pub path: String,
    /// The rule.
    pub rule: Code,
    /// The hash of rule, path, statement and marked code.
    pub fingerprint: Fingerprint,
}

/// How many characters of the marked expression a baseline shows.
const SHOWN: usize = 60;

/// The places of each finding, as a baseline in `folder` (absolute) identifies them: first the place of the cause, then
/// [`Finding::repeated`].
pub fn identities(sources: &Sources, folder: &Path, findings: &[Finding]) -> Vec<Vec<Told>> {
    let mut prints = Prints::new(sources, |source| path_from(folder, &source.path));
    let name = |file: FileId| path_from(folder, &sources.get(file).path);
    let mut told = |finding: &Finding, place: Place| {
        let checked =
            std::iter::once(finding.primary.place.file).chain(finding.told.for_files.iter().copied());
        let mut reached_from: Vec<String> = checked.filter(|&file| file != place.file).map(name).collect();
        reached_from.sort_unstable();
        reached_from.dedup();
        let identity = Identity {
            path: name(place.file),
            rule: finding.code,
            fingerprint: prints.alike(finding.code, place),
        };
        Told { identity, marked: shown(place.span.slice(sources.get(place.file).text())), reached_from }
    };
    let mut all = |finding| {
        let repeated = Finding::repeated(finding).map(|label| label.place);
        std::iter::once(finding.cause()).chain(repeated).map(|place| told(finding, place)).collect()
    };
    findings.iter().map(&mut all).collect()
}

/// The beginning of the text, in one line.
fn shown(text: &str) -> String {
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(SHOWN) {
        words.truncate(end);
        words.push('…');
    }
    words
}

/// The path relative to the folder, with `/`. It is the same on every machine with the project. Both arguments are absolute.
fn path_from(folder: &Path, path: &Path) -> String {
    let shared = folder.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| "..".into());
    let down = path.components().skip(shared).map(|part| part.as_os_str().to_string_lossy());
    up.chain(down).collect::<Vec<std::borrow::Cow<'_, str>>>().join("/")
}
