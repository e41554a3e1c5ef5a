//! The meanings of names, followed through imports, re-exports and assignments of names to names, without evaluating anything.

use super::{Binding, ClassKey, Linked, MAX_ALIASES, ModIdx, Program, Resolved, Target};
use crate::ir::{Expr, ExprId, Module, Slot, Var};
use crate::reads;
use crate::sym::Sym;

/// How many re-exports are followed at most.
const MAX_REEXPORTS: usize = 12;

impl Program {
    /// The meaning of a file's module-level name, followed through imports and re-exports.
    pub fn lookup(&self, module: ModIdx, name: Sym) -> Option<Resolved> {
        let linked = self.get(module);
        match linked.names.get(&name).map(|&slot| linked.meanings.get(usize::from(slot))) {
            Some(Some(&known)) => known,
            Some(None) => self.lookup_within(module, name, MAX_REEXPORTS),
            None => self.lookup_unbound(linked, name, MAX_REEXPORTS - 1),
        }
    }

    /// The meanings of the names of all module-level slots of a file.
    pub(super) fn meanings(&self, module: ModIdx) -> Box<[Option<Resolved>]> {
        let body = self.get(module).ir.functions.first();
        let names = body.into_iter().flat_map(|f| &f.slots);
        names.map(|&name| self.lookup_within(module, name, MAX_REEXPORTS)).collect()
    }

    /// The meaning of the name of a module-level slot of a file.
    pub fn meaning(&self, module: ModIdx, slot: Slot) -> Option<Resolved> {
        self.get(module).meanings.get(usize::from(slot)).copied().flatten()
    }

    fn lookup_within(&self, module: ModIdx, name: Sym, depth: usize) -> Option<Resolved> {
        let depth = depth.checked_sub(1)?;
        let linked = self.get(module);
        if let Some(&slot) = linked.names.get(&name) {
            return match linked.bindings[slot as usize] {
                Binding::Nothing => None,
                Binding::Import(target) => self.follow(target, depth),
                Binding::Def(f) => Some(Resolved::Function(module, f)),
                Binding::Class(class) => Some(Resolved::Class(ClassKey { module, class })),
                Binding::Value(_) | Binding::Complex => Some(Resolved::Variable(module, slot)),
            };
        }
        self.lookup_unbound(linked, name, depth)
    }

    /// The meaning of a name that the file itself does not bind.
    fn lookup_unbound(&self, linked: &Linked, name: Sym, depth: usize) -> Option<Resolved> {
        if linked.siblings
            && let Some(&target) = linked.targets.get(&(1, Sym::EMPTY, Some(name)))
        {
            return self.follow(target, depth);
        }
        linked.stars.iter().rev().find_map(|&star| match star {
            Target::Module(m) => self.lookup_within(m, name, depth),
            Target::Member(..) | Target::External(_) => None,
        })
    }

    /// The meaning of an import's target.
    pub fn resolve(&self, target: Target) -> Option<Resolved> {
        self.follow(target, MAX_REEXPORTS)
    }

    fn follow(&self, target: Target, depth: usize) -> Option<Resolved> {
        match target {
            Target::Module(m) => Some(Resolved::Module(m)),
            Target::External(path) => Some(Resolved::External(path)),
            Target::Member(m, name) => self.lookup_within(m, name, depth),
        }
    }

    /// The meaning of a name or dotted name, without evaluating anything.
    pub fn resolve_expr(&self, module: ModIdx, expr: ExprId) -> Option<Resolved> {
        // The noted meanings do not tell which files they were made from.
        match self.get(module).noted.get().filter(|_| !reads::is_recording()) {
            Some(noted) => noted.get(expr),
            None => self.resolve_through(module, expr, MAX_ALIASES),
        }
    }

    /// The meaning of an attribute of a base with this meaning.
    pub(super) fn resolve_attribute(&self, module: ModIdx, base: Resolved, name: Sym) -> Option<Resolved> {
        match base {
            Resolved::Module(m) => self.attribute(module, m, name),
            Resolved::External(path) => Some(match self.in_folder(module, path, name) {
                Some(m) => Resolved::Module(m),
                None => Resolved::External(path.dotted(name)),
            }),
            Resolved::Class(_) | Resolved::Function(..) | Resolved::Variable(..) => None,
        }
    }

    /// The meaning of an expression, followed through at most `aliases` assignments of names to names.
    pub(super) fn resolve_through(&self, module: ModIdx, expr: ExprId, aliases: usize) -> Option<Resolved> {
        let linked = self.get(module);
        let ir = &linked.ir;
        match ir.expr(expr) {
            // A local variable of a function only has a static meaning if an import binds it.
            Expr::Var(var @ (Var::Local(_) | Var::Enclosing { .. })) if ir.function_around(expr).0 != 0 => {
                self.imported_by_function(linked, expr, var)
            }
            Expr::Var(Var::Local(slot) | Var::Global(slot)) => {
                match self.meaning(module, slot)? {
                    Resolved::Variable(m, s) => match self.get(m).bindings[s as usize] {
                        // `Base = nn.Module`
                        Binding::Value(e) if aliases > 0 && is_dotted(&self.get(m).ir, e) => {
                            self.resolve_through(m, e, aliases - 1)
                        }
                        _ => Some(Resolved::Variable(m, s)),
                    },
                    r => Some(r),
                }
            }
            Expr::Var(Var::Unbound(name)) => {
                self.lookup(module, name).or_else(|| Some(Resolved::External(self.builtins.dotted(name))))
            }
            Expr::Attr { base, name } => {
                let base = self.resolve_through(module, base, aliases)?;
                self.resolve_attribute(module, base, name)
            }
            // `Generic[T]`
            Expr::Index { base, .. } => self.resolve_through(module, base, aliases),
            _ => None,
        }
    }
}

fn is_dotted(ir: &Module, expr: ExprId) -> bool {
    match ir.expr(expr) {
        Expr::Var(_) => true,
        Expr::Attr { base, .. } => is_dotted(ir, base),
        _ => false,
    }
}
