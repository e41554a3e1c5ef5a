//! Interned names. A [`Sym`] is a number; equal names have equal numbers in the whole process.
//!
//! Names live as long as the process: a linter's run is short, and identifiers repeat.

use std::cell::RefCell;
use std::fmt;
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};

use rustc_hash::FxHashMap;

/// An interned string; the empty one by default.
#[derive(Default, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sym(u32);

#[derive(Default)]
struct Table {
    ids: FxHashMap<&'static str, u32>,
    /// Room for more texts.
    room: &'static mut [u8],
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(|| {
    let mut table = Table::default();
    table.add("");
    RwLock::new(table)
});

/// The texts by number, in pieces that never move, so that a text is read without a lock. Each piece is twice as long as the
/// one before it.
static TEXTS: [OnceLock<Box<[OnceLock<&'static str>]>>; 32 - FIRST_PIECE.ilog2() as usize] =
    [const { OnceLock::new() }; 32 - FIRST_PIECE.ilog2() as usize];

/// How many texts the first piece has room for: a power of two.
const FIRST_PIECE: u32 = 1 << 12;

/// The piece that a number is in, and its place there.
const fn place_of(id: u32) -> (usize, usize) {
    let beyond = id.saturating_add(FIRST_PIECE);
    let piece = beyond.ilog2() - FIRST_PIECE.ilog2();
    (piece as usize, (beyond - (FIRST_PIECE << piece)) as usize)
}

thread_local! {
    /// Names this thread has met of late: most look-ups never touch the shared table.
    static RECENT: RefCell<Vec<Recent>> = RefCell::new(vec![Recent::NONE; RECENT_NAMES]);
    /// Dotted names this thread has put together.
    static DOTTED: RefCell<FxHashMap<(Sym, Sym), Sym>> = RefCell::default();
}

/// A power of two. All of them together should stay in the processor's cache.
const RECENT_NAMES: usize = 1 << 14;

/// How much room for texts is made at once.
const ROOM: usize = 1 << 16;

/// A name with its text, so that to know it again nothing else needs to be read. It fills half a line of the cache.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Recent {
    words: [u64; 3],
    length: u32,
    id: u32,
}

/// A short text as numbers: equal texts have equal keys, and no others have.
#[derive(Clone, Copy)]
struct Key {
    words: [u64; 3],
    length: u32,
}

impl Recent {
    /// No name has this length.
    const NONE: Self = Self { words: [0; 3], length: u32::MAX, id: 0 };

    fn is(&self, key: Key) -> bool {
        // Word by word: together they would be read back from where they have just been put.
        let ([a, b, c], [x, y, z]) = (self.words, key.words);
        self.length == key.length && a == x && b == y && c == z
    }
}

impl Key {
    /// Longer texts have no key.
    const LONGEST: usize = 24;

    /// The words of a text overlap where it does not fill them.
    fn of(text: &[u8]) -> Option<Self> {
        let length = u32::try_from(text.len()).ok().filter(|_| text.len() <= Self::LONGEST)?;
        let words = if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
            let second = if text.len() > 16 { text[8..].first_chunk() } else { None };
            [*first, *second.unwrap_or(&[0; 8]), *last].map(u64::from_le_bytes)
        } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
            [u64::from(u32::from_le_bytes(*first)), 0, u64::from(u32::from_le_bytes(*last))]
        } else {
            let bytes = text.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
            [bytes, 0, 0]
        };
        Some(Self { words, length })
    }

    /// Its place among those that are remembered.
    const fn slot(self) -> usize {
        const K: u64 = 0x9E37_79B9_7F4A_7C15;
        let [a, b, c] = self.words;
        let x = (a ^ b.rotate_left(29) ^ self.length as u64).wrapping_mul(K);
        let x = (x ^ (x >> 32) ^ c).wrapping_mul(K);
        // The upper bits are the better ones.
        (x >> 40) as usize & (RECENT_NAMES - 1)
    }
}

impl Sym {
    /// The symbol of the empty text.
    pub const EMPTY: Self = Self(0);

    /// The symbol of `text`.
    pub fn new(text: &str) -> Self {
        let Some(key) = Key::of(text.as_bytes()) else { return Self(intern(text)) };
        RECENT.with_borrow_mut(|recent| {
            let known = &mut recent[key.slot()];
            if !known.is(key) {
                *known = Recent { words: key.words, length: key.length, id: intern(text) };
            }
            Self(known.id)
        })
    }

    /// A place for the name among so many: a power of two.
    pub const fn slot(self, places: usize) -> usize {
        self.0 as usize & (places - 1)
    }

    /// `self.name`
    pub fn dotted(self, name: Self) -> Self {
        DOTTED.with_borrow_mut(|dotted| {
            *dotted
                .entry((self, name))
                .or_insert_with(|| Self::new(&[self.as_str(), ".", name.as_str()].concat()))
        })
    }

