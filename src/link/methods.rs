//! Methods of classes of the project, by name.

use super::{ClassKey, ModIdx, Program, Resolved};
use crate::ir::{Expr, ExprId, FuncId};
use crate::reads;
use crate::sym::Sym;

impl Program {
    /// `Camera.from_pose(…)`: the static method or class method of a class of the project.
    pub fn method_of_class(&self, module: ModIdx, func: ExprId) -> Option<(ModIdx, FuncId)> {
        let Expr::Attr { base, name } = self.get(module).ir.expr(func) else { return None };
        let Resolved::Class(key) = self.resolve_expr(module, base)? else { return None };
        let (m, f) = self.find_method(key, name)?;
        let ir = &self.get(m).ir;
        let of_class = |&d: &ExprId| {
            matches!(self.resolve_expr(m, d), Some(Resolved::External(path))
                if matches!(path.as_str(), "builtins.staticmethod" | "builtins.classmethod"))
        };
        ir.list(ir.function(f).decorators).iter().any(of_class).then_some((m, f))
    }

    /// The method of a class or of one of its bases in the project, in method resolution order.
    pub fn find_method(&self, class: ClassKey, name: Sym) -> Option<(ModIdx, FuncId)> {
        if !self.names_method(name) {
            return None;
        }
        self.class(class).mro.iter().find_map(|&key| self.own_method(key, name).map(|f| (key.module, f)))
    }

    /// Has any class a method of this name? A quick check, which reads no file: while reads are recorded, the answer is always yes.
    pub fn names_method(&self, name: Sym) -> bool {
        reads::is_recording() || self.method_names.contains(name)
    }

    /// The method of the class itself.
    pub fn own_method(&self, class: ClassKey, name: Sym) -> Option<FuncId> {
        self.get(class.module).methods.get(&(class.class, name)).copied()
    }
}
