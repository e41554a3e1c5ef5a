//! How a file names a function or class of PyTorch at a place, and where a missing import is inserted.

use rustpython_ast::visitor::source_order::{SourceOrderVisitor, TraversalSignal, walk_body};
use rustpython_ast::{AnyNodeRef, Expr, ExprContext, ParameterWithDefault, Stmt};

use super::apply::Change;
use super::syntax::{Syntax, span, start};
use crate::span::Span;

/// A name for a function or class.
pub(super) struct Spelled {
    /// The text at the place.
    pub(super) text: String,
    /// The import to insert, if the name needs one.
    pub(super) import: Option<Change>,
}

/// The name of `path` (`torch.nn.ModuleList`) at `at`, through the file's own imports. If they do not provide it, the name needs
/// `import torch` or `from torch import nn`. `None` if the name has another meaning there.
pub(super) fn spelled(syntax: &Syntax<'_>, path: &str, at: Span) -> Option<Spelled> {
    let mut bound = imported(syntax, at);
    // The longest imported path gives the shortest name.
    bound.sort_by_key(|(_, of)| std::cmp::Reverse(of.len()));
    let by_import = bound.iter().find_map(|(name, of)| {
        let rest = path.strip_prefix(of.as_str())?;
        let fits = rest.is_empty() || rest.starts_with('.');
        (fits && !is_hidden(syntax, name, at)).then(|| format!("{name}{rest}"))
    });
    if let Some(text) = by_import {
        return Some(Spelled { text, import: None });
    }
    let (name, line, text) = match path.strip_prefix("torch.") {
        Some(rest) if rest.starts_with("nn.") => ("nn", "from torch import nn", rest.to_owned()),
        _ => ("torch", "import torch", path.to_owned()),
    };
    if binds_anywhere(syntax, name) {
        return None;
    }
    Some(Spelled { text, import: Some(new_import(syntax, line)?) })
}

/// The path that a dotted name means through the file's imports: `torch.zeros` for `th.zeros`.
pub(super) fn path(syntax: &Syntax<'_>, e: &Expr) -> Option<String> {
    match e {
        Expr::Attribute(a) => Some(format!("{}.{}", path(syntax, &a.value)?, a.attr)),
        Expr::Name(name) => {
            let at = span(name);
            let named = |(bound, _): &&(String, String)| bound == name.id.as_str();
            let (_, of) = imported(syntax, at).iter().rev().find(named).cloned()?;
            (!is_hidden(syntax, name.id.as_str(), at)).then_some(of)
        }
        _ => None,
    }
}

/// The names that imports bind at `at`, each with its path: imports of the file's body, also in a `try`, and imports of the functions
/// around.
fn imported(syntax: &Syntax<'_>, at: Span) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let in_function = !syntax.functions(at).is_empty();
    let before = |stmt: &Stmt| in_function || span(stmt).end <= at.start;
    for stmt in &syntax.module().body {
        match stmt {
            Stmt::Try(tried) if tried.body.iter().all(before) => {
                tried.body.iter().for_each(|s| binds(s, &mut found));
            }
            _ if before(stmt) => binds(stmt, &mut found),
            _ => {}
        }
    }
    for function in syntax.functions(at) {
        function.body.iter().filter(|s| span(*s).end <= at.start).for_each(|s| binds(s, &mut found));
    }
    found
}

fn binds(stmt: &Stmt, found: &mut Vec<(String, String)>) {
    match stmt {
        Stmt::Import(import) => {
            for alias in &import.names {
                let path = alias.name.as_str();
                match &alias.asname {
                    Some(name) => found.push((name.to_string(), path.to_owned())),
                    None => {
                        let root = path.split('.').next().unwrap_or(path);
                        found.push((root.to_owned(), root.to_owned()));
                    }
                }
            }
        }
        Stmt::ImportFrom(import) if import.level == 0 => {
            let Some(module) = &import.module else { return };
            for alias in import.names.iter().filter(|alias| alias.name.as_str() != "*") {
                let name = alias.asname.as_ref().unwrap_or(&alias.name);
                found.push((name.to_string(), format!("{module}.{}", alias.name)));
            }
        }
        _ => {}
    }
}

