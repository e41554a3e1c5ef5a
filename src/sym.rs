//! Interned names. A [`Sym`] is a number; equal names have equal numbers in the whole process.
//!
//! Names live as long as the process: a linter's run is short, and identifiers repeat.

use std::cell::RefCell;
use std::fmt;
use std::sync::{LazyLock, PoisonError, RwLock};

use rustc_hash::FxHashMap;

/// An interned string.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sym(u32);

#[derive(Default)]
struct Table {
    ids: FxHashMap<&'static str, u32>,
    texts: Vec<&'static str>,
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(RwLock::default);

thread_local! {
    /// Names this thread has met: most look-ups never touch the shared table.
    static SEEN: RefCell<FxHashMap<&'static str, u32>> = RefCell::default();
    static TEXTS: RefCell<Vec<&'static str>> = RefCell::default();
    /// Dotted names this thread has put together.
    static DOTTED: RefCell<FxHashMap<(Sym, Sym), Sym>> = RefCell::default();
}

impl Sym {
    /// The symbol of `text`.
    pub fn new(text: &str) -> Self {
        SEEN.with_borrow_mut(|seen| {
            if let Some(&id) = seen.get(text) {
                return Self(id);
            }
            let (id, text) = intern(text);
            seen.insert(text, id);
            Self(id)
        })
    }

    /// `self.name`
    pub fn dotted(self, name: Self) -> Self {
        DOTTED.with_borrow_mut(|dotted| {
            *dotted.entry((self, name)).or_insert_with(|| Self::new(&format!("{self}.{name}")))
        })
    }

    /// The text.
    pub fn as_str(self) -> &'static str {
        TEXTS.with_borrow_mut(|texts| {
            if self.0 as usize >= texts.len() {
                let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
                texts.extend_from_slice(&table.texts[texts.len()..]);
            }
            texts[self.0 as usize]
        })
    }
}

fn intern(text: &str) -> (u32, &'static str) {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    if let Some((&text, &id)) = table.ids.get_key_value(text) {
        return (id, text);
    }
    let id = u32::try_from(table.texts.len()).unwrap_or(u32::MAX);
    let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
    table.ids.insert(text, id);
    table.texts.push(text);
    (id, text)
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
    use super::Sym;

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
