//! Removes suppressed places from findings, and reports a finding at another place if its primary place is suppressed.

use rustc_hash::FxHashSet;

use crate::finding::{Code, Finding, Label, Role};
use crate::span::{FileId, Place};

/// The findings that have been checked so far.
#[derive(Default)]
pub(super) struct Judged {
    kept: Vec<Finding>,
    /// Findings that are suppressed at their primary place and have other places.
    silenced: Vec<Finding>,
    suppressed: usize,
}

impl Judged {
    /// Adds a finding without its suppressed places. `covers`: whether a comment covers this place for this rule. It is called for every
    /// place, because it marks comments as used.
    pub(super) fn add(
        &mut self,
        mut f: Finding,
        covers: &mut dyn FnMut(Code, Place) -> bool,
        is_on: &dyn Fn(FileId, Code) -> Option<bool>,
    ) {
        // Nothing is reported in a file that the user did not ask for.
        let Some(on) = is_on(f.primary.place.file, f.code) else { return };
        let mut covered = covers(f.code, f.primary.place);
        for label in f.related.iter().chain(&f.unshown).filter(|label| label.role == Role::Flow) {
            covered |= covers(f.code, label.place);
        }
        let before = f.related.len();
        let mut stays = |label: &Label| {
            let through = match &label.role {
                Role::Flow => return true,
                Role::Repeated { through } => through.as_slice(),
                Role::Consequence => &[],
            };
            let mut silenced = is_on(label.place.file, f.code) == Some(false);
            for &place in std::iter::once(&label.place).chain(through) {
                silenced |= covers(f.code, place);
            }
            !silenced
        };
        f.related.retain(&mut stays);
        f.unshown.retain(&mut stays);
        if on && !covered && !f.told.elsewhere {
            f.show_more(before);
            self.kept.push(f);
            return;
        }
        self.suppressed += usize::from(on && covered);
        if f.told.elsewhere {
            return;
        }
        let tellable = |label: &Label| {
            matches!(label.role, Role::Repeated { .. }) && is_on(label.place.file, f.code) == Some(true)
        };
        let mut others: Vec<Label> = std::mem::take(&mut f.related);
        others.append(&mut f.unshown);
        others.retain(tellable);
        if !others.is_empty() {
            f.unshown = others;
            self.silenced.push(f);
        }
    }

    /// The findings to report, and how many are suppressed.
    pub(super) fn finish(self) -> (Vec<Finding>, usize) {
        let Self { mut kept, silenced, suppressed } = self;
        let mut told: FxHashSet<(Code, Place)> = FxHashSet::default();
        let places = |f: &Finding| {
            let repeated = f.labels().filter(|label| label.role != Role::Flow).map(|label| label.place);
            let all = std::iter::once(f.primary.place).chain(repeated);
            all.map(|place| (f.code, place)).collect::<Vec<_>>()
        };
        told.extend(kept.iter().flat_map(places));
        for mut f in silenced {
            f.unshown.retain(|label| !told.contains(&(f.code, label.place)));
            if f.unshown.is_empty() {
                continue;
            }
            f.move_to(0);
            told.extend(places(&f));
            kept.push(f);
        }
        (kept, suppressed)
    }
}

/// The beginning of the message of a finding that is reported at another place of its cause.
const ANOTHER_PLACE: &str = "another place of the same cause: ";

/// How many other places of a cause are shown at most.
const MAX_SHOWN: usize = 12;

impl Finding {
    /// Moves the finding to one of its places that are not shown, because the primary place is suppressed or accepted. The message quotes
    /// the code of the primary place, so it says that this is another place.
    fn move_to(&mut self, unshown: usize) {
        self.primary.place = self.unshown.remove(unshown).place;
        if !self.message.starts_with(ANOTHER_PLACE) {
            self.message.insert_str(0, ANOTHER_PLACE);
        }
        // The help and the fix are about the code of the primary place.
        self.help = None;
        self.fix = None;
        self.show_more(MAX_SHOWN);
    }

    /// Removes the known places of its cause. `known` has a flag for the primary place, then one for each of [`Finding::repeated`]. If the
    /// primary place is known, the finding moves to the first other place. `None`: all places are known.
    pub fn without(mut self, known: &[bool]) -> Option<Self> {
        let mut flags = known.iter().copied();
        let primary = flags.next().unwrap_or(false);
        let shown = self.related.len();
        let mut stays =
            |label: &Label| !matches!(label.role, Role::Repeated { .. }) || !flags.next().unwrap_or(false);
        self.related.retain(&mut stays);
        self.unshown.retain(&mut stays);
        if !primary {
            self.show_more(shown);
            return Some(self);
        }
        // The flow to the old place, and the consequences of it, are not shown for the new one.
        let mut others = std::mem::take(&mut self.related);
        others.append(&mut self.unshown);
        others.retain(|label| matches!(label.role, Role::Repeated { .. }));
        self.unshown = others;
        if self.unshown.is_empty() {
            return None;
        }
        self.move_to(0);
        Some(self)
    }

    /// Shows further places of the cause, up to this many places in total.
    fn show_more(&mut self, up_to: usize) {
        while self.related.len() < up_to
            && let Some(next) = self.unshown.iter().position(|l| l.role != Role::Flow)
        {
            self.related.push(self.unshown.remove(next));
        }
    }
}
