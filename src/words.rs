//! Groups of words that decide something: names of methods, types, options and parts of names. They are in `data/words.txt`, each group
//! with its reason.

use std::sync::{LazyLock, OnceLock};

use rustc_hash::FxHashMap;

const DATA: &str = include_str!("../data/words.txt");

/// The words of each group, by the name of the group.
static GROUPS: LazyLock<FxHashMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| parse(DATA));

/// A group of words. Declare it as a constant item: `static GROW_A_LIST: Words = Words::of("grow a list");`. A test checks that each group is in
/// the file, and that each group of the file is used.
#[derive(Debug)]
pub struct Words {
    group: &'static str,
    words: OnceLock<&'static [&'static str]>,
}

impl Words {
    /// The group with this name.
    pub const fn of(group: &'static str) -> Self {
        Self { group, words: OnceLock::new() }
    }

    /// All words of the group, in the order of the file.
    pub fn all(&self) -> &'static [&'static str] {
        self.words.get_or_init(|| GROUPS.get(self.group).map_or(&[], Vec::as_slice))
    }

    /// Whether this is a word of the group.
    pub fn has(&self, word: &str) -> bool {
        self.all().contains(&word)
    }

    /// Whether a word of the group is part of the text.
    pub fn is_part_of(&self, text: &str) -> bool {
        self.all().iter().any(|word| text.contains(word))
    }

    /// Whether the text starts with a word of the group.
    pub fn starts(&self, text: &str) -> bool {
        self.all().iter().any(|word| text.starts_with(word))
    }
}

/// Reads the file: `[name] reason` opens a group, the lines below it have its words.
fn parse(text: &'static str) -> FxHashMap<&'static str, Vec<&'static str>> {
    let mut groups: FxHashMap<&'static str, Vec<&'static str>> = FxHashMap::default();
    let mut words = None;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, _)) => words = Some(groups.entry(name).or_default()),
            None => {
                if let Some(words) = &mut words {
                    words.extend(line.split_whitespace());
                }
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests;
