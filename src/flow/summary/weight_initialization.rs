//! Tensors that become a module's weights.
//!
//! Who makes weights sets a module up, or rebuilds it for other data: `self.out.weight.data = torch.rand(n, m).to(device)`.

use crate::flow::machine::Interp;
use crate::ir::{Expr, ExprId, Stmt, Var};
use crate::link::Resolved;
use crate::span::Span;
use crate::sym::Sym;

impl Interp<'_> {
    /// Does a part of this statement's value go into a parameter as a whole?
    pub(crate) fn becomes_weight(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let (at, within) = (ir.span(e), ir.function(self.here().func));
        if self.is_made_parameter(&|arg| ir.span(arg).contains(at)) {
            return true;
        }
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
            // `weight = torch.cat([weight, more])`, and later on `layer.weight = nn.Parameter(weight)`
            var @ Expr::Var(Var::Local(_)) => {
                self.is_made_parameter(&|arg| ir.expr(arg) == var && ir.span(arg).start > at.end)
            }
            _ => false,
        })
    }

    /// Does the function that runs make a parameter of such an expression?
    fn is_made_parameter(&self, of: &dyn Fn(ExprId) -> bool) -> bool {
        let (ir, module) = (&self.linked().ir, self.here().module);
        // One that is kept nowhere is no module's.
        let kept = |at: Span| {
            ir.stmts_of(ir.function(self.here().func)).any(|n| match ir.stmts[n] {
                Stmt::Assign { targets, value } => {
                    ir.span(value).contains(at)
                        && ir
                            .list(targets)
                            .iter()
                            .any(|&t| matches!(ir.expr(t), Expr::Attr { .. } | Expr::Index { .. }))
                }
                Stmt::Expr(e) => {
                    let registers = |name: Sym| matches!(name.as_str(), "register_parameter" | "setattr");
                    let Expr::Call(call) = ir.expr(e) else { return false };
                    ir.span(e).contains(at) && ir.last_name(ir.call(call).func).is_some_and(registers)
                }
                _ => false,
            })
        };
        ir.exprs_of(ir.function(self.here().func)).any(|n| {
            let Expr::Call(id) = ir.exprs[n] else { return false };
            let call = ir.call(id);
            let parameter = |path| crate::torch::canonical(path).as_str() == "torch.nn.Parameter";
            call.args.iter().any(|a| of(a.value))
                && kept(ir.expr_spans[n])
                && matches!(self.program.resolve_expr(module, call.func), Some(Resolved::External(path)) if parameter(path))
        })
    }
}
