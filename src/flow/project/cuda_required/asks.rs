//! Tests with an outcome that is only possible with CUDA.

use super::MOVE;
use super::refuses::Refuses;
use crate::flow::project::checkpoints::saved_calls::returns;
use crate::flow::query::call_sites::own_method;
use crate::ir::{Call, CmpOp, Expr, ExprId, Module, UnaryOp};
use crate::link::{ModIdx, Resolved};

/// The maximum number of functions and names that a test is followed through.
const MAX_STEPS: u32 = 4;

impl Refuses<'_> {
    /// The outcome of the test that is only possible with CUDA, if there is one.
    pub(super) fn only_with_cuda(&self, test: ExprId) -> Option<bool> {
        [true, false].into_iter().find(|&outcome| self.shows(test, outcome, MAX_STEPS))
    }

    /// Whether this outcome of the test is only possible with CUDA.
    fn shows(&self, test: ExprId, outcome: bool, steps: u32) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        let ir = self.ir();
        let part = |&e: &ExprId| self.shows(e, outcome, steps);
        match ir.expr(test) {
            Expr::Unary { op: UnaryOp::Not, operand } => self.shows(operand, !outcome, steps),
            Expr::And(list) if outcome => ir.list(list).iter().any(part),
            Expr::Or(list) if !outcome => ir.list(list).iter().any(part),
            Expr::And(list) | Expr::Or(list) => ir.list(list).iter().all(part),
            Expr::Compare { op: CmpOp::Eq | CmpOp::In, left, right } => {
                outcome && is_type_of_device(ir, left) && self.names_only_cuda(self.module, right, steps)
            }
            Expr::Compare { op: CmpOp::NotEq | CmpOp::NotIn, left, right } => {
                !outcome && is_type_of_device(ir, left) && self.names_only_cuda(self.module, right, steps)
            }
            Expr::Attr { name, .. } => outcome && name.as_str() == "is_cuda",
            Expr::Call(id) => outcome && self.call_shows(ir.call(id), steps),
            _ => false,
        }
    }

    /// `torch.cuda.is_available()`, or a function of the project that is true only if that is true
    fn call_shows(&self, call: Call<'_>, steps: u32) -> bool {
        let (m, f) = match self.program.resolve_expr(self.module, call.func) {
            Some(Resolved::External(path)) => return path.as_str() == "torch.cuda.is_available",
            Some(Resolved::Function(m, f)) => (m, f),
            _ => match own_method(self.program, self.module, self.func, call.func) {
                Some(method) => method,
                None => return false,
            },
        };
        let there = Refuses { module: m, func: f, ..*self };
        let ir = there.ir();
        let function = ir.function(f);
        if function.is_async || function.is_generator {
            return false;
        }
        // A result after a refusal is only reached with CUDA.
        let after = |e: ExprId| self.known.get(&(m, f)).is_some_and(|point| point.after <= ir.span(e).start);
        let shows = |e: Option<ExprId>| match e.map(|e| (e, ir.expr(e))) {
            None | Some((_, Expr::None | Expr::False)) => true,
            Some((e, _)) => after(e) || there.shows(e, true, steps),
        };
        let given = returns(ir, f);
        !given.is_empty() && given.into_iter().all(shows)
    }

    /// `"cuda"`, `("cuda",)`, or a variable or class attribute that holds one of them
    fn names_only_cuda(&self, m: ModIdx, e: ExprId, steps: u32) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        let ir = &self.program.get(m).ir;
        match ir.expr(e) {
            Expr::Str(text) => text.as_str() == MOVE,
            Expr::Tuple(list) | Expr::List(list) | Expr::Set(list) => {
                list.len > 0 && ir.list(list).iter().all(|&e| self.names_only_cuda(m, e, steps))
            }
            _ => self
                .program
                .bound_to(m, e)
                .or_else(|| self.program.bound_in_class(m, e))
                .is_some_and(|(m, e)| self.names_only_cuda(m, e, steps)),
        }
    }
}

/// `x.device.type`
fn is_type_of_device(ir: &Module, e: ExprId) -> bool {
    matches!(ir.expr(e), Expr::Attr { base, name } if name.as_str() == "type"
        && matches!(ir.expr(base), Expr::Attr { name, .. } if name.as_str() == "device"))
}
