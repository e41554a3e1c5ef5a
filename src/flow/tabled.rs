//! Functions that stand in tables: whoever picks one out of the table and calls it at once may run any of them.
//!
//! Which one that is depends on a text that is only known when the program runs. A table out of which constructors call is there
//! for setting objects up, and how often its functions run besides is anybody's guess.

use rustc_hash::{FxHashMap, FxHashSet};

use super::host_side::tables;
use super::named_calls::outermost;
use super::nodes::Target;
use crate::ir::{Expr, ExprId, FuncId, Module, Slot, Stmt};
use crate::link::{ModIdx, Program, Resolved};
use crate::sym::Sym;

/// A variable of a file's body.
type Table = (ModIdx, Slot);

/// The functions that stand in a table.
#[derive(Debug, Default)]
pub struct Tabled {
    tables: FxHashMap<Target, Vec<Table>>,
}

impl Tabled {
    /// Those of these functions that stand in tables of their own files.
    pub fn of(program: &Program, functions: &FxHashSet<Target>) -> Self {
        let mut found = Self::default();
        let files: FxHashSet<ModIdx> = functions.iter().map(|&(m, _)| m).collect();
        for m in files {
            for (e, table) in tables(&program.get(m).ir, m) {
                let named = program.resolve_expr(m, e);
                let Some(Resolved::Function(of, f)) = named else { continue };
                if functions.contains(&(of, f)) {
                    found.tables.entry((of, f)).or_default().push(table);
                }
            }
        }
        found
    }

    /// Is none of them in a table?
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Is the function in a table?
    pub fn contains(&self, function: Target) -> bool {
        self.tables.contains_key(&function)
    }

    /// The names of the tables, which who reads them has to know.
    pub fn names(&self, program: &Program) -> FxHashSet<Sym> {
        self.tables
            .values()
            .flatten()
            .filter_map(|&(m, slot)| {
                program.get(m).ir.function(FuncId(0)).slots.get(usize::from(slot)).copied()
            })
            .collect()
    }

    /// Those of the functions that a constructor in these files may call out of their tables.
    pub fn constructing(&self, program: &Program, files: &[ModIdx]) -> FxHashSet<Target> {
        let names = self.names(program);
        let mut read: FxHashSet<Table> = FxHashSet::default();
        for &m in files {
            let ir = &program.get(m).ir;
            for (n, e) in (0..).zip(&ir.exprs) {
                let Expr::Index { base, .. } = *e else { continue };
                if !ir.last_name(base).is_some_and(|name| names.contains(&name)) || !calls(ir, ExprId(n)) {
                    continue;
                }
                if let Some(Resolved::Variable(of, slot)) = program.resolve_expr(m, base) {
                    read.insert((of, slot));
                }
            }
        }
        let held = self.tables.iter().filter(|(_, tables)| tables.iter().any(|table| read.contains(table)));
        held.map(|(&function, _)| function).collect()
    }
}

/// Does the constructor that the expression is in call what the expression gives, perhaps under a name that it has for it?
fn calls(ir: &Module, picked: ExprId) -> bool {
    let Some(around) = outermost(ir, picked).map(|f| ir.function(f)) else { return false };
    let bound = ir.stmts[ir.stmts_of(around)].iter().find_map(|s| match *s {
        Stmt::Assign { targets, value } if value == picked => Some(ir.list(targets)),
        _ => None,
    });
    let names: Vec<Expr> = bound.into_iter().flatten().map(|&t| ir.expr(t)).collect();
    let within = |e: ExprId| around.span.contains(ir.span(e));
    around.class.is_some()
        && around.name.as_str() == "__init__"
        && ir
            .calls()
            .any(|call| call.func == picked || within(call.func) && names.contains(&ir.expr(call.func)))
}
