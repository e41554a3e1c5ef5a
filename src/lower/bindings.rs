//! The names that a body binds. They are collected before the body is lowered, because Python decides by the whole body whether a name is
//! local.

use rustpython_ast::visitor::{Visitor, walk_expr, walk_stmt};
use rustpython_ast::{ElifElseClause, ExceptHandler, Expr, Parameters, Pattern, Stmt};
use rustpython_text_size::Ranged;

use super::scope::{Binding, Scope};
use crate::ir::{FuncId, FuncKind};

/// The positions of `:=` in a text, in order, including those in strings. Only expressions that contain one are searched for what they
/// bind.
#[derive(Clone, Copy)]
pub(super) struct Marks<'a>(pub &'a [u32]);

impl Marks<'_> {
    /// Can the node contain a `:=`?
    pub fn may_be_in(self, node: impl Ranged) -> bool {
        let place = super::span(node);
        let first = self.0.partition_point(|&at| at < place.start);
        self.0.get(first).is_some_and(|&at| at < place.end)
    }
}

/// Adds to `scope` the names that the statements bind.
pub(super) fn bind_body(scope: &mut Scope, body: &[Stmt], walruses: Marks<'_>) {
    Binder { scope, walruses }.body(body);
}

/// Adds to `scope` the names that the `:=` in an expression bind.
pub(super) fn bind_expr(scope: &mut Scope, expr: &Expr) {
    Walruses { scope }.visit_expr(expr);
}

/// Calls `bind` with the names that a target of an assignment binds.
pub(super) fn target_names<'a>(target: &'a Expr, bind: &mut impl FnMut(&'a str)) {
    match target {
        Expr::Name(name) => bind(name.id.as_str()),
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|e| target_names(e, bind)),
        Expr::List(list) => list.elts.iter().for_each(|e| target_names(e, bind)),
        Expr::Starred(starred) => target_names(&starred.value, bind),
        _ => {}
    }
}

/// Calls `bind` with the names that a pattern captures, in order.
pub(super) fn pattern_names<'a>(pattern: &'a Pattern, bind: &mut impl FnMut(&'a str)) {
    match pattern {
        Pattern::MatchValue(_) | Pattern::MatchSingleton(_) => {}
        Pattern::MatchSequence(p) => p.patterns.iter().for_each(|p| pattern_names(p, bind)),
        Pattern::MatchOr(p) => p.patterns.iter().for_each(|p| pattern_names(p, bind)),
        Pattern::MatchClass(p) => {
            p.arguments.patterns.iter().for_each(|p| pattern_names(p, bind));
            p.arguments.keywords.iter().for_each(|k| pattern_names(&k.pattern, bind));
        }
        Pattern::MatchMapping(p) => {
            p.patterns.iter().for_each(|p| pattern_names(p, bind));
            p.rest.iter().for_each(|name| bind(name.as_str()));
        }
        Pattern::MatchStar(p) => p.name.iter().for_each(|name| bind(name.as_str())),
        Pattern::MatchAs(p) => {
            p.pattern.iter().for_each(|p| pattern_names(p, bind));
            p.name.iter().for_each(|name| bind(name.as_str()));
        }
    }
}

/// Adds to the module's scope the names that functions and class bodies bind as `global`. `declarations`: the positions of possible
/// `global` statements.
pub(super) fn bind_globals(module: &mut Scope, body: &[Stmt], walruses: Marks<'_>, declarations: Marks<'_>) {
    Globals { module, walruses, declarations }.visit_body(body);
}

struct Binder<'s> {
    scope: &'s mut Scope,
    walruses: Marks<'s>,
}

