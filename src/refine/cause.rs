//! One cause, one finding: what calls in several files lead to is told once, where one would mend it.
//!
//! A finding belongs to the file whose entry point was interpreted, so that a run over one file finds what a run over
//! everything does. If its cause is in another file that this run checks as well, that file gets the finding, and the
//! calls become places of it.

use rustc_hash::FxHashMap;

use crate::finding::{Code, Finding, Label};
use crate::rules::merge_worlds;
use crate::span::{FileId, Place};

/// Calls that lead to a cause: at most this many are shown, the others are counted.
const MAX_CALLS: usize = 3;

/// The findings with those of one rule and one cause as one finding at the cause. `is_checked` tells whether this run checks a
/// file for a rule: a cause elsewhere stays at the calls that lead to it.
pub(super) fn told_at_cause(
    findings: Vec<Finding>,
    is_checked: &dyn Fn(FileId, Code) -> bool,
) -> Vec<Finding> {
    let mut told: Vec<Finding> = Vec::with_capacity(findings.len());
    let mut reached: FxHashMap<(Code, Place), (usize, Vec<Label>)> = FxHashMap::default();
    for finding in findings {
        let Some(cause) = finding.roots.first().copied().filter(|p| is_checked(p.file, finding.code)) else {
            told.push(finding);
            continue;
        };
        let call = finding.primary.clone();
        if let Some((at, calls)) = reached.get_mut(&(finding.code, cause)) {
            calls.push(call);
            if let Some(known) = told.get_mut(*at) {
                merge_worlds(known, &finding);
            }
        } else {
            reached.insert((finding.code, cause), (told.len(), vec![call]));
            told.push(at_cause(finding, cause));
        }
    }
    for (at, calls) in reached.into_values() {
        if let Some(finding) = told.get_mut(at) {
            add_calls(finding, calls);
        }
    }
    told
}

/// The same finding with its cause for the primary place. Of the way there, what is in the cause's file stays.
fn at_cause(mut finding: Finding, cause: Place) -> Finding {
    finding.primary = match finding.related.iter().position(|label| label.place == cause) {
        Some(at) => finding.related.remove(at),
        None => Label::new(cause, ""),
    };
    finding.related.retain(|label| label.place.file == cause.file);
    finding.roots.clear();
    finding
}

/// Adds the calls that lead to the cause: the first ones as places, all of them as a number.
fn add_calls(finding: &mut Finding, mut calls: Vec<Label>) {
    if calls.len() > 1 {
        let text = &mut finding.primary.text;
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(&format!("reached from {} places", calls.len()));
    }
    calls.truncate(MAX_CALLS);
    finding.related.extend(calls);
}
