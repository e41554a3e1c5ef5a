//! Unbound names: a read of one raises.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::machine::Interp;
use crate::ir::{Expr, Stmt, Var};
use crate::link::ModIdx;
use crate::sym::Sym;
use crate::words::Words;

/// Names whose use may bind names that the engine does not see.
static OPENS: Words = Words::of("bind names unseen");

/// Names that Python defines in every file, and names that tools add: profilers, notebooks, site helpers.
static KNOWN: LazyLock<FxHashSet<Sym>> = LazyLock::new(|| {
    let lines = include_str!("../../../../data/names.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).map(Sym::new).collect()
});

impl Interp<'_> {
    /// Handles a read of an unbound name. If no unseen code can have bound it, the path ends here.
    pub(crate) fn check_bound(&mut self, name: Sym, module: ModIdx) {
        if self.run.muted > 0 || KNOWN.contains(&name) || !self.binds_all_names(module) {
            return;
        }
        // If the file's body always reaches this read, the body ends here, and no importer gets the file's functions.
        if self.path == TRUE && !self.run.symbolic && !self.as_script() {
            self.run.ends_early = true;
        }
        self.path = FALSE;
    }

    /// Whether the current code runs only under `if __name__ == "__main__"`, so that an import does not run it.
    fn as_script(&self) -> bool {
        let mut frame = self.here();
        while let Some(caller) = frame.caller {
            let up = &self.frames[caller.0 as usize];
            if up.site.is_none() {
                break;
            }
            frame = up;
        }
        let Some(site) = frame.site else { return false };
        let ir = &self.program.get(self.entry).ir;
        ir.stmts.iter().zip(&ir.stmt_spans).any(|(stmt, at)| {
            matches!(*stmt, Stmt::If { test, .. } if at.contains(site.span) && ir.exprs_in(test).any(|n| {
                matches!(ir.exprs[n], Expr::Var(Var::Unbound(name)) if name.as_str() == "__name__")
            }))
        })
    }

    /// Whether the file shows all names that its code can read: it has no star import, and no code that binds names by
    /// string.
    fn binds_all_names(&mut self, module: ModIdx) -> bool {
        if let Some(&known) = self.names.closed.get(&module) {
            return known;
        }
        let linked = self.program.get(module);
        let star = Sym::new("*");
        let opens = |e: &Expr| matches!(e, Expr::Var(Var::Unbound(name)) if OPENS.has(name.as_str()));
        let closed =
            !linked.ir.imports.iter().any(|i| i.name == Some(star)) && !linked.ir.exprs.iter().any(opens);
        self.names.closed.insert(module, closed);
        closed
    }
}
