//! Names that are bound to exactly one expression.

use super::{Binding, ModIdx, Program, Resolved};
use crate::ir::{Expr, ExprId, FuncId, Module, Stmt, Var};
use crate::sym::Sym;

impl Program {
    /// The only expression that a name is bound to, in any file of the project, with its file.
    pub fn bound_to(&self, module: ModIdx, name: ExprId) -> Option<(ModIdx, ExprId)> {
        let Some(Resolved::Variable(m, slot)) = self.resolve_expr(module, name) else { return None };
        match self.get(m).bindings.get(usize::from(slot)) {
            Some(&Binding::Value(e)) => Some((m, e)),
            _ => None,
        }
    }

    /// The only expression that the body of a class, or of a base, assigns to an attribute: `Op.KINDS`.
    pub fn bound_in_class(&self, module: ModIdx, attribute: ExprId) -> Option<(ModIdx, ExprId)> {
        let Expr::Attr { base, name } = self.get(module).ir.expr(attribute) else { return None };
        let Some(Resolved::Class(key)) = self.resolve_expr(module, base) else { return None };
        self.class(key).mro.iter().find_map(|key| {
            let ir = &self.get(key.module).ir;
            Some((key.module, set_once(ir, ir.class(key.class).body, name)?))
        })
    }
}

/// The value that the statements of a body assign to the name, if exactly one of them does.
fn set_once(ir: &Module, body: FuncId, name: Sym) -> Option<ExprId> {
    let function = ir.function(body);
    let is_it = |t: ExprId| matches!(ir.expr(t), Expr::Var(Var::Local(slot)) if function.slots.get(usize::from(slot)) == Some(&name));
    let mut given = ir.block(function.body).iter().filter_map(|&s| match *ir.stmt(s) {
        Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| is_it(t)) => Some(value),
        Stmt::AnnAssign { target, value: Some(value), .. } if is_it(target) => Some(value),
        _ => None,
    });
    given.next().filter(|_| given.next().is_none())
}
