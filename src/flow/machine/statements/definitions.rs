//! What runs when a class or a function is defined: tests in the class's body, and in the defaults of parameters; and what runs only
//! then.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::ir::{ClassId, Expr, ExprId, ExprList, FuncId, FuncKind, Module, Stmt, UnaryOp};
use crate::link::{ModIdx, Resolved};

impl Interp<'_> {
    /// Nothing runs of a function but where its `def` has been reached.
    pub(crate) fn after_definition(&mut self, module: ModIdx, func: FuncId) {
        let def = self.names.def_paths.get(&(module, func)).copied().unwrap_or(TRUE);
        let def = self.settled(def);
        let path = self.d.and(self.path, def);
        if path != FALSE {
            self.path = path;
        }
    }

    /// What Python evaluates as it defines a function: the defaults of its parameters and what its decorators are given.
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

    /// Evaluates an expression of a class's body, for what it does.
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

    /// What Python evaluates as it defines a class: its bases, what they and its decorators are given, and the same of its methods.
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

    /// The tests in a class's body, which is not interpreted.
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

    /// The tests in what a function's parameters are unless they are given.
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

/// The arguments that decorators are called with.
fn given_to(ir: &Module, decorators: ExprList) -> impl Iterator<Item = ExprId> {
    ir.list(decorators).iter().flat_map(|&d| match ir.expr(d) {
        Expr::Call(id) => ir.call(id).args.iter().map(|a| a.value).collect(),
        _ => Vec::new(),
    })
}

/// Is anything called in the expression? Nothing else of it has an effect.
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
