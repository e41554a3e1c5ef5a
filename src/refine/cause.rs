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

/// The findings with those of one rule and one cause as one finding at the cause. `is_checked` tells whether this run checks a
/// file for a rule. A cause elsewhere stays at the calls that lead to it, and so does one that a single call leads to, or to which
/// a caller hands what goes wrong.
pub(super) fn told_at_cause(
    findings: Vec<Finding>,
    is_checked: &dyn Fn(FileId, Code) -> bool,
) -> Vec<Finding> {
    let cause = |f: &Finding| {
        let &cause = f.roots.first()?;
        let handed = f.stray_from.is_some_and(|from| from.file != cause.file);
        (!handed && is_checked(cause.file, f.code)).then_some((f.code, cause))
    };
    let mut calls: FxHashMap<(Code, Place), Vec<Label>> = FxHashMap::default();
    for finding in &findings {
        if let Some(key) = cause(finding) {
            calls.entry(key).or_default().push(finding.primary.clone());
        }
    }
    calls.retain(|_, calls| calls.len() > 1);
    let mut told: Vec<Finding> = Vec::with_capacity(findings.len());
    let mut known: FxHashMap<(Code, Place), usize> = FxHashMap::default();
    for finding in findings {
        let Some(key) = cause(&finding).filter(|key| calls.contains_key(key)) else {
            told.push(finding);
            continue;
        };
        match known.get(&key).and_then(|&at| told.get_mut(at)) {
            Some(first) => merge_worlds(first, &finding),
            None => {
                known.insert(key, told.len());
                told.push(at_cause(finding, key.1, calls.remove(&key).unwrap_or_default()));
                calls.insert(key, Vec::new());
            }
        }
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
    let text = &mut finding.primary.text;
    if !text.is_empty() {
        text.push_str("; ");
    }
    text.push_str(&format!("reached from {} places", calls.len()));
    calls.truncate(MAX_CALLS);
    finding.related.extend(calls);
    finding
}
