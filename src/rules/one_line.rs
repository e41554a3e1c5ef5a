//! One finding per line: if several rules report one place, the finding with the highest confidence stays, then the one with the
//! highest severity (costs apart), then the one with the lowest code.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::registry::page;
use crate::finding::{Code, Confidence, Finding, Severity};
use crate::source::Sources;
use crate::span::{FileId, Place};

/// Removes each finding that another rule replaces on the same line. `is_on` says whether a rule is on in a file: a finding that is not
/// reported replaces nothing.
///
/// Only findings of one file are compared, so that a run over that file alone gives the same findings.
pub fn one_on_a_line(
    mut findings: Vec<Finding>,
    sources: &Sources,
    is_on: &dyn Fn(FileId, Code) -> bool,
) -> Vec<Finding> {
    let row = |place: Place| (place.file, sources.get(place.file).position(place.span.start).row);
    let told = |f: &Finding| !f.is_silenced() && !f.told.elsewhere && is_on(f.primary.place.file, f.code);
    let mut lines: FxHashMap<(FileId, usize), Vec<usize>> = FxHashMap::default();
    for (n, f) in findings.iter().enumerate().filter(|(_, f)| told(f)) {
        lines.entry(row(f.primary.place)).or_default().push(n);
    }
    let mut less = vec![false; findings.len()];
    for on_line in lines.values_mut().filter(|all| all.len() > 1) {
        on_line.sort_by_key(|&n| rank(&findings[n]));
        for (at, &n) in on_line.iter().enumerate() {
            let before = on_line[..at].iter().filter(|&&m| !less[m]);
            let said = before.into_iter().any(|&m| is_one_cause(&findings[m], &findings[n]));
            less[n] = said;
        }
    }
    let mut less = less.into_iter();
    findings.retain_mut(|f| !less.next().unwrap_or_default() || f.leave());
    findings
}

/// The finding with the lowest rank stays. The order: findings that are not costs, then the higher confidence, then the higher severity,
/// then the lower code. Findings of confidence `low` come last. The severity does not order costs: a tensor that is created in the right
/// place (SD601) is not copied, so it does not matter how (SD602).
fn rank(f: &Finding) -> (bool, bool, Reverse<Confidence>, Reverse<Option<Severity>>, Code) {
    let cost = is_cost(f.code);
    let severity = (!cost).then(|| page(f.code).map_or(f.severity, |page| page.severity));
    (f.confidence == Confidence::Low, cost, Reverse(f.confidence), Reverse(severity), f.code)
}

/// Do two rules report one place on the same machines? A cost is always replaced if another rule reports the place.
fn is_one_cause(a: &Finding, b: &Finding) -> bool {
    let (p, q) = (a.cause(), b.cause());
    a.code != b.code
        && p.file == q.file
        && (p.span.contains(q.span) || q.span.contains(p.span))
        && (a.world == b.world || is_cost(b.code))
}

/// Is it a rule about costs (group SD6)?
fn is_cost(code: Code) -> bool {
    matches!(code.0, 600..=699)
}
