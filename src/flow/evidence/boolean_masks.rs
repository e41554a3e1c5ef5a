//! Comparisons as indices: `x[x > 0]`. A comparison of tensors gives truth values, which select elements. It is not a
//! number that could be an index.

use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::ir::{BinOp, CmpOp, Expr, ExprId, Stmt, UnaryOp, Var};
use crate::words::Words;

/// Tensor methods whose result has a truth value for each element.
static ASKS: Words = Words::of("give truth values");

impl Interp<'_> {
    /// The value of an index that is a comparison, such as `places[tokens == token]`. A single truth value selects no
    /// elements. So if `tokens` may be a tensor, it is one, and the comparison gives a tensor.
    pub(crate) fn picked_by_comparison(&mut self, i: Value, index: ExprId) -> Value {
        let (Value::Bool(_), Expr::Compare { left, .. }) = (i, self.linked().ir.expr(index)) else {
            return i;
        };
        self.run.muted += 1;
        let compared = self.eval(left);
        self.run.muted -= 1;
        let said = self.values_of(compared).into_iter().find_map(|v| match v {
            Value::Outer(o) if self.is_tensorish(o) => Some(o),
            _ => None,
        });
        let Some(o) = said else { return i };
        self.evidence.tensor_proofs.insert(o);
        let device = self.device_of_outer(o, index);
        self.plain_tensor(device, Dims::ANY)
    }

    /// Whether the index expression is a tensor of truth values by its form: `x > 0`, `(x > 0) & ~seen`, or a variable
    /// that holds nothing else.
    pub(crate) fn are_truth_values(&self, index: ExprId) -> bool {
        let ir = &self.linked().ir;
        match ir.expr(index) {
            Expr::Var(var @ Var::Local(_)) if !self.is_parameter(var) => {
                let body = ir.stmts_of(ir.function(self.here().func));
                let mut given = ir.stmts[body].iter().filter_map(|s| match *s {
                    Stmt::Assign { targets, value } => {
                        ir.list(targets).iter().any(|&t| ir.binds(t, var)).then_some(value)
                    }
                    Stmt::AugAssign { target, value, .. } => ir.binds(target, var).then_some(value),
                    Stmt::For { target, iter, .. } => ir.binds(target, var).then_some(iter),
                    _ => None,
                });
                let truths = |value| !matches!(ir.expr(value), Expr::Var(_)) && self.are_truth_values(value);
                given.next().is_some_and(truths) && given.all(truths)
            }
            _ => self.asks_each(index),
        }
    }

    fn asks_each(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        match ir.expr(e) {
            Expr::Compare { op, .. } => !matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn),
            Expr::Unary { op: UnaryOp::Invert, operand } => self.asks_each(operand),
            Expr::Binary { op: BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor, left, right } => {
                self.asks_each(left) || self.asks_each(right)
            }
            Expr::Call(call) => matches!(ir.expr(ir.call(call).func),
                Expr::Attr { name, .. } if ASKS.has(name.as_str())),
            _ => false,
        }
    }
}
