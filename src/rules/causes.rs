//! One cause, one finding: merges the findings of a file, and of a file and its imports.

use rustc_hash::FxHashMap;

use super::check::Context;
use super::shared::events::{ALSO_RAISES, MAX_RELATED};
use super::shared::functions::same_function;
use super::shared::meeting_words::RAISES_HERE;
use crate::assumption;
use crate::finding::{Code, Confidence, Finding, Label, Role};
use crate::span::{FileId, Place};
use crate::words::Words;

static MOVES: Words = Words::of("calls that move, as text");

/// Findings, by the file that reports them.
pub type Found = FxHashMap<FileId, Vec<Finding>>;

/// Merges `other` into a finding with the same cause.
pub(super) fn merge(into: &mut Finding, other: Finding) {
    into.as_sure_as(&other);
    merge_worlds(into, &other);
    // If one of them has its cause in its own file, the merged finding has too.
    if other.roots.is_empty() || into.roots.is_empty() {
        into.roots.clear();
    } else {
        into.roots.extend(other.roots);
    }
    assumption::merge(&mut into.assumptions, other.assumptions);
    into.shows_with_accelerator &= other.shows_with_accelerator;
    into.behind_cuda &= other.behind_cuda;
    into.told.silenced = into.told.silenced.max(other.told.silenced);
    into.where_cuda_is = into.where_cuda_is.take().or(other.where_cuda_is);
    for mut label in std::iter::once(other.primary).chain(other.related) {
        // The first operation raises an error, so the program does not reach this one.
        if label.text.starts_with(RAISES_HERE) {
            ALSO_RAISES.clone_into(&mut label.text);
        }
        if into.places().any(|p| p == label.place) {
            continue;
        }
        if into.related.len() < MAX_RELATED {
            into.related.push(label);
        } else {
            into.unshown.push(label);
        }
    }
    into.unshown.extend(other.unshown);
}

/// Adds the machines on which another finding of the same cause occurs.
pub(crate) fn merge_worlds(into: &mut Finding, other: &Finding) {
    if into.condition.is_some() && other.condition.is_none() {
        into.condition = None;
        into.world = other.world;
    }
    into.also.extend(other.also.iter().cloned());
    match other.world.premise() {
        Some(world) => {
            into.also.push(std::iter::once(world).chain(other.premises.iter().cloned()).collect());
        }
        // The finding occurs on either path, so only the premises of both paths must hold.
        None => into.premises.retain(|premise| other.premises.contains(premise)),
    }
}

/// One finding for each cause: a finding that another one explains becomes a place of it, or is dropped.
pub(super) fn one_cause(findings: Vec<Finding>, cx: &Context<'_>) -> Vec<Finding> {
    let findings = with_consequences(findings, cx);
    let in_modules: Vec<Place> =
        findings.iter().filter(|f| f.code == Code(305)).map(|f| f.primary.place).collect();
    // SD305 says more about the same line than SD101.
    let again = |f: &Finding| {
        let at = f.primary.place;
        f.code == Code(101)
            && in_modules
                .iter()
                .any(|p| p.file == at.file && (p.span.contains(at.span) || at.span.contains(p.span)))
    };
    let discarded: Vec<Place> =
        findings.iter().filter(|f| f.code == Code(203)).map(|f| f.primary.place).collect();
    // The fix of a discarded copy is to keep it. To create a tensor on the device instead (SD601) does not help if nothing uses the copy.
    let dropped = |f: &Finding| f.code == Code(601) && f.places().any(|p| discarded.contains(&p));
    let findings: Vec<Finding> = findings.into_iter().filter(|f| !again(f) && !dropped(f)).collect();
    told_elsewhere(findings)
}

/// A discarded transfer also causes the later mismatch in the same function, so the mismatch becomes a place of that cause.
fn with_consequences(findings: Vec<Finding>, cx: &Context<'_>) -> Vec<Finding> {
    let (mut causes, mut others): (Vec<_>, Vec<_>) = findings.into_iter().partition(|f| f.code == Code(203));
    others.retain(|f| {
        // A suppressed finding is not merged in either direction.
        let mut told = causes.iter_mut().filter(|c| !c.is_silenced() && !f.is_silenced());
        let cause = told.find(|c| causes_mismatch(c, f, cx));
        if let Some(cause) = cause
            && cause.related.len() < MAX_RELATED
            && f.primary.place.file == cause.primary.place.file
        {
            let text = f.message.clone();
            cause.related.push(Label { role: Role::Consequence, ..Label::new(f.primary.place, text) });
            return false;
        }
        true
    });
    causes.extend(others);
    causes
}

