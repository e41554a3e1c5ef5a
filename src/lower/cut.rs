//! Statements that are nested too deeply: only these are left out, and the rest of the file is checked.
//!
//! An assignment of an unknown value to each variable that the statement mentions replaces it. So no finding depends on what the statement
//! does to these variables.

use std::collections::BTreeMap;

use super::{LeftOut, MAX_LEVELS};
use crate::ir::{Import, Module, Var};
use crate::span::Span;
use crate::sym::Sym;

/// The statements and `elif` clauses to leave out: the start and the end of each.
#[derive(Clone, Default)]
pub(super) struct Cuts(BTreeMap<u32, u32>);

impl Cuts {
    pub(super) fn add(&mut self, place: Span) {
        self.0.insert(place.start, place.end);
    }

    /// Is the node with this start left out?
    pub(super) fn hold(&self, place: Span) -> bool {
        !self.0.is_empty() && self.0.contains_key(&place.start)
    }

    /// A report for each of them, except those inside another one.
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

/// The report for code with more than [`MAX_LEVELS`] levels.
pub(super) fn too_deep(span: Span) -> LeftOut {
    let message = format!("nested too deeply to be checked (more than {MAX_LEVELS} levels)");
    LeftOut { span, message }
}

/// The words in a text, each once. They include all names.
pub(super) fn words(text: &str) -> Vec<Sym> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut words: Vec<&str> =
        words.filter(|word| !word.is_empty() && !word.starts_with(|c: char| c.is_ascii_digit())).collect();
    words.sort_unstable();
    words.dedup();
    words.into_iter().map(Sym::new).collect()
}

/// Does an import of the file bind the variable? A statement that uses a library does not change the library.
pub(super) fn is_imported(ir: &Module, var: Var) -> bool {
    let slot = |var: Var| match var {
        Var::Local(slot) | Var::Global(slot) => Some(slot),
        Var::Enclosing { .. } | Var::Unbound(_) => None,
    };
    let is_it = |import: &Import| import.target.and_then(slot).is_some_and(|s| Some(s) == slot(var));
    ir.imports.iter().any(is_it)
}
