//! Methods that a class leaves to its subclasses.

use crate::flow::machine::Interp;
use crate::ir::{Expr, ExprId, FuncId, Module, Stmt};
use crate::link::ModIdx;

impl Interp<'_> {
    /// Whether the method is abstract: it only raises, as in `def convert(self, state): raise NotImplementedError`, or
    /// it is empty and marked as abstract. A real call reaches another method.
    pub(crate) fn is_left_open(&self, module: ModIdx, func: FuncId) -> bool {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        if function.class.is_none() || function.name == self.known.init {
            return false;
        }
        let said = ir.block(function.body).iter().map(|&s| ir.stmt(s)).filter(|s| !says_nothing(ir, s));
        let mut raised = said.map(|s| match *s {
            Stmt::Raise { exception: Some(e), .. } => is_not_implemented(ir, e),
            _ => false,
        });
        match raised.next() {
            Some(raises) => raises,
            None => ir
                .list(function.decorators)
                .iter()
                .any(|&d| ir.last_name(d).is_some_and(|name| name.as_str() == "abstractmethod")),
        }
    }
}

/// Whether the statement is a docstring, `...` or `pass`.
fn says_nothing(ir: &Module, stmt: &Stmt) -> bool {
    match *stmt {
        Stmt::Pass => true,
        Stmt::Expr(e) => matches!(ir.expr(e), Expr::Str(_) | Expr::Ellipsis),
        _ => false,
    }
}

/// Whether the expression is `NotImplementedError`, with or without a message.
fn is_not_implemented(ir: &Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::Call(call) => ir.is_builtin(ir.call(call).func, "NotImplementedError"),
        _ => ir.is_builtin(e, "NotImplementedError"),
    }
}
