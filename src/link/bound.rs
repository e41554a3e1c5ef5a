//! Names that are bound to one expression.

use super::{Binding, ModIdx, Program, Resolved};
use crate::ir::ExprId;

impl Program {
    /// The expression that a name is bound to once and for all, in whatever file of the project, with that file.
    pub fn bound_to(&self, module: ModIdx, name: ExprId) -> Option<(ModIdx, ExprId)> {
        let Some(Resolved::Variable(m, slot)) = self.resolve_expr(module, name) else { return None };
        match self.get(m).bindings.get(usize::from(slot)) {
            Some(&Binding::Value(e)) => Some((m, e)),
            _ => None,
        }
    }
}
