//! Which modules' parameters an optimizer receives.

use crate::flow::domain::value::{ObjId, OuterId, Value};
use crate::flow::machine::Interp;
use crate::ir::{Expr, ExprId, Module, Stmt, Var};

/// The maximum number of expressions to follow from an optimizer's argument.
const MOST_PARTS: usize = 12;

impl Interp<'_> {
    /// The modules on which an expression calls `parameters()`: first modules that the engine knows, then modules from
    /// outside values.
    pub(crate) fn modules_of_parameters(&mut self, e: ExprId) -> (Vec<ObjId>, Vec<OuterId>) {
        let mut said = vec![e];
        self.said_of(e, &mut said);
        let (mut modules, mut outside) = (Vec::new(), Vec::new());
        for part in said {
            for v in self.modules_asked_in(part) {
                match v {
                    Value::Object(id) if self.is_module_object(id) => modules.push(id),
                    Value::Outer(o) => outside.push(o),
                    _ => {}
                }
            }
        }
        (modules, outside)
    }

    /// Adds to `said` the values that this function gave to the variables of the expression, and what it appended to them:
    /// `groups = [{"params": model.parameters()}]`. A variable with several assignments is skipped, because it may have any of
    /// the values. So is a variable that a loop fills with some of the parameters, chosen by name.
    fn said_of(&self, e: ExprId, said: &mut Vec<ExprId>) {
        let ir = &self.linked().ir;
        let here = self.here().func;
        let at = ir.span(e).start;
        for var in ir.exprs_in(e).map(|n| ir.exprs[n]) {
            let Expr::Var(Var::Local(_)) = var else { continue };
            let is_it =
                |t: ExprId| ir.expr(t) == var && ir.function_around(t) == here && ir.span(t).start < at;
            let mut given = ir.stmts.iter().filter_map(|s| match *s {
                Stmt::Assign { targets, value } => {
                    ir.list(targets).iter().any(|&t| is_it(t)).then_some(value)
                }
                _ => None,
            });
            let (Some(value), None) = (given.next(), given.next()) else { continue };
            let added = ir.stmts.iter().filter_map(|s| match *s {
                Stmt::Expr(e) => added_to(ir, e).filter(|&(to, _)| is_it(to)).map(|(_, what)| what),
                _ => None,
            });
            for x in std::iter::once(value).chain(added) {
                if !said.contains(&x) && said.len() < MOST_PARTS {
                    said.push(x);
                    self.said_of(x, said);
                }
            }
        }
    }

    fn modules_asked_in(&mut self, e: ExprId) -> Vec<Value> {
        let mut owners = Vec::new();
        let linked = self.linked();
        let span = linked.ir.span(e);
        for (n, expr) in linked.ir.exprs.iter().enumerate() {
            let Expr::Call(call) = *expr else { continue };
            let Expr::Attr { base, name } = linked.ir.expr(linked.ir.call(call).func) else { continue };
            if matches!(name.as_str(), "parameters" | "named_parameters")
                && span.contains(linked.ir.expr_spans[n])
                && matches!(linked.ir.expr(base), Expr::Var(_) | Expr::Attr { .. })
            {
                self.run.muted += 1;
                owners.push(self.eval(base));
                self.run.muted -= 1;
            }
        }
        owners
    }
}

/// `groups.append(x)`: the list `groups` and the element `x`.
fn added_to(ir: &Module, e: ExprId) -> Option<(ExprId, ExprId)> {
    let Expr::Call(id) = ir.expr(e) else { return None };
    let call = ir.call(id);
    match (ir.expr(call.func), call.args) {
        (Expr::Attr { base, name }, [x]) if matches!(name.as_str(), "append" | "extend") => {
            Some((base, x.value))
        }
        _ => None,
    }
}
