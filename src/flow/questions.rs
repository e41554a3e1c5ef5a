//! Which functions ask about the machine, so that what they call may count on an answer.

use super::scan::Scan;
use crate::ir::{Expr, ExprId, Var};
use crate::sym::{Answers, Sym};

/// Words in names that stand for a question about the machine, or for its answer.
const ASKING: &[&str] = &["available", "gpu", "device_count", "device_type", "accelerator", "cuda_", "_cuda"];

thread_local! {
    static ASKS: Answers = const { Answers::new() };
}

fn asks(name: Sym) -> bool {
    let says = |name: &str| {
        let name = name.to_ascii_lowercase();
        ASKING.iter().any(|word| name.contains(word))
    };
    ASKS.with(|known| known.ask(name, says))
}

impl Scan<'_> {
    /// Finds the functions that ask about the machine: by name, or by comparing something with the name of a device.
    pub(super) fn questions(&mut self) {
        let variables = self.ir.functions.iter().any(|f| f.slots.iter().any(|&name| asks(name)));
        for n in 0..self.ir.exprs.len() {
            let e = ExprId(super::found::number(n));
            let asks = match self.ir.exprs[n] {
                Expr::Attr { name, .. } | Expr::Var(Var::Unbound(name)) => asks(name),
                Expr::Var(Var::Local(slot)) if variables => {
                    let owner = self.owner(e);
                    let name = self.ir.function(owner).slots.get(usize::from(slot)).copied();
                    name.is_some_and(asks)
                }
                Expr::Compare { left, right, .. } => [left, right]
                    .into_iter()
                    .any(|side| matches!(self.ir.expr(side), Expr::Str(s) if super::scan::names_place(s))),
                _ => false,
            };
            if asks {
                let owner = self.owner(e);
                self.found.asking.insert(owner);
            }
        }
    }
}
