//! The findings of one file: from its events and from its text, one for each cause.

use rustc_hash::FxHashMap;

use super::causes::{merge, one_cause};
use super::check::{Check, Context};
use super::{confidence, order};
use crate::finding::{Code, Finding, Label, REVEAL};
use crate::flow::Outcome;
use crate::flow::event::{Event, Kind};
use crate::span::Place;
use crate::world::World;

/// The findings of one file.
pub fn judge(outcome: &Outcome, cx: &Context<'_>) -> Vec<Finding> {
    let mut checks = super::checks();
    let mut found: Vec<Finding> =
        outcome.events.iter().filter_map(|event| of_event(event, &mut checks, cx)).collect();
    for (code, check) in &mut checks {
        for mut finding in check.on_file(cx) {
            debug_assert_eq!(finding.code, *code, "a rule finds what its code says");
            confidence::of_text(&mut finding, cx);
            found.push(finding);
        }
    }
    one_cause(met_once(found, cx), cx)
}

/// The finding of the first rule that reports the event.
fn of_event(event: &Event, checks: &mut [(Code, Box<dyn Check>)], cx: &Context<'_>) -> Option<Finding> {
    let said = checks.iter_mut().find_map(|(code, check)| {
        let finding = check.on_event(event, cx)?;
        debug_assert_eq!(finding.code, *code, "a rule finds what its code says");
        Some(finding)
    });
    let mut finding = said.or_else(|| reveal(event))?;
    finding.order = order::order(event, &finding, cx);
    confidence::of_event(&mut finding, event, cx);
    Some(in_its_world(finding, event))
}

/// Merges findings of one rule with a common place. A suppressed finding is only merged with suppressed ones.
fn met_once(found: Vec<Finding>, cx: &Context<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut seen: FxHashMap<(Code, Place, bool), usize> = FxHashMap::default();
    for finding in found {
        let mut finding = at_home(finding, cx);
        finding.told.silenced = cx.program.silence.of(&finding);
        let (code, silenced) = (finding.code, finding.is_silenced());
        let places: Vec<Place> =
            std::iter::once(finding.primary.place).chain(finding.roots.clone()).collect();
        let known = |&p: &Place| seen.get(&(code, p, silenced)).copied();
        let at = places.iter().find_map(known).unwrap_or(findings.len());
        match findings.get_mut(at) {
            Some(known) => merge(known, finding),
            None => findings.push(finding),
        }
        for place in places {
            seen.entry((code, place, silenced)).or_insert(at);
        }
    }
    findings
}

/// If the rule has set another world than the event's, removes premises and worlds of the path that contradict it.
fn in_its_world(mut finding: Finding, event: &Event) -> Finding {
    if finding.world != event.bite.world {
        finding.also.clear();
        let world = finding.world.premise();
        finding.premises.retain(|premise| world.is_none_or(|world| !premise.excludes(world)));
    }
    finding
}

/// A finding belongs to the file whose entry points were interpreted. So linting one file gives the same findings for it as linting all
/// files. If the event is in another file, the finding is at the call that leads there.
fn at_home(mut finding: Finding, cx: &Context<'_>) -> Finding {
    if finding.primary.place.file == cx.file {
        return finding;
    }
    let here = |l: &Label| l.place.file == cx.file;
    let suspect = |&p: &Place| finding.related.iter().position(|l| l.place == p && here(l));
    let at = finding.suspects.iter().find_map(suspect);
    if let Some(i) = at.or_else(|| finding.related.iter().position(here)) {
        let home = finding.related.remove(i);
        let away = std::mem::replace(&mut finding.primary, home);
        finding.roots = vec![away.place];
        finding.related.insert(0, away);
    }
    finding
}

/// `reveal_device(…)`, for tests of the engine. It is not a rule: it has no page, and is shown only if selected.
fn reveal(event: &Event) -> Option<Finding> {
    let Kind::Reveal(text) = &event.kind else { return None };
    let label = Label::new(event.place, text);
    Some(Finding::new(REVEAL, World::Always, text.clone(), label))
}
