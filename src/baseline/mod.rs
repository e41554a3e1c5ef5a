//! A baseline: a file, under version control, with the findings that a project accepts. A run with a baseline reports only new findings.
//!
//! A finding is identified by its rule, the file of its cause, the tokens of the statement and the marked tokens ([`Identity`]), not by its
//! row. The baseline counts equal findings in a file. So inserted lines, moved functions and formatting change nothing.

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
    /// The marked code, for people who read the file.
    marked: String,
    /// The other files whose check finds it: paths relative to the baseline's folder.
    reached_from: Vec<String>,
}

/// A place of a finding, as a baseline identifies it.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its identity.
    pub identity: Identity,
    /// The marked code.
    pub marked: String,
    /// The files other than the file of the cause whose check finds it: paths relative to the baseline's folder.
    pub reached_from: Vec<String>,
}

/// Which files of the project a run has checked.
pub trait Looked {
    /// Was this file (a path relative to the baseline's folder) checked for this rule, and completely? A deleted file counts as checked.
    fn is_checked(&self, path: &str, rule: Code) -> bool;
}

/// The difference between a baseline and the findings of a run.
#[derive(Debug, Default)]
pub struct Difference {
    /// For each place, whether it is in the baseline.
    pub known: Vec<bool>,
    /// Entries of the baseline that the run did not find, although it checked all files that they depend on.
    pub stale: Vec<Stale>,
}

/// Equal entries that are no longer found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stale {
    /// Their identity.
    pub identity: Identity,
    /// The marked code.
    pub marked: String,
    /// How many are gone.
    pub count: usize,
}

impl Baseline {
    /// The number of findings in the baseline.
    pub fn len(&self) -> usize {
        self.entries.values().map(|entry| entry.count).sum()
    }

    /// Is there nothing in it?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Compares the baseline with the findings of a run. Of several equal places, the first ones are known.
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

    /// Removes stale entries.
    pub fn remove(&mut self, stale: &[Stale]) {
        for gone in stale {
            if let Some(entry) = self.entries.get_mut(&gone.identity) {
                entry.count = entry.count.saturating_sub(gone.count);
            }
        }
        self.entries.retain(|_, entry| entry.count > 0);
    }

    /// Adds a finding.
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
