//! Imports inside functions: `def load(path): import torch`.
//!
//! A name that a function imports has this meaning in the whole function, as for an import of the file, unless the function also binds the
//! name to something else.

use rustc_hash::FxHashMap;

use super::{Linked, ModIdx, Program, Resolved, Target};
use crate::ir::{Expr, ExprId, FuncId, Module, Slot, Stmt, StmtId, Var};
use crate::sym::Sym;

/// The local variables that imports bind, and what the imports name.
#[derive(Default)]
pub(super) struct LocalImports {
    named: FxHashMap<(FuncId, Slot), Target>,
    /// The slots of these variables: a quick check, because most variables have another slot.
    slots: Vec<Slot>,
}

/// The imports inside functions of a file. `targets`: what the file's imports name.
pub(super) fn of(ir: &Module, targets: &FxHashMap<(u32, Sym, Option<Sym>), Target>) -> LocalImports {
    let mut found = LocalImports::default();
    let top = ir.functions.first().map_or(&[][..], |body| ir.block(body.body));
    for (n, stmt) in ir.stmts.iter().enumerate() {
        let Stmt::Import(imports) = stmt else { continue };
        let id = StmtId(u32::try_from(n).unwrap_or(u32::MAX));
        // Most imports are at the top of the file, one after the other.
        if top.binary_search(&id).is_ok() {
            continue;
        }
        let func = function_of(ir, id);
        if func == FuncId(0) {
            continue;
        }
        for import in ir.imported(*imports) {
            let target = targets.get(&(import.level, import.module, import.name));
            if let (Some(Var::Local(slot)), Some(&target)) = (import.target, target) {
                found.named.entry((func, slot)).or_insert(target);
                if !found.slots.contains(&slot) {
                    found.slots.push(slot);
                }
            }
        }
    }
    found
}

/// The innermost function that contains a statement. The module body is function 0.
fn function_of(ir: &Module, stmt: StmtId) -> FuncId {
    let at = ir.stmt_span(stmt);
    let around = ir.functions.iter().enumerate().skip(1).filter(|(_, f)| f.span.contains(at));
    let innermost = around.max_by_key(|(_, f)| f.span.start).map_or(0, |(n, _)| n);
    FuncId(u32::try_from(innermost).unwrap_or(0))
}

/// Names of a file that several imports bind, usually in branches, with what each import names.
fn alternatives(
    ir: &Module,
    targets: &FxHashMap<(u32, Sym, Option<Sym>), Target>,
) -> FxHashMap<Slot, Vec<Target>> {
    let mut found: FxHashMap<Slot, Vec<Target>> = FxHashMap::default();
    // Few files have such names, and to find out where a statement is takes longer.
    let mut bound: Vec<Slot> = ir
        .imports
        .iter()
        .filter_map(|i| if let Some(Var::Local(s)) = i.target { Some(s) } else { None })
        .collect();
    let all = bound.len();
    bound.sort_unstable();
    bound.dedup();
    if bound.len() == all {
        return found;
    }
    for (n, stmt) in ir.stmts.iter().enumerate() {
        let Stmt::Import(imports) = stmt else { continue };
        for import in ir.imported(*imports) {
            let target = targets.get(&(import.level, import.module, import.name));
            if let (Some(Var::Local(slot)), Some(&target)) = (import.target, target)
                && function_of(ir, StmtId(u32::try_from(n).unwrap_or(u32::MAX))) == FuncId(0)
            {
                let others = found.entry(slot).or_default();
                if !others.contains(&target) {
                    others.push(target);
                }
            }
        }
    }
    found.retain(|_, targets| targets.len() > 1);
    found
}

impl super::Linked {
    /// Does a function of the file contain an import?
    pub fn imports_in_functions(&self) -> bool {
        !self.local_imports.slots.is_empty()
    }
}

impl Program {
    /// Other meanings of a name of the file, or of an attribute of it, in addition to [`Self::resolve_expr`]: what other imports of that
    /// name bind.
    pub fn other_imports(
        &self,
        module: ModIdx,
        expr: ExprId,
        names: &FxHashMap<Slot, Vec<Target>>,
    ) -> Vec<Resolved> {
        let ir = &self.get(module).ir;
        let (holder, attribute) = match ir.expr(expr) {
            Expr::Attr { base, name } => (ir.expr(base), Some(name)),
            e => (e, None),
        };
        let slot = match holder {
            Expr::Var(Var::Global(slot)) => slot,
            Expr::Var(Var::Local(slot)) if ir.function_around(expr) == FuncId(0) => slot,
            _ => return Vec::new(),
        };
        let Some(targets) = names.get(&slot) else { return Vec::new() };
        let meant = targets.iter().filter_map(|&t| self.resolve(t));
        let part = |whole: Resolved| match (whole, attribute) {
            (Resolved::Module(m), Some(name)) => self.attribute(module, m, name),
            (_, Some(_)) => None,
            (whole, None) => Some(whole),
        };
        meant.filter_map(part).collect()
    }

    /// The names of a file that several imports bind. See [`Self::other_imports`].
    pub fn bound_by_several(&self, module: ModIdx) -> FxHashMap<Slot, Vec<Target>> {
        let linked = self.get(module);
        alternatives(&linked.ir, &linked.targets)
    }

    /// The meaning of a variable in an expression of a function, if this function or one around it imports it.
    pub(super) fn imported_by_function(&self, linked: &Linked, expr: ExprId, var: Var) -> Option<Resolved> {
        let (depth, slot) = match var {
            Var::Local(slot) => (0, slot),
            Var::Enclosing { depth, slot } => (depth, slot),
            Var::Global(_) | Var::Unbound(_) => return None,
        };
        // To find out where an expression is takes longer.
        if !linked.local_imports.slots.contains(&slot) {
            return None;
        }
        let mut func = linked.ir.function_around(expr);
        for _ in 0..depth {
            func = linked.ir.function(func).parent?;
        }
        self.resolve(*linked.local_imports.named.get(&(func, slot))?)
    }

    /// Is it a local variable, or a dotted name that begins with one, in a file without imports inside functions? Then the name has no
    /// static meaning.
    pub fn begins_in_function(&self, module: ModIdx, expr: ExprId) -> bool {
        let linked = self.get(module);
        let mut e = expr;
        while let Expr::Attr { base, .. } | Expr::Index { base, .. } = linked.ir.expr(e) {
            e = base;
        }
        matches!(linked.ir.expr(e), Expr::Var(Var::Local(_) | Var::Enclosing { .. }))
            && !linked.imports_in_functions()
            && linked.ir.function_around(e) != FuncId(0)
    }

    /// Is the name a local variable that an import in a function binds?
    pub fn is_local_import(&self, module: ModIdx, expr: ExprId) -> bool {
        let linked = self.get(module);
        match linked.ir.expr(expr) {
            Expr::Var(var) => self.imported_by_function(linked, expr, var).is_some(),
            _ => false,
        }
    }
}
