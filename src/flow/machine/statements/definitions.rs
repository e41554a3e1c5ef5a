//! Definitions: what runs when a class or function is defined, tests in class bodies and parameter defaults, and what
//! runs only after a definition.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::ir::{ClassId, Expr, ExprId, ExprList, FuncId, FuncKind, Module, Stmt, UnaryOp};
use crate::link::{ModIdx, Resolved};

impl Interp<'_> {
    /// Restricts the path to where the function's `def` was reached.
    pub(crate) fn after_definition(&mut self, module: ModIdx, func: FuncId) {
        let def = self.names.def_paths.get(&(module, func)).copied().unwrap_or(TRUE);
        let def = self.settled(def);
        let path = self.d.and(self.path, def);
        if path != FALSE {
            self.path = path;
        }
    }

    /// Evaluates what Python evaluates at the definition of a function: the defaults of its parameters, and the
    /// arguments of its decorators.
    pub(crate) fn runs_at_definition(&mut self, module: ModIdx, func: FuncId) {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        let scope = function.parent.unwrap_or(FuncId(0));
        let in_class = ir.function(scope).kind == FuncKind::ClassBody;
        let defaults = function.params.iter().filter_map(|p| p.default);
        for e in defaults.chain(given_to(ir, function.decorators)) {
            match calls_something(ir, e) {
                true if in_class => self.eval_in_class(module, scope, e),
                true => drop(self.eval(e)),
                false => {}
            }
        }
    }

    /// Evaluates an expression of a class body for its effects.
    fn eval_in_class(&mut self, module: ModIdx, body: FuncId, e: ExprId) {
        if self.run.depth >= crate::flow::machine::MAX_DEPTH {
            return;
        }
        let (base, frame) = (self.scope_base(module, body), self.frame);
        self.push_frame(module, body, base, None);
        self.run.depth += 1;
        self.eval(e);
        self.run.depth -= 1;
        self.frame = frame;
    }

    /// Evaluates what Python evaluates at the definition of a class: its bases, the arguments of bases and decorators,
    /// and the same for its methods.
    pub(crate) fn runs_at_definition_of_class(&mut self, class: ClassId) {
        let module = self.here().module;
        let ir = &self.program.get(module).ir;
        let written = ir.class(class);
        let bases = ir.args(written.bases).iter().map(|a| a.value);
        for e in bases.chain(given_to(ir, written.decorators)) {
            if calls_something(ir, e) {
                self.eval(e);
            }
        }
        for &(_, f) in &written.methods {
            self.runs_at_definition(module, f);
        }
    }

    /// Checks the tests in a class body, which is not interpreted.
    pub(crate) fn check_tests_of_class(&mut self, class: ClassId) {
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

    /// Checks the tests in a function's parameter defaults.
    pub(crate) fn check_tests_of_defaults(&mut self, func: FuncId) {
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

    /// Checks a test for functions that the program forgot to call, and the parts of a compound test.
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

/// The arguments that decorators are called with.
fn given_to(ir: &Module, decorators: ExprList) -> impl Iterator<Item = ExprId> {
    ir.list(decorators).iter().flat_map(|&d| match ir.expr(d) {
        Expr::Call(id) => ir.call(id).args.iter().map(|a| a.value).collect(),
        _ => Vec::new(),
    })
}

/// Whether the expression contains a call. Other expressions have no effects.
fn calls_something(ir: &Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::Str(_)
        | Expr::Int(_)
        | Expr::Float(_)
        | Expr::None
        | Expr::True
        | Expr::False
        | Expr::Var(_) => false,
        _ => ir.exprs_in(e).any(|n| matches!(ir.exprs[n], Expr::Call(_))),
    }
}
