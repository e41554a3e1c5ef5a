//! Transfers whose result is discarded.

use rustpython_ast::visitor::source_order::{SourceOrderVisitor, TraversalSignal, walk_body};
use rustpython_ast::{AnyNodeRef, Expr, ExprContext, ExprName, Stmt, StmtFor};

use super::super::Draft;
use super::super::apply::Change;
use super::super::names::is_bound;
use super::super::syntax::{Syntax, span, start};
use super::make::make_instead;
use super::{safe, unsafe_};
use crate::finding::{Finding, Role};
use crate::span::Span;

/// Methods that return the same tensor on another device, or without its graph.
const SAME_TENSOR: [&str; 5] = ["to", "cuda", "cpu", "detach", "contiguous"];

/// `x.to(d)` → `x = x.to(d)`. Safe if the program fails without the fix and no other name refers to the moved tensor.
pub(super) fn keep(syntax: &Syntax<'_>, at: Span, finding: &Finding) -> Option<Draft> {
    let nodes = syntax.around(at);
    // In parentheses, the call is not the whole statement.
    let is_statement =
        |n: &AnyNodeRef<'_>| matches!(n, AnyNodeRef::StmtExpr(s) if span(&*s.value) == at && span(n) == at);
    let scope =
        |n: &&AnyNodeRef<'_>| matches!(n, AnyNodeRef::StmtFunctionDef(_) | AnyNodeRef::StmtClassDef(_));
    let in_class = nodes.iter().rev().find(scope).is_some_and(|n| matches!(n, AnyNodeRef::StmtClassDef(_)));
    if !nodes.iter().any(is_statement) || in_class {
        return None;
    }
    let Expr::Attribute(method) = &*syntax.call(at)?.func else { return None };
    let mut base = &*method.value;
    let mut chain = false;
    while let Expr::Call(inner) = base
        && let Expr::Attribute(method) = &*inner.func
        && SAME_TENSOR.contains(&method.attr.as_str())
    {
        (base, chain) = (&*method.value, true);
    }
    let fails = finding.related.iter().any(|label| label.role == Role::Consequence);
    match base {
        Expr::Name(name) => {
            if let Some(around) = nodes.iter().rev().find_map(|n| draws(*n, name)) {
                return in_loop(syntax, at, name, around);
            }
            let uses = Uses::of(syntax, name.id.as_str(), at)?;
            if !uses.later(at, &nodes) {
                return None;
            }
            let certain = fails && !chain && !uses.is_shared(at.start);
            if let Some((changes, same)) = make_instead(syntax, name.id.as_str(), at) {
                let title = format!("Make `{}` on that device", name.id);
                return Some(if certain && same { safe(title, changes) } else { unsafe_(title, changes) });
            }
            let changes = vec![assign(at, &format!("{} = ", name.id))];
            let title = format!("Assign the result to `{}`", name.id);
            Some(if certain { safe(title, changes) } else { unsafe_(title, changes) })
        }
        Expr::Attribute(_) | Expr::Subscript(_) if is_place(base) => {
            let text = syntax.slice(base);
            Some(unsafe_(format!("Assign the result to `{text}`"), vec![assign(at, &format!("{text} = "))]))
        }
        _ => None,
    }
}

fn assign(at: Span, text: &str) -> Change {
    Change { span: Span::new(at.start, at.start), content: text.to_owned() }
}

/// Attributes of tensors that cannot be assigned to, and `data`, which its tensor decides.
const NOT_ASSIGNED: [&str; 7] = ["data", "T", "mT", "H", "mH", "real", "imag"];

/// Attributes of names, and their items with constant string keys: possible targets of an assignment.
fn is_place(e: &Expr) -> bool {
    match e {
        Expr::Name(_) => true,
        Expr::Attribute(a) => !NOT_ASSIGNED.contains(&a.attr.as_str()) && is_place(&a.value),
        Expr::Subscript(s) => s.slice.is_string_literal_expr() && is_place(&s.value),
        _ => false,
    }
}

/// Is this a loop that assigns the variable in each iteration?
fn draws<'a>(node: AnyNodeRef<'a>, name: &ExprName) -> Option<&'a StmtFor> {
    let AnyNodeRef::StmtFor(around) = node else { return None };
    let is_it = |e: &Expr| matches!(e, Expr::Name(n) if n.id == name.id);
    let drawn = match &*around.target {
        Expr::Tuple(parts) => parts.elts.iter().any(is_it),
        target => is_it(target),
    };
    drawn.then_some(around)
}

