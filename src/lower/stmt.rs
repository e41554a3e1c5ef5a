//! Statements.

use rustpython_ast::Stmt as Ast;
use rustpython_ast::token::TokenKind;
use rustpython_ast::{ElifElseClause, ExceptHandler, StmtImport, StmtImportFrom, StmtTry};
use rustpython_text_size::Ranged;

use super::expr::binary;
use super::lowerer::{Lowerer, number};
use super::span;
use crate::ir::{Block, Handler, HandlerList, Import, ImportList, Stmt, StmtId};
use crate::span::Span;
use crate::sym::Sym;

impl<'a> Lowerer<'a> {
    /// Lowers a statement and its parts; `None` for a docstring.
    pub fn stmt(&mut self, stmt: &'a Ast) -> Option<StmtId> {
        if matches!(stmt, Ast::Expr(s) if s.value.is_string_literal_expr()) {
            return None;
        }
        let place = span(stmt);
        if self.cuts.hold(place) {
            return Some(self.cut(place));
        }
        if self.enter() {
            let lowered = self.simple(stmt);
            self.depth -= 1;
            if !self.was_too_deep(place) {
                return Some(self.add_stmt(lowered, place));
            }
        } else {
            self.was_too_deep(place);
        }
        None
    }

    fn simple(&mut self, stmt: &'a Ast) -> Stmt {
        match stmt {
            Ast::Expr(s) => Stmt::Expr(self.expr(&s.value)),
            Ast::Assign(s) => {
                let value = self.expr(&s.value);
                Stmt::Assign { targets: self.list(&s.targets), value }
            }
            Ast::AugAssign(s) => {
                Stmt::AugAssign { target: self.expr(&s.target), op: binary(s.op), value: self.expr(&s.value) }
            }
            Ast::AnnAssign(s) => Stmt::AnnAssign {
                target: self.expr(&s.target),
                annotation: self.expr(&s.annotation),
                value: self.maybe(s.value.as_deref()),
            },
            Ast::Return(s) => Stmt::Return(self.maybe(s.value.as_deref())),
            Ast::Raise(s) => {
                // Before a semicolon, the parser inserts an empty exception.
                let exception = s.exc.as_deref().filter(|exception| !exception.range().is_empty());
                Stmt::Raise { exception: self.maybe(exception), cause: self.maybe(s.cause.as_deref()) }
            }
            Ast::Assert(s) => {
                Stmt::Assert { test: self.expr(&s.test), message: self.maybe(s.msg.as_deref()) }
            }
            Ast::Delete(s) => Stmt::Del(self.list(&s.targets)),
            Ast::Import(s) => self.import(s),
            Ast::ImportFrom(s) => self.import_from(s),
            Ast::Break(_) => Stmt::Break,
            Ast::Continue(_) => Stmt::Continue,
            _ => self.compound(stmt),
        }
    }

    fn compound(&mut self, stmt: &'a Ast) -> Stmt {
        match stmt {
            Ast::FunctionDef(s) => self.def(s),
            Ast::ClassDef(s) => self.class(s),
            Ast::If(s) => Stmt::If {
                test: self.expr(&s.test),
                then: self.block(&s.body),
                orelse: self.clauses(&s.elif_else_clauses, span(s).end),
            },
            Ast::While(s) => Stmt::While {
                test: self.expr(&s.test),
                body: self.block(&s.body),
                orelse: self.block(&s.orelse),
            },
            Ast::For(s) => {
                let iter = self.expr(&s.iter);
                Stmt::For {
                    target: self.expr(&s.target),
                    iter,
                    body: self.block(&s.body),
                    orelse: self.block(&s.orelse),
                }
            }
            Ast::With(s) => {
                let items = s.items.iter();
                let items = items
                    .map(|i| (self.expr(&i.context_expr), self.maybe(i.optional_vars.as_deref())))
                    .collect();
                Stmt::With { items, body: self.block(&s.body) }
            }
            Ast::Try(s) => self.try_stmt(s),
            Ast::Match(s) => Stmt::Match {
                subject: self.expr(&s.subject),
                cases: s.cases.iter().map(|case| self.case(case)).collect(),
            },
            // `pass`, `global`, `nonlocal`, `type`, and commands of a notebook.
            _ => Stmt::Pass,
        }
    }