impl Binder<'_> {
    fn body(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.stmt(stmt);
        }
    }

    fn target(&mut self, target: &Expr) {
        target_names(target, &mut |name| {
            self.scope.bind(name);
        });
    }

    fn stmt(&mut self, stmt: &Stmt) {
        if self.walruses.may_be_in(stmt) {
            walk_stmt(&mut Walruses { scope: self.scope }, stmt);
        }
        match stmt {
            Stmt::FunctionDef(s) => {
                self.scope.bind(&s.name);
            }
            Stmt::ClassDef(s) => {
                self.scope.bind(&s.name);
            }
            Stmt::Assign(s) => s.targets.iter().for_each(|t| self.target(t)),
            Stmt::AugAssign(s) => self.target(&s.target),
            Stmt::AnnAssign(s) => self.target(&s.target),
            Stmt::TypeAlias(s) => self.target(&s.name),
            Stmt::Delete(s) => s.targets.iter().for_each(|t| self.target(t)),
            Stmt::Import(s) => {
                for alias in &s.names {
                    let top = alias.name.split('.').next().unwrap_or_default();
                    self.scope.bind(alias.asname.as_ref().map_or(top, |name| name.as_str()));
                }
            }
            Stmt::ImportFrom(s) => {
                for alias in s.names.iter().filter(|alias| alias.name.as_str() != "*") {
                    self.scope.bind(alias.asname.as_ref().unwrap_or(&alias.name));
                }
            }
            Stmt::Global(s) => s.names.iter().for_each(|n| self.scope.declare(n, Binding::Global)),
            Stmt::Nonlocal(s) => s.names.iter().for_each(|n| self.scope.declare(n, Binding::Nonlocal)),
            _ => self.compound(stmt),
        }
    }

    fn compound(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(s) => {
                self.target(&s.target);
                self.body(&s.body);
                self.body(&s.orelse);
            }
            Stmt::While(s) => {
                self.body(&s.body);
                self.body(&s.orelse);
            }
            Stmt::If(s) => {
                self.body(&s.body);
                for ElifElseClause { body, .. } in &s.elif_else_clauses {
                    self.body(body);
                }
            }
            Stmt::With(s) => {
                s.items.iter().filter_map(|item| item.optional_vars.as_deref()).for_each(|t| self.target(t));
                self.body(&s.body);
            }
            Stmt::Match(s) => {
                for case in &s.cases {
                    pattern_names(&case.pattern, &mut |name| {
                        self.scope.bind(name);
                    });
                    self.body(&case.body);
                }
            }
            Stmt::Try(s) => {
                self.body(&s.body);
                for ExceptHandler::ExceptHandler(handler) in &s.handlers {
                    handler.name.iter().for_each(|name| {
                        self.scope.bind(name);
                    });
                    self.body(&handler.body);
                }
                self.body(&s.orelse);
                self.body(&s.finalbody);
            }
            _ => {}
        }
    }
}

/// Finds `:=` in the expressions of a statement, but not in its body or in the body of a lambda.
struct Walruses<'s> {
    scope: &'s mut Scope,
}

impl<'a> Visitor<'a> for Walruses<'_> {
    fn visit_body(&mut self, _: &'a [Stmt]) {}

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Named(named) => {
                target_names(&named.target, &mut |name| {
                    self.scope.bind(name);
                });
                self.visit_expr(&named.value);
            }
            Expr::Lambda(lambda) => {
                lambda.parameters.iter().for_each(|parameters| self.visit_parameters(parameters));
            }
            _ => walk_expr(self, expr),
        }
    }

    fn visit_parameters(&mut self, parameters: &'a Parameters) {
        for parameter in parameters.iter_non_variadic_params() {
            parameter.default.iter().for_each(|default| self.visit_expr(default));
        }
    }
}

/// Visits all function and class bodies of the file that can contain a `global` statement.
struct Globals<'s> {
    module: &'s mut Scope,
    walruses: Marks<'s>,
    declarations: Marks<'s>,
}

impl<'a> Visitor<'a> for Globals<'_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if !self.declarations.may_be_in(stmt) {
            return;
        }
        let body = match stmt {
            Stmt::FunctionDef(s) => &s.body,
            Stmt::ClassDef(s) => &s.body,
            _ => return walk_stmt(self, stmt),
        };
        let mut scope = Scope::new(FuncId(0), FuncKind::Function, None);
        bind_body(&mut scope, body, self.walruses);
        for name in scope.global_binds {
            self.module.bind(name.as_str());
        }
        self.visit_body(body);
    }

    fn visit_expr(&mut self, _: &'a Expr) {}
}
