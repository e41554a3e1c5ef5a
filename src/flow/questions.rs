//! Which functions ask about the machine, so that what they call may count on an answer.

use rustc_hash::FxHashMap;

use super::scan::Scan;
use crate::ir::{Expr, ExprId, Var};
use crate::sym::Sym;

/// Words in names that stand for a question about the machine, or for its answer.
const ASKING: &[&str] = &["available", "gpu", "device_count", "device_type", "accelerator", "cuda_", "_cuda"];

impl Scan<'_> {
    /// Finds the functions that ask about the machine: by name, or by comparing something with the name of a device.
    pub(super) fn questions(&mut self) {
        let mut known: FxHashMap<Sym, bool> = FxHashMap::default();
        for n in 0..self.ir.exprs.len() {
            let e = ExprId(super::found::number(n));
            let asks = match self.ir.exprs[n] {
                Expr::Attr { name, .. } | Expr::Var(Var::Unbound(name)) => self.asks(name, &mut known),
                Expr::Var(Var::Local(slot)) => {
                    let owner = self.owner(e);
                    let name = self.ir.function(owner).slots.get(usize::from(slot)).copied();
                    name.is_some_and(|name| self.asks(name, &mut known))
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

    fn asks(&self, name: Sym, known: &mut FxHashMap<Sym, bool>) -> bool {
        *known.entry(name).or_insert_with(|| {
            let name = name.as_str().to_ascii_lowercase();
            ASKING.iter().any(|word| name.contains(word))
        })
    }
}
