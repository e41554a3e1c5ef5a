//! What runs when a class or a function is defined: tests in the class's body, and in the defaults of parameters; and what runs only
//! then.

use super::super::diagram::{FALSE, TRUE};
use super::super::value::Value;
use super::Interp;
use crate::ir::{ClassId, Expr, ExprId, FuncId, Stmt, UnaryOp};
use crate::link::{ModIdx, Resolved};

impl Interp<'_> {
    /// Nothing runs of a function but where its `def` has been reached.
    pub(super) fn after_definition(&mut self, module: ModIdx, func: FuncId) {
        let def = self.def_paths.get(&(module, func)).copied().unwrap_or(TRUE);
        let def = self.settled(def);
        let path = self.d.and(self.path, def);
        if path != FALSE {
            self.path = path;
        }
    }

    /// The tests in a class's body, which is not interpreted.
    pub(super) fn check_tests_of_class(&mut self, class: ClassId) {
        let ir = &self.linked().ir;
        for &s in ir.block(ir.function(ir.class(class).body).body) {
            match *ir.stmt(s) {
                Stmt::Assign { value, .. } | Stmt::AnnAssign { value: Some(value), .. } => {
                    self.check_tests_in(value);
                }
                Stmt::If { test, .. } => self.check_test(test),
                _ => {}
            }
        }
    }

    /// The tests in what a function's parameters are unless they are given.
    pub(super) fn check_tests_of_defaults(&mut self, func: FuncId) {
        for param in &self.linked().ir.function(func).params {
            if let Some(default) = param.default {
                self.check_tests_in(default);
            }
        }
    }

    fn check_tests_in(&mut self, e: ExprId) {
        let ir = &self.linked().ir;
        if matches!(ir.expr(e), Expr::Str(_) | Expr::Int(_) | Expr::Float(_) | Expr::None | Expr::Var(_)) {
            return;
        }
        for n in ir.exprs_in(e) {
            if let Expr::IfElse(id) = ir.exprs[n] {
                self.check_test(ir.if_else(id).test);
            }
        }
    }

    /// Is it a check that is not called, or made of such?
    fn check_test(&mut self, test: ExprId) {
        let ir = &self.linked().ir;
        match ir.expr(test) {
            Expr::And(list) | Expr::Or(list) => {
                for &x in ir.list(list) {
                    self.check_test(x);
                }
            }
            Expr::Unary { op: UnaryOp::Not, operand } => self.check_test(operand),
            Expr::Attr { .. } | Expr::Var(_) => {
                if let Some(Resolved::External(path)) = self.program.resolve_expr(self.here().module, test) {
                    self.check_uncalled(test, Value::External(path));
                }
            }
            _ => {}
        }
    }
}
