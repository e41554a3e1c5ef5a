//! Device texts made of the index of a device that has none.

use crate::flow::domain::value::{Device, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::ir::{Expr, ExprId, Stmt, Var};

impl Interp<'_> {
    /// `f"{kind}:{torch.device(device).index}"`, where that is a device that was named without an index: `cuda:None`.
    pub(crate) fn check_missing_index(&mut self, parts: crate::ir::ExprList, e: ExprId) {
        let linked = self.linked();
        let ir = &linked.ir;
        let (kind, colon, index) = match *ir.list(parts) {
            [kind, colon, index] => (Some(kind), colon, index),
            [colon, index] => (None, colon, index),
            _ => return,
        };
        let Expr::Str(before) = ir.expr(colon) else { return };
        let choices = match ir.expr(index) {
            Expr::Or(list) => ir.list(list),
            _ => std::slice::from_ref(&index),
        };
        let is_index = |e: ExprId| matches!(ir.expr(e), Expr::Attr { name, .. } if name.as_str() == "index");
        if !choices.iter().any(|&c| is_index(c)) || self.run.muted > 0 || self.asks_for_index(e) {
            return;
        }
        self.run.muted += 1;
        let names = match kind {
            Some(kind) => before.as_str() == ":" && matches!(self.eval(kind), Value::Device(_)),
            None => before.as_str() == "cuda:",
        };
        let none = names
            && choices.iter().all(|&c| match ir.expr(c) {
                Expr::Attr { base, .. } if is_index(c) => {
                    let v = self.eval(base);
                    self.is_named_without_index(v)
                }
                // `gpu_id or device.index`, of which callers may leave out either.
                Expr::Var(Var::Local(slot)) => {
                    let params = &ir.function(self.here().func).params;
                    let default = params.iter().find(|p| p.slot == slot).and_then(|p| p.default);
                    default.is_some_and(|d| ir.expr(d) == Expr::None)
                }
                _ => false,
            });
        self.run.muted -= 1;
        if none {
            self.tell_invalid("cuda:None", e);
        }
    }

    /// A device that was written without an index, or the default of a parameter that was.
    fn is_named_without_index(&self, v: Value) -> bool {
        let Value::Device(d) = v else { return false };
        self.device_leaves(d).iter().all(|&(_, d, _)| match d {
            Device::Cuda(None) => true,
            Device::Named(o) => matches!(self.default_in_source(o), Some(Expr::Str(s))
                if matches!(crate::flow::models::devices::from_values::parse_device(s.as_str()), Some(Device::Cuda(None) | Device::Other(_)))),
            _ => false,
        })
    }

    /// What a parameter is that a caller leaves out.
    fn default_in_source(&self, o: crate::flow::domain::value::OuterId) -> Option<Expr> {
        let OuterKey::Param { module, func, index } = self.t.get_outer(o).key else { return None };
        let ir = &self.program.get(module).ir;
        ir.function(func).params.get(usize::from(index))?.default.map(|d| ir.expr(d))
    }

    /// Is there a test of the index around?
    fn asks_for_index(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let at = ir.span(e);
        let asks = |test: ExprId| {
            let test = ir.span(test);
            ir.exprs.iter().zip(&ir.expr_spans).any(|(x, &s)| {
                test.contains(s) && matches!(x, Expr::Attr { name, .. } if name.as_str() == "index")
            })
        };
        let statements = ir.stmts.iter().zip(&ir.stmt_spans);
        let choices = ir.exprs.iter().zip(&ir.expr_spans);
        statements
            .filter(|&(_, s)| s.contains(at))
            .any(|(s, _)| matches!(*s, Stmt::If { test, .. } if asks(test)))
            || choices
                .filter(|&(_, s)| s.contains(at))
                .any(|(x, _)| matches!(*x, Expr::IfElse(id) if asks(ir.if_else(id).test)))
    }
}
