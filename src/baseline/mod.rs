//! A baseline: the findings that a project has accepted, in a file that is checked in. A run with a baseline tells what is new.
//!
//! A finding is known by its rule, the file of its cause, the tokens of the statement and those that are marked ([`Identity`]); rows are not
//! in it. Of equal ones in a file the baseline keeps the number. So inserted lines, moved functions and what a formatter does change nothing.

mod document;
mod identity;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::finding::Code;

pub use document::{BaselineError, read, write};
pub use identity::{Identity, identities};

/// How `--update-baseline` treats findings that are not in the baseline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Update {
    /// Remove findings that are gone
    Shrink,
    /// Remove findings that are gone, and add new ones
    Grow,
}

/// Findings that a project has accepted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Baseline {
    entries: BTreeMap<Identity, Entry>,
}

/// Equal findings of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Entry {
    /// How many there are.
    count: usize,
    /// What is marked, for whoever reads the file.
    marked: String,
    /// The files, besides that of the cause, whose check finds it: paths from the baseline's folder.
    reached_from: Vec<String>,
}

/// A place of a finding as a baseline sees it.
#[derive(Clone, Debug)]
pub struct Told {
    /// What it is known by.
    pub identity: Identity,
    /// What is marked.
    pub marked: String,
    /// The files, besides that of the cause, whose check finds it: paths from the baseline's folder.
    pub reached_from: Vec<String>,
}

/// What a run has looked at, of the project's files.
pub trait Looked {
    /// Was this file (a path from the baseline's folder) checked for this rule, and wholly? A file that is gone counts as checked.
    fn is_checked(&self, path: &str, rule: Code) -> bool;
}

/// The difference between a baseline and the findings of a run.
#[derive(Debug, Default)]
pub struct Difference {
    /// For each place: is it in the baseline?
    pub known: Vec<bool>,
    /// What is in the baseline and no longer found, though everything was checked that it depends on.
    pub stale: Vec<Stale>,
}

/// Equal entries that are no longer found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stale {
    /// What they were known by.
    pub identity: Identity,
    /// What was marked.
    pub marked: String,
    /// How many are gone.
    pub count: usize,
}

impl Baseline {
    /// The number of findings in it.
    pub fn len(&self) -> usize {
        self.entries.values().map(|entry| entry.count).sum()
    }

    /// Is there nothing in it?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Compares it with what a run tells. Of equal places the first ones are known.
    pub fn compare<'a>(&self, told: impl Iterator<Item = &'a Told>, looked: &dyn Looked) -> Difference {
        let mut left: BTreeMap<&Identity, usize> =
            self.entries.iter().map(|(identity, entry)| (identity, entry.count)).collect();
        let known = told
            .map(|finding| match left.get_mut(&finding.identity) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    true
                }
                _ => false,
            })
            .collect();
        let stale = self
            .entries
            .iter()
            .filter_map(|(identity, entry)| {
                let count = left.get(identity).copied().filter(|&count| count > 0)?;
                let checked = |path: &String| looked.is_checked(path, identity.rule);
                let all = match entry.reached_from.as_slice() {
                    [] => checked(&identity.path),
                    files => files.iter().all(checked),
                };
                all.then(|| Stale { identity: identity.clone(), marked: entry.marked.clone(), count })
            })
            .collect();
        Difference { known, stale }
    }

    /// Takes out what is no longer found.
    pub fn remove(&mut self, stale: &[Stale]) {
        for gone in stale {
            if let Some(entry) = self.entries.get_mut(&gone.identity) {
                entry.count = entry.count.saturating_sub(gone.count);
            }
        }
        self.entries.retain(|_, entry| entry.count > 0);
    }

    /// Puts a finding in.
    pub fn add(&mut self, told: &Told) {
        let entry = self.entries.entry(told.identity.clone()).or_insert_with(|| Entry {
            count: 0,
            marked: told.marked.clone(),
            reached_from: Vec::new(),
        });
        entry.count += 1;
        entry.reached_from.extend(told.reached_from.iter().cloned());
        entry.reached_from.sort_unstable();
        entry.reached_from.dedup();
    }
}