    /// Lowers the `elif` and `else` clauses of an `if`, from the last to the first, because each is in the `orelse` of the one before it.
    fn clauses(&mut self, clauses: &'a [ElifElseClause], end: u32) -> Block {
        let depth = self.depth;
        let mut lowered = Vec::with_capacity(clauses.len());
        let mut orelse = Block::default();
        for clause in clauses {
            let place = Span::new(span(clause).start, end);
            if self.cuts.hold(place) {
                let cut = self.cut(place);
                orelse = self.block_with(cut);
                break;
            }
            let test = if self.enter_clause() { self.maybe(clause.test.as_ref()) } else { None };
            if self.was_too_deep(place) {
                break;
            }
            lowered.push((test, self.block(&clause.body), place));
        }
        self.depth = depth;
        for (test, then, place) in lowered.into_iter().rev() {
            orelse = match test {
                Some(test) => self.block_of(Stmt::If { test, then, orelse }, place),
                None => then,
            };
        }
        orelse
    }

    fn try_stmt(&mut self, s: &'a StmtTry) -> Stmt {
        let body = self.block(&s.body);
        // The handlers of inner statements come first in the table.
        let lowered: Vec<Handler> = s.handlers.iter().map(|handler| self.handler(handler)).collect();
        let handlers = HandlerList { start: number(self.module.handlers.len()), len: number(lowered.len()) };
        self.module.handlers.extend(lowered);
        Stmt::Try { body, handlers, orelse: self.block(&s.orelse), finally: self.block(&s.finalbody) }
    }

    fn handler(&mut self, handler: &'a ExceptHandler) -> Handler {
        let ExceptHandler::ExceptHandler(handler) = handler;
        let place = span(handler);
        let types_end = handler.type_.as_ref().map(|t| span(&**t).end);
        let name_end = handler.name.as_ref().map(|n| span(n).end);
        let head_end = self.colon_after(name_end.or(types_end).unwrap_or(place.start)).min(place.end);
        Handler {
            types: self.maybe(handler.type_.as_deref()),
            name: handler.name.as_ref().map(|name| self.var(name)),
            body: self.block(&handler.body),
            span: place,
            head: Span::new(place.start, head_end),
        }
    }

    /// The end of the first colon between this offset and the end of the logical line.
    fn colon_after(&self, offset: u32) -> u32 {
        let tokens = self.parsed.tokens();
        let first = tokens.partition_point(|t| t.start().to_u32() < offset);
        let mut rest = tokens[first..].iter().take_while(|t| t.kind() != TokenKind::Newline);
        let colon = rest.find(|t| t.kind() == TokenKind::Colon);
        colon.map_or(offset, |t| t.end().to_u32())
    }

    fn import(&mut self, s: &'a StmtImport) -> Stmt {
        let start = self.module.imports.len();
        for alias in &s.names {
            let top = alias.name.split('.').next().unwrap_or_default();
            let bound = alias.asname.as_ref().map_or(top, |name| name.as_str());
            self.module.imports.push(Import {
                level: 0,
                module: Sym::new(&alias.name),
                name: None,
                target: Some(self.var(bound)),
                top: alias.asname.is_none() && top.len() < alias.name.len(),
            });
        }
        self.imports_since(start)
    }

    fn import_from(&mut self, s: &'a StmtImportFrom) -> Stmt {
        let module = Sym::new(s.module.as_ref().map_or("", |name| name.as_str()));
        let start = self.module.imports.len();
        for alias in &s.names {
            let bound = alias.asname.as_ref().unwrap_or(&alias.name);
            self.module.imports.push(Import {
                level: s.level,
                module,
                name: Some(Sym::new(&alias.name)),
                target: (alias.name.as_str() != "*").then(|| self.var(bound)),
                top: false,
            });
        }
        self.imports_since(start)
    }

    /// The import statement with the imports that were added since `start`.
    fn imports_since(&self, start: usize) -> Stmt {
        let len = number(self.module.imports.len() - start);
        Stmt::Import(ImportList { start: number(start), len })
    }
}
