//! One cause, one finding: if calls in several places lead to one cause, they become one finding at the place of the fix.
//!
//! A finding belongs to the file whose entry point was interpreted, so that a run over one file finds what a run over all files finds. If
//! this run also checks the file of the cause, and several calls lead there, the finding moves to that file. The calls become places of it.

use rustc_hash::FxHashMap;

use crate::finding::{Code, Finding, Label};
use crate::rules::merge_worlds;
use crate::span::{FileId, Place};

/// How many calls that lead to a cause a finding shows at most. The others are only counted.
const MAX_CALLS: usize = 3;

/// A rule, and the place of the cause.
type Key = (Code, Place);

/// Merges the findings of one rule and one cause. `is_checked`: whether this run checks a file for a rule. If several calls lead to a cause
/// in a file that this run checks, the finding is at the cause. If this run does not check that file, the finding is at the first call, and
/// the other calls are places of it. A finding whose cause is in the caller itself stays as it is.
pub(super) fn told_at_cause(
    findings: Vec<Finding>,
    is_checked: &dyn Fn(FileId, Code) -> bool,
) -> Vec<Finding> {
    let key = |f: &Finding| Some((f.code, f.cause())).filter(|&(_, cause)| cause != f.primary.place);
    let mut calls: FxHashMap<Key, Vec<Label>> = FxHashMap::default();
    for finding in &findings {
        if let Some(key) = key(finding) {
            calls.entry(key).or_default().push(finding.primary.clone());
        }
    }
    let (own, reached): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|finding| key(finding).is_none());
    let mut told: Vec<Finding> = Vec::with_capacity(own.len() + reached.len());
    let mut known: FxHashMap<Key, usize> = FxHashMap::default();
    for finding in own {
        known.insert((finding.code, finding.primary.place), told.len());
        told.push(finding);
    }
    for finding in reached {
        let key = (finding.code, finding.cause());
        if let Some(first) = known.get(&key).and_then(|&at| told.get_mut(at)) {
            first.as_sure_as(&finding);
            // The file of the cause has this finding too, perhaps with less confidence.
            if finding.primary.place != first.primary.place && first.cause() == first.primary.place {
                first.told.for_files.push(finding.primary.place.file);
            }
            merge_worlds(first, &finding);
            continue;
        }
        known.insert(key, told.len());
        let calls = calls.remove(&key).unwrap_or_default();
        told.push(match calls.len() {
            0 | 1 => finding,
            _ if is_checked(key.1.file, key.0) => at_cause(finding, key.1, calls),
            _ => at_first_call(finding, calls),
        });
    }
    told
}

/// The finding, moved to its cause. Labels in other files go. The first calls that lead to the cause become labels, and all are counted.
fn at_cause(mut finding: Finding, cause: Place, mut calls: Vec<Label>) -> Finding {
    finding.primary = match finding.related.iter().position(|label| label.place == cause) {
        Some(at) => finding.related.remove(at),
        None => Label::new(cause, ""),
    };
    finding.related.retain(|label| label.place.file == cause.file);
    finding.roots.clear();
    finding.told.for_files = files(&calls);
    let text = &mut finding.primary.text;
    if !text.is_empty() {
        text.push_str("; ");
    }
    text.push_str(&format!("{} calls lead to it", calls.len()));
    calls.truncate(MAX_CALLS);
    finding.related.extend(calls);
    finding
}

/// The finding at the first of these calls. The next calls become labels, and all are counted.
fn at_first_call(mut finding: Finding, mut calls: Vec<Label>) -> Finding {
    finding.told.for_files = files(&calls);
    let text = &mut finding.primary.text;
    if !text.is_empty() {
        text.push_str("; ");
    }
    text.push_str(&format!("the first of {} calls that lead to it", calls.len()));
    calls.truncate(MAX_CALLS);
    finding.related.extend(calls.into_iter().skip(1));
    finding
}

/// The files of these calls.
fn files(calls: &[Label]) -> Vec<FileId> {
    let mut files: Vec<FileId> = calls.iter().map(|call| call.place.file).collect();
    files.sort_unstable();
    files.dedup();
    files
}
