//! Tensors that become a module's weights.
//!
//! Such code sets up a module, or rebuilds it for other data: `self.out.weight.data = torch.rand(n, m).to(device)`.

use crate::flow::machine::Interp;
use crate::ir::{Expr, ExprId, Stmt};

impl Interp<'_> {
    /// Whether a part of this statement's value replaces the whole content of a parameter.
    pub(crate) fn becomes_weight(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let (at, within) = (ir.span(e), ir.function(self.here().func));
        let given = ir.stmts[ir.stmts_of(within)].iter().filter_map(|s| match *s {
            Stmt::Assign { targets, value } if ir.span(value).contains(at) => Some(ir.list(targets)),
            _ => None,
        });
        given.flatten().any(|&target| match ir.expr(target) {
            Expr::Attr { base, name } => {
                let weight = |name: &str| matches!(name, "weight" | "bias");
                name.as_str() == "data"
                    && matches!(ir.expr(base), Expr::Attr { name, .. } if weight(name.as_str()))
            }
            _ => false,
        })
    }
}
