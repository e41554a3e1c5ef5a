//! Places that are only reached after a test that excludes MPS: `if x.device.type not in ("cpu", "cuda"): raise`.

use crate::flow::query::path_conditions::conditions;
use crate::ir::{CmpOp, Expr, ExprId, Module, UnaryOp};
use crate::span::Span;

/// The device type of Apple's GPUs.
const MPS: &str = "mps";

/// Whether the place is only reached if some device is known not to be MPS.
pub(crate) fn is_off_mps(ir: &Module, at: Span) -> bool {
    conditions(ir, at).into_iter().any(|(test, outcome)| rules_out(ir, test, outcome))
}

/// Whether this outcome of the test excludes that a device is MPS.
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

/// Whether MPS is the string, or one of the strings in a literal. `None` if an element is not a literal.
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