/// Does a function around `at` bind the name to something else? Imports in the function do not count.
fn is_hidden(syntax: &Syntax<'_>, name: &str, at: Span) -> bool {
    syntax.functions(at).into_iter().any(|function| {
        let given = function.parameters.iter().any(|p| p.name().as_str() == name);
        let mut uses = Bindings { name, imports: false, found: false };
        walk_body(&mut uses, &function.body);
        given || uses.found
    })
}

/// Does the file bind the name anywhere?
fn binds_anywhere(syntax: &Syntax<'_>, name: &str) -> bool {
    let mut uses = Bindings { name, imports: true, found: false };
    walk_body(&mut uses, &syntax.module().body);
    uses.found
}

/// Searches for bindings of a name.
struct Bindings<'a> {
    name: &'a str,
    /// Whether imports count.
    imports: bool,
    found: bool,
}

impl<'a> SourceOrderVisitor<'a> for Bindings<'_> {
    fn enter_node(&mut self, node: AnyNodeRef<'a>) -> TraversalSignal {
        let binds = match node {
            AnyNodeRef::StmtFunctionDef(f) => f.name.as_str() == self.name,
            AnyNodeRef::StmtClassDef(c) => c.name.as_str() == self.name,
            AnyNodeRef::Alias(alias) if self.imports => {
                let name = alias.asname.as_ref().unwrap_or(&alias.name);
                name.as_str().split('.').next() == Some(self.name)
            }
            AnyNodeRef::ExceptHandlerExceptHandler(h) => {
                h.name.as_ref().is_some_and(|n| n.as_str() == self.name)
            }
            AnyNodeRef::ParameterWithDefault(ParameterWithDefault { parameter, .. }) => {
                self.imports && parameter.name.as_str() == self.name
            }
            _ => false,
        };
        self.found |= binds;
        if self.found { TraversalSignal::Skip } else { TraversalSignal::Traverse }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr {
            self.found |= name.ctx != ExprContext::Load && name.id.as_str() == self.name;
        }
        rustpython_ast::visitor::source_order::walk_expr(self, expr);
    }
}

/// Does the function around `at` bind a variable with this name? Outside functions: does the file?
pub(super) fn is_bound(syntax: &Syntax<'_>, name: &str, at: Span) -> bool {
    match syntax.functions(at).last() {
        Some(function) => {
            let mut uses = Bindings { name, imports: true, found: false };
            walk_body(&mut uses, &function.body);
            uses.found || function.parameters.iter().any(|p| p.name().as_str() == name)
        }
        None => binds_anywhere(syntax, name),
    }
}

/// Inserts an import before the first statement that is neither the file's docstring nor an import from `__future__`.
fn new_import(syntax: &Syntax<'_>, line: &str) -> Option<Change> {
    let body = &syntax.module().body;
    let documents = |n: usize, s: &Stmt| {
        n == 0 && matches!(s, Stmt::Expr(e) if e.value.is_string_literal_expr())
            || matches!(s, Stmt::ImportFrom(i) if i.module.as_ref().is_some_and(|m| m.as_str() == "__future__"))
    };
    let first = body.iter().enumerate().find(|(n, s)| !documents(*n, s)).map(|(_, s)| s)?;
    // A decorator belongs to its function or class.
    let at = match first {
        Stmt::FunctionDef(f) => f.decorator_list.first().map_or(start(f), start),
        Stmt::ClassDef(c) => c.decorator_list.first().map_or(start(c), start),
        other => start(other),
    };
    // Another statement may precede it on its line.
    syntax.indentation(at)?;
    let end = syntax.line_end();
    let blank = match first {
        Stmt::Import(_) | Stmt::ImportFrom(_) => String::new(),
        Stmt::FunctionDef(_) | Stmt::ClassDef(_) => format!("{end}{end}"),
        _ => end.to_owned(),
    };
    Some(Change { span: Span::new(at, at), content: format!("{line}{end}{blank}") })
}