/// `for v in d.values(): v.to(x)` → `for key, v in d.items(): d[key] = v.to(x)`. Other code may also use the dict.
fn in_loop(syntax: &Syntax<'_>, at: Span, name: &ExprName, around: &StmtFor) -> Option<Draft> {
    let Expr::Call(iter) = &*around.iter else { return None };
    let Expr::Attribute(method) = &*iter.func else { return None };
    if !iter.arguments.is_empty() || !is_place(&method.value) {
        return None;
    }
    let dict = syntax.slice(&*method.value);
    let used_later = Uses::of(syntax, name.id.as_str(), at)?.within(Span::new(at.end, span(around).end));
    let also = if used_later { format!("{} = ", name.id) } else { String::new() };
    match (method.attr.as_str(), &*around.target) {
        ("items", Expr::Tuple(target)) => {
            let [Expr::Name(key), Expr::Name(value)] = &*target.elts else { return None };
            if value.id != name.id {
                return None;
            }
            let change = assign(at, &format!("{dict}[{}] = {also}", key.id));
            Some(unsafe_(format!("Keep it in `{dict}`"), vec![change]))
        }
        ("values", Expr::Name(value)) => {
            let key = ["key", "name", "k"].into_iter().find(|key| !is_bound(syntax, key, at))?;
            let change = |at: Span, content: String| Change { span: at, content };
            let before = Span::new(start(value), start(value));
            let changes = vec![
                change(before, format!("{key}, ")),
                change(span(&method.attr), "items".to_owned()),
                assign(at, &format!("{dict}[{key}] = {also}")),
            ];
            Some(unsafe_(format!("Keep it in `{dict}`"), changes))
        }
        _ => None,
    }
}

/// The places where the function around, or the file, reads or binds a variable.
struct Uses<'n> {
    name: &'n str,
    read: Vec<Span>,
    bound: Vec<Span>,
    /// Reads of the whole value, other than method calls and computations: another name may then refer to the same tensor.
    shared: Vec<Span>,
    declared: bool,
}

impl<'n> Uses<'n> {
    /// `None` for a variable that is not the function's own.
    fn of(syntax: &Syntax<'_>, name: &'n str, at: Span) -> Option<Self> {
        let mut uses =
            Self { name, read: Vec::new(), bound: Vec::new(), shared: Vec::new(), declared: false };
        match syntax.functions(at).last() {
            Some(function) => {
                walk_body(&mut uses, &function.body);
                let given = function.parameters.iter().any(|p| p.name().as_str() == name);
                (given || !uses.bound.is_empty()).then_some(uses).filter(|uses| !uses.declared)
            }
            None => {
                walk_body(&mut uses, &syntax.module().body);
                (!uses.bound.is_empty()).then_some(uses)
            }
        }
    }

    /// Is it read after the statement, including in the next iteration of a loop?
    fn later(&self, at: Span, nodes: &[AnyNodeRef<'_>]) -> bool {
        let again = |n: &AnyNodeRef<'_>| {
            matches!(n, AnyNodeRef::StmtFor(_) | AnyNodeRef::StmtWhile(_)) && self.within(span(n))
        };
        self.read.iter().any(|read| read.start >= at.end)
            || nodes.iter().any(|n| again(n) && self.made_outside(span(n)))
    }

    fn made_outside(&self, round: Span) -> bool {
        !self.bound.iter().any(|bound| round.contains(*bound))
    }

    fn within(&self, range: Span) -> bool {
        self.read.iter().any(|read| range.contains(*read))
    }

    /// May another name refer to the same tensor before this position?
    fn is_shared(&self, before: u32) -> bool {
        self.shared.iter().any(|at| at.start < before)
    }
}

impl<'a> SourceOrderVisitor<'a> for Uses<'_> {
    fn enter_node(&mut self, node: AnyNodeRef<'a>) -> TraversalSignal {
        if let AnyNodeRef::StmtGlobal(_) | AnyNodeRef::StmtNonlocal(_) = node {
            let names = match node {
                AnyNodeRef::StmtGlobal(g) => &g.names,
                AnyNodeRef::StmtNonlocal(n) => &n.names,
                _ => return TraversalSignal::Traverse,
            };
            self.declared |= names.iter().any(|n| n.as_str() == self.name);
        }
        TraversalSignal::Traverse
    }

    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let whole = match stmt {
            Stmt::Assign(s) => Some(&*s.value),
            Stmt::Return(s) => s.value.as_deref(),
            Stmt::AnnAssign(s) => s.value.as_deref(),
            _ => None,
        };
        self.share(whole);
        rustpython_ast::visitor::source_order::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.id.as_str() == self.name => match name.ctx {
                ExprContext::Load => self.read.push(span(name)),
                _ => self.bound.push(span(name)),
            },
            Expr::Call(call) => {
                call.arguments.args.iter().for_each(|a| self.share(Some(a)));
                call.arguments.keywords.iter().for_each(|k| self.share(Some(&k.value)));
            }
            Expr::List(list) => list.elts.iter().for_each(|e| self.share(Some(e))),
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|e| self.share(Some(e))),
            Expr::Dict(dict) => dict.iter_values().for_each(|e| self.share(Some(e))),
            _ => {}
        }
        rustpython_ast::visitor::source_order::walk_expr(self, expr);
    }
}

impl Uses<'_> {
    fn share(&mut self, e: Option<&Expr>) {
        if let Some(Expr::Name(name)) = e
            && name.ctx == ExprContext::Load
            && name.id.as_str() == self.name
        {
            self.shared.push(span(name));
        }
    }
}
