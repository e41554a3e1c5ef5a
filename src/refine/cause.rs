//! One cause, one finding: what calls in several places lead to is told once, where one would mend it.
//!
//! A finding belongs to the file whose entry point was interpreted, so that a run over one file finds what a run over
//! everything does. If its cause is in another file that this run checks as well, and several calls lead there, that file gets
//! the finding, and the calls become places of it.

use rustc_hash::FxHashMap;

use crate::finding::{Code, Finding, Label};
use crate::rules::merge_worlds;
use crate::span::{FileId, Place};

/// Calls that lead to a cause: at most this many are shown, the others are counted.
const MAX_CALLS: usize = 3;

/// A rule and the place of what it is about.
type Key = (Code, Place);

/// The findings with those of one rule and one cause as one finding. `is_checked` tells whether this run checks a file for a rule:
/// if it checks that of the cause, and several calls lead there, the cause is told; else the first call, with the others as places of
/// it. What a caller hands in goes wrong by its doing, and stays its own.
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
            // The file of the cause tells it itself, but not as surely.
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

/// The same finding with its cause for the primary place. Of the way there, what is in the cause's file stays. The first calls
/// that lead there are places of it, all are counted.
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

/// The same finding at the first of these calls, which is its primary place. The next calls are places of it, all are counted.
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
