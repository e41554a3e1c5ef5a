//! Which functions query the machine, so that their callees may rely on an answer.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::flow::query::relevance::file_scan::Scan;
use crate::ir::{Expr, ExprId, Var};
use crate::sym::{Answers, Sym};
use crate::words::Words;

/// Words in names that indicate a query about the machine, or its answer.
static ASKING: Words = Words::of("ask about the machine");

thread_local! {
    static ASKS: Answers = const { Answers::new() };
}

/// A matcher for all of these words. It is used on every name of every file.
static WORDS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(ASKING.all()).ok());

pub(crate) fn asks(name: Sym) -> bool {
    ASKS.with(|known| known.ask(name, |name| WORDS.as_ref().is_some_and(|words| words.is_match(name))))
}

impl Scan<'_> {
    /// Records the function around the expression if the expression queries the machine: by its name, or by comparing a value with a
    /// device name.
    pub(crate) fn question(&mut self, e: ExprId, expr: Expr, asking: &Asking) {
        let asks = match expr {
            Expr::Attr { name, .. } => asking.attributes.contains(&name),
            Expr::Var(Var::Unbound(name)) => asks(name),
            Expr::Var(Var::Local(slot)) if asking.variables => {
                let owner = self.owner(e);
                let name = self.ir.function(owner).slots.get(usize::from(slot)).copied();
                name.is_some_and(asks)
            }
            Expr::Compare { left, right, .. } => [left, right]
                .into_iter()
                .any(|side| matches!(self.ir.expr(side), Expr::Str(s) if crate::flow::query::relevance::file_scan::names_place(s))),
            _ => false,
        };
        if asks {
            let owner = self.owner(e);
            self.found.asking.insert(owner);
        }
    }

    /// The names in this file that query the machine, for a quick test.
    pub(crate) fn asking_names(&self) -> Asking {
        Asking {
            variables: self.ir.functions.iter().any(|f| f.slots.iter().any(|&name| asks(name))),
            attributes: self.ir.attributes.iter().copied().filter(|&name| asks(name)).collect(),
        }
    }
}

/// The names of a file that query the machine.
pub(crate) struct Asking {
    /// Whether any variable has such a name.
    variables: bool,
    /// The attributes with such names; usually none.
    attributes: Vec<Sym>,
}
