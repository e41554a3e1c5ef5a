//! Out-of-memory errors that the program recognises by their message.

use rustpython_ast::visitor::source_order::{SourceOrderVisitor, TraversalSignal, walk_body, walk_expr};
use rustpython_ast::{AnyNodeRef, CmpOp, Expr, ExprRef, Stmt, StmtAssign};

use super::super::Draft;
use super::super::apply::Change;
use super::super::names::spelled;
use super::super::syntax::{Syntax, span, start};
use super::unsafe_;
use crate::span::Span;

/// How many assignments of variables are followed from a text.
const MAX_DEPTH: u32 = 3;

/// `"out of memory" in str(e)` → `isinstance(e, torch.OutOfMemoryError)`. Some libraries raise another class with this message.
pub(super) fn ask_class(syntax: &Syntax<'_>, at: Span) -> Option<Draft> {
    if let Some(draft) = also_ask_class(syntax, at) {
        return Some(draft);
    }
    let (text, not) = match syntax.expr(at)? {
        ExprRef::Compare(compare) => {
            let ([op], [text]) = (&*compare.ops, &*compare.comparators) else { return None };
            let literal = compare.left.is_string_literal_expr();
            let not = matches!(op, CmpOp::NotIn);
            Some((text, not)).filter(|_| literal && (not || matches!(op, CmpOp::In)))?
        }
        ExprRef::Call(call) => {
            let Expr::Attribute(method) = &*call.func else { return None };
            match (method.attr.as_str(), &*call.arguments.args) {
                ("startswith" | "endswith", [Expr::StringLiteral(_)]) => (&*method.value, false),
                ("search" | "match", [Expr::StringLiteral(_), text]) => (text, false),
                _ => return None,
            }
        }
        _ => return None,
    };
    let exception = exception(syntax, text, at, 0)?;
    let class = spelled(syntax, "torch.OutOfMemoryError", at)?;
    let not = if not { "not " } else { "" };
    let content = format!("{not}isinstance({exception}, {})", class.text);
    let changes = class.import.into_iter().chain([Change { span: at, content }]).collect();
    Some(unsafe_(format!("Test the class of the exception: `{}`", class.text), changes))
}

/// `any(mark in str(e) for mark in MARKS)` → `isinstance(e, torch.OutOfMemoryError) or any(…)`: the list may contain other messages.
fn also_ask_class(syntax: &Syntax<'_>, at: Span) -> Option<Draft> {
    let ExprRef::Compare(compare) = syntax.expr(at)? else { return None };
    let ([CmpOp::In], [text], Expr::Name(mark)) = (&*compare.ops, &*compare.comparators, &*compare.left)
    else {
        return None;
    };
    let nodes = syntax.around(at);
    let any = nodes.iter().rev().find_map(|node| match node {
        AnyNodeRef::ExprCall(call) => Some(*call),
        _ => None,
    })?;
    let [Expr::Generator(generator)] = &*any.arguments.args else { return None };
    let over = |g: &rustpython_ast::Comprehension| matches!(&g.target, Expr::Name(n) if n.id == mark.id);
    let is_any = matches!(&*any.func, Expr::Name(f) if f.id.as_str() == "any");
    if !is_any
        || span(&*generator.elt) != at
        || generator.generators.len() != 1
        || !generator.generators.iter().all(over)
    {
        return None;
    }
    let exception = exception(syntax, text, at, 0)?;
    let class = spelled(syntax, "torch.OutOfMemoryError", at)?;
    let parent = nodes.iter().rev().find(|n| span(*n).start < start(any) || span(*n).end > span(any).end)?;
    // In these positions, `or` needs no parentheses.
    let alone =
        matches!(parent, AnyNodeRef::StmtIf(_) | AnyNodeRef::StmtReturn(_) | AnyNodeRef::StmtAssign(_));
    let (open, close) = if alone { ("", "") } else { ("(", ")") };
    let mut changes: Vec<Change> = class.import.into_iter().collect();
    let (from, to) = (Span::new(start(any), start(any)), Span::new(span(any).end, span(any).end));
    changes
        .push(Change { span: from, content: format!("{open}isinstance({exception}, {}) or ", class.text) });
    if !alone {
        changes.push(Change { span: to, content: close.to_owned() });
    }
    Some(unsafe_(format!("Test the class of the exception as well: `{}`", class.text), changes))
}

/// The variable with the exception whose text this is. It must be the only variable in the text, and bound by a handler around or by a
/// parameter. If it is a local variable with one assignment, its value is searched instead.
fn exception<'a>(syntax: &'a Syntax<'_>, text: &'a Expr, at: Span, depth: u32) -> Option<&'a str> {
    let mut names = Names(Vec::new());
    names.visit_expr(text);
    let [name] = names.0[..] else { return None };
    let caught = |node: &AnyNodeRef<'_>| match node {
        AnyNodeRef::ExceptHandlerExceptHandler(h) => h.name.as_ref().is_some_and(|n| n.as_str() == name),
        _ => false,
    };
    let function = syntax.functions(at).last().copied();
    let given = function.is_some_and(|f| f.parameters.iter().any(|p| p.name().as_str() == name));
    let body = function.map_or(&syntax.module().body, |f| &f.body);
    let mut assigned = Assignments { name, found: Vec::new() };
    walk_body(&mut assigned, body);
    match assigned.found[..] {
        [] if given || syntax.around(at).iter().any(caught) => Some(name),
        [only] if depth < MAX_DEPTH && span(only).end <= at.start => {
            exception(syntax, &only.value, Span::new(start(only), start(only)), depth + 1)
        }
        _ => None,
    }
}

/// Functions that turn their argument into a text.
const TEXTS: [&str; 6] = ["str", "repr", "format", "len", "type", "any"];

/// The variables in an expression, each once.
struct Names<'a>(Vec<&'a str>);

impl<'a> SourceOrderVisitor<'a> for Names<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr
            && !TEXTS.contains(&name.id.as_str())
            && !self.0.contains(&name.id.as_str())
        {
            self.0.push(name.id.as_str());
        }
        walk_expr(self, expr);
    }
}

/// The assignments to a variable.
struct Assignments<'n, 'a> {
    name: &'n str,
    found: Vec<&'a StmtAssign>,
}

impl<'a> SourceOrderVisitor<'a> for Assignments<'_, 'a> {
    fn enter_node(&mut self, node: AnyNodeRef<'a>) -> TraversalSignal {
        if let AnyNodeRef::StmtFunctionDef(_) | AnyNodeRef::StmtClassDef(_) = node {
            return TraversalSignal::Skip;
        }
        TraversalSignal::Traverse
    }

    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if let Stmt::Assign(assign) = stmt
            && assign.targets.iter().any(|t| matches!(t, Expr::Name(n) if n.id.as_str() == self.name))
        {
            self.found.push(assign);
        }
        rustpython_ast::visitor::source_order::walk_stmt(self, stmt);
    }
}
