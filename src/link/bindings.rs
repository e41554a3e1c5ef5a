//! How the module-level names of a file are bound.

use rustc_hash::FxHashMap;

use super::{Binding, Target};
use crate::ir::{Block, Expr, ExprId, Module, Slot, Stmt, StmtId, Var};
use crate::sym::Sym;

/// Collects how module-level names are bound.
pub(super) struct Binder<'a> {
    pub(super) ir: &'a Module,
    pub(super) targets: &'a FxHashMap<(u32, Sym, Option<Sym>), Target>,
    pub(super) bindings: &'a mut Vec<Binding>,
}

impl Binder<'_> {
    /// Notes the bindings by the statements of the block. `branch`: whether the block may run not at all, or more than once.
    pub(super) fn block(&mut self, block: Block, branch: bool) {
        for &stmt in self.ir.block(block) {
            self.stmt(stmt, branch);
        }
    }

    fn stmt(&mut self, id: StmtId, branch: bool) {
        match self.ir.stmt(id) {
            Stmt::Def(f, Var::Local(slot)) => self.bind(*slot, Binding::Def(*f), branch),
            Stmt::Class(c, Var::Local(slot)) => self.bind(*slot, Binding::Class(*c), branch),
            Stmt::Import(imports) => {
                for import in self.ir.imported(*imports) {
                    let Some(Var::Local(slot)) = import.target else { continue };
                    if let Some(&t) = self.targets.get(&(import.level, import.module, import.name)) {
                        self.bind(slot, Binding::Import(t), branch);
                    }
                }
            }
            Stmt::Assign { targets, value } => {
                for &target in self.ir.list(*targets) {
                    self.target(target, Some(*value), branch);
                }
            }
            Stmt::AnnAssign { target, value: Some(value), .. } => self.target(*target, Some(*value), branch),
            Stmt::AugAssign { target, .. } => self.target(*target, None, true),
            Stmt::If { then, orelse, .. } => {
                self.block(*then, true);
                self.block(*orelse, true);
            }
            Stmt::For { target, body, orelse, .. } => {
                self.target(*target, None, true);
                self.block(*body, true);
                self.block(*orelse, true);
            }
            Stmt::While { body, orelse, .. } => {
                self.block(*body, true);
                self.block(*orelse, true);
            }
            Stmt::With { items, body } => {
                for (_, target) in items {
                    if let Some(t) = target {
                        self.target(*t, None, true);
                    }
                }
                self.block(*body, true);
            }
            Stmt::Try { body, handlers, orelse, finally } => {
                self.block(*body, true);
                for h in self.ir.handlers(*handlers) {
                    self.block(h.body, true);
                }
                self.block(*orelse, true);
                self.block(*finally, branch);
            }
            Stmt::Match { cases, .. } => {
                for case in cases {
                    self.block(case.body, true);
                }
            }
            _ => {}
        }
    }

    fn target(&mut self, target: ExprId, value: Option<ExprId>, branch: bool) {
        match self.ir.expr(target) {
            Expr::Var(Var::Local(slot)) => {
                let binding = value.map_or(Binding::Complex, Binding::Value);
                self.bind(slot, binding, branch);
            }
            Expr::Tuple(list) | Expr::List(list) => {
                for &t in self.ir.list(list) {
                    self.target(t, None, branch);
                }
            }
            Expr::Star(t) => self.target(t, None, branch),
            _ => {}
        }
    }

    /// Adds a binding. In branches, definitions and imports of one thing are kept, and other values are ignored: after
    /// `try: import x except ImportError: x = None`, `x` means the import.
    fn bind(&mut self, slot: Slot, binding: Binding, branch: bool) {
        let Some(old) = self.bindings.get_mut(slot as usize) else { return };
        *old = match (*old, binding) {
            (Binding::Nothing, Binding::Value(_)) if branch => Binding::Complex,
            (Binding::Nothing, b) => b,
            // `import torch` and `import torch.nn` bind the same variable to the same package.
            (Binding::Import(a), Binding::Import(b)) if a == b => *old,
            (Binding::Import(_), b @ Binding::Import(_)) if !branch => b,
            (
                Binding::Import(Target::External(_)),
                b @ Binding::Import(Target::Module(_) | Target::Member(..)),
            ) => b,
            (keep @ Binding::Import(_), Binding::Import(_) | Binding::Def(_) | Binding::Class(_))
                if branch =>
            {
                keep
            }
            (keep @ Binding::Import(_), Binding::Value(v)) if branch && self.ir.expr(v) == Expr::None => keep,
            (Binding::Complex, b @ Binding::Import(_)) if branch => b,
            (_, b @ (Binding::Def(_) | Binding::Class(_))) if !branch => b,
            _ => Binding::Complex,
        };
    }
}
