//! Statements that are nested too deeply: each is left out alone, and the rest of the file is looked at.
//!
//! In its place stands an assignment of something unknown to every variable that it mentions: whatever it does to one of
//! them, nothing is said of that variable any more.

use std::collections::BTreeMap;

use super::{LeftOut, MAX_LEVELS};
use crate::ir::{Import, Module, Var};
use crate::span::Span;
use crate::sym::Sym;

/// The statements and `elif` clauses to leave out: where each begins, and where it ends.
#[derive(Clone, Default)]
pub(super) struct Cuts(BTreeMap<u32, u32>);

impl Cuts {
    pub(super) fn add(&mut self, place: Span) {
        self.0.insert(place.start, place.end);
    }

    /// Is what begins there left out?
    pub(super) fn hold(&self, place: Span) -> bool {
        !self.0.is_empty() && self.0.contains_key(&place.start)
    }

    /// What is said of them: nothing of those in another one.
    pub(super) fn told(&self) -> Vec<LeftOut> {
        let mut until = 0;
        let outer = self.0.iter().filter(|&(_, &end)| {
            let outside = end > until;
            until = until.max(end);
            outside
        });
        outer.map(|(&start, &end)| too_deep(Span::new(start, end))).collect()
    }
}

/// What is said where there are more than [`MAX_LEVELS`].
pub(super) fn too_deep(span: Span) -> LeftOut {
    let message = format!("nested too deeply to be checked (more than {MAX_LEVELS} levels)");
    LeftOut { span, message }
}

/// The words in a text, each once: all names are among them.
pub(super) fn words(text: &str) -> Vec<Sym> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut words: Vec<&str> =
        words.filter(|word| !word.is_empty() && !word.starts_with(|c: char| c.is_ascii_digit())).collect();
    words.sort_unstable();
    words.dedup();
    words.into_iter().map(Sym::new).collect()
}

/// Does an import of the file bind the variable? What a statement mentions of a library it leaves as it is.
pub(super) fn is_imported(ir: &Module, var: Var) -> bool {
    let slot = |var: Var| match var {
        Var::Local(slot) | Var::Global(slot) => Some(slot),
        Var::Enclosing { .. } | Var::Unbound(_) => None,
    };
    let is_it = |import: &Import| import.target.and_then(slot).is_some_and(|s| Some(s) == slot(var));
    ir.imports.iter().any(is_it)
}
