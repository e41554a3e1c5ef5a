//! Places that are only come to where a test has said that something is not on MPS: `if x.device.type not in ("cpu", "cuda"): raise`.

use crate::flow::query::path_conditions::conditions;
use crate::ir::{CmpOp, Expr, ExprId, Module, UnaryOp};
use crate::span::Span;

/// Apple's devices, by their type.
const MPS: &str = "mps";

/// Is the place only come to where some device is known not to be MPS?
pub(crate) fn is_off_mps(ir: &Module, at: Span) -> bool {
    conditions(ir, at).into_iter().any(|(test, outcome)| rules_out(ir, test, outcome))
}

/// Does the test, if it comes out so, say that a device is another one?
fn rules_out(ir: &Module, test: ExprId, outcome: bool) -> bool {
    let any = |list| ir.list(list).iter().any(|&e| rules_out(ir, e, outcome));
    match ir.expr(test) {
        Expr::Unary { op: UnaryOp::Not, operand } => rules_out(ir, operand, !outcome),
        Expr::And(list) if outcome => any(list),
        Expr::Or(list) if !outcome => any(list),
        Expr::Attr { name, .. } => outcome && matches!(name.as_str(), "is_cuda" | "is_cpu"),
        Expr::Compare { op, left, right } if is_type(ir, left) => {
            let Some(names_mps) = names_mps(ir, right) else { return false };
            match op {
                CmpOp::Eq | CmpOp::In => names_mps != outcome,
                CmpOp::NotEq | CmpOp::NotIn => names_mps == outcome,
                _ => false,
            }
        }
        _ => false,
    }
}

/// `x.device.type`
fn is_type(ir: &Module, e: ExprId) -> bool {
    matches!(ir.expr(e), Expr::Attr { base, name } if name.as_str() == "type"
        && ir.last_name(base).is_some_and(|name| name.as_str() == "device"))
}

/// Is MPS the text, or among the texts that are written down? Of several, one that is left out may be the device.
fn names_mps(ir: &Module, e: ExprId) -> Option<bool> {
    match ir.expr(e) {
        Expr::Str(text) => Some(text.as_str() == MPS),
        Expr::Tuple(list) | Expr::List(list) | Expr::Set(list) => {
            let texts: Option<Vec<bool>> = ir.list(list).iter().map(|&e| names_mps(ir, e)).collect();
            texts.map(|texts| texts.contains(&true))
        }
        _ => None,
    }
}
