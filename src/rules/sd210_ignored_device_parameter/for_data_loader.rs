//! SD210 ignored-device-parameter: workers of data loaders work on the CPU, whatever device the function has.

use crate::ir::{Call, Expr, ExprId, Function, Stmt};
use crate::link::Resolved;
use crate::rules::shared::file::File;
use crate::span::Span;

impl File<'_> {
    /// Is it created for a data loader, whose workers run on the CPU: `DataLoader(…, collate_fn=Collate())`? The batches must be moved
    /// after that.
    pub(super) fn works_for_loader(&self, function: &Function, at: Span) -> bool {
        let loads = |call: &Call<'_>| {
            matches!(self.cx.program.resolve_expr(self.module, call.func),
                Some(Resolved::External(path)) if path.as_str() == "torch.utils.data.DataLoader")
        };
        let named = self.variable_for(function, at);
        let is_it = |e: ExprId| self.ir.span(e) == at || named == Some(self.ir.expr(e));
        let loader = self.inside(function).find_map(|(_, e, span)| {
            let Expr::Call(call) = e else { return None };
            let call = self.ir.call(call);
            (call.args.iter().any(|a| is_it(a.value)) && loads(&call)).then_some(span)
        });
        loader.is_some_and(|loader| self.sends_batches(function, loader))
    }

    /// The variable to which a function assigns the expression at `at`.
    fn variable_for(&self, function: &Function, at: Span) -> Option<Expr> {
        self.ir.stmts[self.ir.stmts_of(function)].iter().find_map(|s| match *s {
            Stmt::Assign { targets, value } if self.ir.span(value) == at => {
                self.ir.list(targets).first().map(|&t| self.ir.expr(t))
            }
            _ => None,
        })
    }

    /// Does a loop over the loader move anything to a device?
    fn sends_batches(&self, function: &Function, loader: Span) -> bool {
        let named = self.variable_for(function, loader);
        let over = |iter: ExprId| {
            let part = |n: usize| self.ir.expr_spans[n] == loader || named == Some(self.ir.exprs[n]);
            self.ir.exprs_in(iter).any(part)
        };
        let sends = |whole: Span| {
            self.inside(function).any(|(_, e, span)| {
                whole.contains(span)
                    && matches!(e, Expr::Call(call) if matches!(self.ir.expr(self.ir.call(call).func),
                        Expr::Attr { name, .. } if matches!(name.as_str(), "to" | "cuda")))
            })
        };
        self.ir.stmts_of(function).any(|n| match self.ir.stmts[n] {
            Stmt::For { iter, .. } => over(iter) && sends(self.ir.stmt_spans[n]),
            _ => false,
        })
    }
}
