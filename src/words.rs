//! Groups of words that decide something: names of methods, types, options and parts of names. They are in `data/words`, each group
//! with its reason.

use std::sync::{LazyLock, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

const FILES: [&str; 4] = [
    include_str!("../data/words/python.txt"),
    include_str!("../data/words/torch.txt"),
    include_str!("../data/words/libraries.txt"),
    include_str!("../data/words/naming.txt"),
];

/// Above this number of words, a look into a set is faster than comparing them one by one.
const FEW: usize = 8;

/// The groups by their names.
static GROUPS: LazyLock<FxHashMap<&'static str, Group>> = LazyLock::new(|| {
    let mut groups: FxHashMap<&'static str, Group> = FxHashMap::default();
    for file in FILES {
        parse(file, &mut groups);
    }
    for group in groups.values_mut() {
        group.lengths = group.words.iter().fold(0, |all, word| all | of_length(word));
        if group.words.len() > FEW {
            group.many = group.words.iter().copied().collect();
        }
    }
    groups
});

#[derive(Debug, Default)]
struct Group {
    /// In the order of the file.
    words: Vec<&'static str>,
    /// The same words, where there are more than a few.
    many: FxHashSet<&'static str>,
    /// One bit for each length of a word: most words that are asked about have another length.
    lengths: u64,
}

/// The bit for the length of a word. Long words share the last bit.
fn of_length(word: &str) -> u64 {
    1 << word.len().min(63)
}

/// A group of words. Declare it as an item: `static GROW_A_LIST: Words = Words::of("grow a list");`. A test checks that each group is in
/// the files, and that each group of the files is used.
#[derive(Debug)]
pub struct Words {
    name: &'static str,
    group: OnceLock<Option<&'static Group>>,
}

impl Words {
    /// The group with this name.
    pub const fn of(name: &'static str) -> Self {
        Self { name, group: OnceLock::new() }
    }

    fn group(&self) -> Option<&'static Group> {
        *self.group.get_or_init(|| GROUPS.get(self.name))
    }

    /// All words of the group, in the order of the file.
    pub fn all(&self) -> &'static [&'static str] {
        self.group().map_or(&[], |group| &group.words)
    }

    /// Whether this is a word of the group.
    pub fn has(&self, word: &str) -> bool {
        self.group().is_some_and(|group| {
            group.lengths & of_length(word) != 0
                && match group.many.is_empty() {
                    true => group.words.contains(&word),
                    false => group.many.contains(word),
                }
        })
    }

    /// Whether a word of the group is part of the text.
    pub fn is_part_of(&self, text: &str) -> bool {
        self.all().iter().any(|word| text.contains(word))
    }

    /// Whether the text starts with a word of the group.
    pub fn starts(&self, text: &str) -> bool {
        self.all().iter().any(|word| text.starts_with(word))
    }

    /// Whether the text ends with a word of the group.
    pub fn ends(&self, text: &str) -> bool {
        self.all().iter().any(|word| text.ends_with(word))
    }
}

/// Reads a file: `[name] reason` opens a group, the lines below it have its words. Quotes keep the blanks of a word: `" + "`.
fn parse(text: &'static str, groups: &mut FxHashMap<&'static str, Group>) {
    let mut group = None;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, _)) => group = Some(groups.entry(name).or_default()),
            None => {
                if let Some(group) = &mut group {
                    words(line, &mut group.words);
                }
            }
        }
    }
}

/// The words of a line.
fn words(line: &'static str, all: &mut Vec<&'static str>) {
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
            Some(quoted) => quoted,
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        all.push(word);
        rest = after.trim_start();
    }
}

#[cfg(test)]
mod tests;