    /// The text.
    pub fn as_str(self) -> &'static str {
        let (piece, at) = place_of(self.0);
        TEXTS[piece].get().and_then(|texts| texts[at].get()).copied().unwrap_or_default()
    }
}

/// Answers to one question about names, each found once. For a `thread_local!`: names repeat, from file to file as well.
pub struct Answers(RefCell<Vec<Option<bool>>>);

impl Answers {
    /// Nothing has been asked.
    #[expect(clippy::new_without_default, reason = "a `Default` cannot be `const`")]
    pub const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// The answer for a name; `find` gives it when it is asked for the first time.
    pub fn ask(&self, name: Sym, find: impl FnOnce(&'static str) -> bool) -> bool {
        let at = name.0 as usize;
        if let Some(&Some(known)) = self.0.borrow().get(at) {
            return known;
        }
        let found = find(name.as_str());
        let mut answers = self.0.borrow_mut();
        if at >= answers.len() {
            answers.resize((at + 1).next_power_of_two(), None);
        }
        answers[at] = Some(found);
        found
    }
}

/// A set of names. To ask it costs next to nothing.
#[derive(Debug, Default)]
pub struct NameSet(Vec<u64>);

impl NameSet {
    /// Puts a name into it.
    pub fn insert(&mut self, name: Sym) {
        let at = name.0 as usize / 64;
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (name.0 % 64);
    }

    /// Is the name in it?
    pub fn contains(&self, name: Sym) -> bool {
        self.0.get(name.0 as usize / 64).is_some_and(|bits| bits >> (name.0 % 64) & 1 == 1)
    }
}

impl FromIterator<Sym> for NameSet {
    fn from_iter<T: IntoIterator<Item = Sym>>(names: T) -> Self {
        let mut set = Self::default();
        names.into_iter().for_each(|name| set.insert(name));
        set
    }
}

fn intern(text: &str) -> u32 {
    if let Some(&id) = TABLE.read().unwrap_or_else(PoisonError::into_inner).ids.get(text) {
        return id;
    }
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let known = table.ids.get(text).copied();
    known.unwrap_or_else(|| table.add(text))
}

impl Table {
    fn add(&mut self, text: &str) -> u32 {
        let id = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        let text = self.keep(text);
        self.ids.insert(text, id);
        let (piece, at) = place_of(id);
        let texts = TEXTS[piece].get_or_init(|| (0..FIRST_PIECE << piece).map(|_| OnceLock::new()).collect());
        // Nobody else adds while the table is locked.
        let _ = texts[at].set(text);
        id
    }

    /// A copy for good. Copies stand side by side: one by one they would take more room.
    fn keep(&mut self, text: &str) -> &'static str {
        if text.len() > self.room.len() {
            self.room = vec![0; ROOM.max(text.len())].leak();
        }
        let (copy, rest) = std::mem::take(&mut self.room).split_at_mut(text.len());
        self.room = rest;
        copy.copy_from_slice(text.as_bytes());
        // It is what it is a copy of.
        std::str::from_utf8(copy).unwrap_or_default()
    }
}

impl fmt::Debug for Sym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Display for Sym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::{NameSet, RECENT_NAMES, ROOM, Sym};

    #[test]
    fn a_set_holds_what_was_put_into_it() {
        let names: Vec<Sym> = (0..200).map(|n| Sym::new(&format!("of a set {n}"))).collect();
        let set: NameSet = names.iter().copied().step_by(2).collect();
        assert!(names.iter().enumerate().all(|(n, &name)| set.contains(name) == (n % 2 == 0)));
        assert!(!NameSet::default().contains(names[0]));
    }

    #[test]
    fn names_of_every_length_are_told_apart() {
        assert_eq!(Sym::new(""), Sym::EMPTY);
        let texts: Vec<String> = (0..40).map(|n| "é".repeat(n)).chain([".".repeat(ROOM + 1)]).collect();
        let syms: Vec<Sym> = texts.iter().map(|t| Sym::new(t)).collect();
        for (text, &sym) in texts.iter().zip(&syms) {
            assert_eq!(sym.as_str(), text);
            assert_eq!(Sym::new(text), sym);
        }
    }

    #[test]
    fn more_names_than_are_remembered_keep_their_symbols() {
        let names: Vec<String> = (0..RECENT_NAMES * 3).map(|n| format!("name{n}")).collect();
        let syms: Vec<Sym> = names.iter().map(|n| Sym::new(n)).collect();
        assert!(names.iter().zip(&syms).all(|(name, &sym)| Sym::new(name) == sym && sym.as_str() == name));
    }

    #[test]
    fn equal_names_are_equal_symbols_across_threads() {
        let here = Sym::new("cuda");
        let there = std::thread::spawn(|| (Sym::new("cuda"), Sym::new("a new name"))).join();
        let (cuda, other) = there.unwrap_or((here, here));
        assert_eq!(here, cuda);
        assert_ne!(here, other);
        assert_eq!(other.as_str(), "a new name");
    }
}