/// Is the mismatch in the same function, after the discarded transfer, and does it name the value that was to be moved?
fn causes_mismatch(discarded: &Finding, f: &Finding, cx: &Context<'_>) -> bool {
    let d = discarded.primary.place;
    let text = cx.sources.text(d);
    let method = MOVES.all().iter().filter_map(|m| text.find(m)).min();
    let Some(moved) = method.map(|at| &text[..at]) else { return false };
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let named = |text: &str| {
        text.match_indices(moved).any(|(at, _)| {
            !text[..at].ends_with(|c| word(c) || c == '.') && !text[at + moved.len()..].starts_with(word)
        })
    };
    matches!(f.code, Code(201 | 202 | 204 | 205))
        && f.places().any(|p| p.file == d.file && p.span.start >= d.span.start && same_function(p, d, cx))
        && f.places().any(|p| named(cx.sources.text(p)))
}

/// Drops a meeting of two tensors if SD204 or SD301 reports where the stray tensor was created. If the meeting has a higher confidence, the
/// remaining finding takes it over.
fn told_elsewhere(findings: Vec<Finding>) -> Vec<Finding> {
    let is_made = |f: &Finding| matches!(f.code, Code(204 | 301)) && !f.is_silenced();
    let made: Vec<Place> = findings.iter().filter(|f| is_made(f)).map(|f| f.primary.place).collect();
    let said =
        |f: &Finding| matches!(f.code, Code(201 | 202)) && f.stray_from.is_some_and(|p| made.contains(&p));
    let (mut met, mut told): (Vec<Finding>, Vec<Finding>) = findings.into_iter().partition(said);
    for f in met.iter().filter(|f| !f.is_silenced()) {
        let cause = told.iter_mut().find(|t| is_made(t) && Some(t.primary.place) == f.stray_from);
        if let Some(cause) = cause.filter(|cause| f.confidence > cause.confidence) {
            support(cause, f);
        }
    }
    met.retain_mut(Finding::leave);
    told.extend(met);
    told
}

/// Adds the confidence, worlds and calls of another finding that shows the same cause. Keeps only the assumptions of both.
fn support(cause: &mut Finding, surer: &Finding) {
    cause.as_sure_as(surer);
    merge_worlds(cause, surer);
    assumption::merge(&mut cause.assumptions, surer.assumptions.clone());
    for label in surer.related.iter().filter(|l| l.is_call()) {
        if cause.related.len() < MAX_RELATED && !cause.places().any(|p| p == label.place) {
            cause.related.push(label.clone());
        }
    }
}

/// The other files whose findings may have the cause of one of these findings: the file of the cause, and the file where the stray tensor
/// was created.
pub fn refers_to(found: &Found) -> Vec<FileId> {
    let mut files: Vec<FileId> = found
        .iter()
        .flat_map(|(&file, findings)| findings.iter().flat_map(elsewhere).filter(move |&f| f != file))
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// The files that may report the cause.
fn elsewhere(finding: &Finding) -> impl Iterator<Item = FileId> {
    finding.roots.iter().copied().chain(finding.stray_from).map(|place| place.file)
}

/// Drops findings whose cause another file reports itself, in `found` or in `others`. The result does not depend on what is linted
/// together, so linting a part of a project reports the same as linting all of it.
pub fn told_once(found: Found, others: &Found) -> Vec<Finding> {
    let mut own: FxHashMap<(Code, Place), Confidence> = FxHashMap::default();
    let said = |f: &&Finding| f.roots.is_empty() && !f.is_silenced() && !f.told.elsewhere;
    for finding in found.values().chain(others.values()).flatten().filter(said) {
        let mut tell = |place: Place| {
            let known = own.entry((finding.code, place)).or_insert(Confidence::Low);
            *known = finding.confidence.max(*known);
        };
        tell(finding.primary.place);
        let home = finding.primary.place.file;
        let also =
            finding.labels().filter(|l| matches!(l.role, Role::Repeated { .. }) && l.place.file == home);
        also.for_each(|l| tell(l.place));
    }
    let known = |code: Code, place: Place, least: Confidence| {
        own.get(&(code, place)).is_some_and(|&own| own >= least)
    };
    // The finding at a caller may have a higher confidence than the finding of the cause's own file. Then it is kept, and `refine/cause.rs`
    // merges the two.
    let told = |f: &Finding| {
        !f.roots.is_empty() && f.roots.iter().all(|&place| known(f.code, place, f.confidence))
            || matches!(f.code, Code(201 | 202))
                && f.stray_from.is_some_and(|p| {
                    [204, 301].iter().any(|&c| known(Code(c), p, f.confidence.min(Confidence::Likely)))
                })
    };
    let (mut said, mut own): (Vec<Finding>, Vec<Finding>) = found.into_values().flatten().partition(told);
    for f in said.iter().filter(|f| !f.is_silenced() && matches!(f.code, Code(201 | 202))) {
        let is_cause = |t: &&mut Finding| {
            matches!(t.code, Code(204 | 301)) && !t.is_silenced() && Some(t.primary.place) == f.stray_from
        };
        if let Some(cause) = own.iter_mut().find(is_cause).filter(|cause| f.confidence > cause.confidence) {
            support(cause, f);
            cause.told.for_files.push(f.primary.place.file);
        }
    }
    said.retain_mut(Finding::leave);
    own.extend(said);
    own
}
