//! Tensors of which several elements are one in memory, as `expand` makes them: PyTorch refuses to write into them, wherever they are.

use super::Interp;
use crate::ir::{Expr, ExprId, Module, Stmt, Var};

/// Methods that make such tensors.
const OVERLAYS: &[&str] = &["expand", "expand_as", "broadcast_to"];
/// Methods that may give the same memory: a cast does to the type that it is already.
const SAME_MEMORY: &[&str] = &[
    "bool",
    "detach",
    "double",
    "float",
    "half",
    "int",
    "long",
    "permute",
    "squeeze",
    "t",
    "transpose",
    "unsqueeze",
    "view",
    "view_as",
];

impl Interp<'_> {
    /// `x = rows.expand(n, m)`, then `x += …`: was the variable given such a tensor last?
    pub(super) fn is_overlaid(&self, target: ExprId) -> bool {
        let ir = &self.linked().ir;
        let var @ Expr::Var(Var::Local(_)) = ir.expr(target) else { return false };
        let (at, function) = (ir.span(target), ir.function(self.here().func));
        let given = ir.stmts[ir.stmts_of(function)].iter().filter_map(|s| match *s {
            Stmt::Assign { targets, value } if ir.span(value).end <= at.start => {
                ir.list(targets).iter().any(|&t| ir.expr(t) == var).then_some(value)
            }
            _ => None,
        });
        given.max_by_key(|&value| ir.span(value).start).is_some_and(|value| overlays(ir, value))
    }
}

fn overlays(ir: &Module, mut e: ExprId) -> bool {
    while let Expr::Call(call) = ir.expr(e) {
        let Expr::Attr { base, name } = ir.expr(ir.call(call).func) else { return false };
        if OVERLAYS.contains(&name.as_str()) {
            return true;
        }
        if !SAME_MEMORY.contains(&name.as_str()) {
            return false;
        }
        e = base;
    }
    false
}
