//! State of modules: buffers and submodules.

use rustpython_ast::visitor::source_order::{SourceOrderVisitor, walk_body, walk_expr, walk_stmt};
use rustpython_ast::{
    AnyNodeRef, Expr, ExprAttribute, ExprContext, ExprRef, Stmt, StmtClassDef, StmtFunctionDef,
};

use super::super::Draft;
use super::super::apply::Change;
use super::super::names::spelled;
use super::super::syntax::{Syntax, span, start};
use super::unsafe_;
use crate::span::Span;

/// `self.mask = torch.ones(3)` → `self.register_buffer("mask", torch.ones(3), persistent=False)`. The state dict does not contain the
/// attribute now, so checkpoints stay the same. After a move, the attribute is a new tensor, while other references keep the old one.
pub(super) fn register(syntax: &Syntax<'_>, at: Span) -> Option<Draft> {
    let place = Attribute::new(syntax, at)?;
    let Stmt::Assign(assign) = place.stmt else { return None };
    let [target] = &*assign.targets else { return None };
    if span(target) != at || !place.after_init() || place.is_declared() || !place.takes_buffer() {
        return None;
    }
    let (name, own) = (&place.attribute.attr, syntax.slice(&*place.attribute.value));
    let value = syntax.parenthesized(ExprRef::from(&*assign.value));
    if matches!(&*assign.value, Expr::Tuple(_) | Expr::Yield(_) | Expr::Await(_))
        || makes_object(&assign.value)
    {
        return None;
    }
    let head = Change {
        span: Span::new(at.start, value.start),
        content: format!("{own}.register_buffer(\"{name}\", "),
    };
    let tail = Change { span: Span::new(value.end, value.end), content: ", persistent=False)".to_owned() };
    Some(unsafe_(format!("Register `{own}.{name}` as a buffer"), vec![head, tail]))
}

/// `State(torch.ones(3))`: is it a call of a class that is no tensor's, by its name? Only a tensor can be a buffer.
fn makes_object(value: &Expr) -> bool {
    let Expr::Call(call) = value else { return false };
    let name = match &*call.func {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return false,
    };
    name.starts_with(char::is_uppercase) && !name.ends_with("Tensor") && name != "Variable"
}

/// `self.layers = [nn.Linear(2, 2)]` → `self.layers = nn.ModuleList([nn.Linear(2, 2)])`. The state dict then has more keys, and the
/// optimizer more parameters.
pub(super) fn hold(syntax: &Syntax<'_>, at: Span, class: &str) -> Option<Draft> {
    let place = Attribute::new(syntax, at)?;
    let value = match place.stmt {
        Stmt::Assign(assign) => match &*assign.targets {
            [target] if span(target) == at => &*assign.value,
            _ => return None,
        },
        Stmt::AnnAssign(assign) if span(&*assign.target) == at => assign.value.as_deref()?,
        _ => return None,
    };
    if !place.after_init() || !place.is_used_as(class) {
        return None;
    }
    let holder = spelled(syntax, &format!("torch.nn.{class}"), at)?;
    let whole = syntax.parenthesized(ExprRef::from(value));
    let change = |at: Span, content: String| Change { span: at, content };
    let mut changes: Vec<Change> = holder.import.into_iter().collect();
    let empty = match value {
        Expr::List(list) => list.elts.is_empty(),
        Expr::Dict(dict) => dict.items.is_empty(),
        _ => false,
    };
    if empty {
        changes.push(change(whole, format!("{}()", holder.text)));
    } else if holds_only_parts(value) || place.is_last_use_of(value) {
        let bare = matches!(value, Expr::Tuple(tuple) if !tuple.parenthesized);
        let (open, close) = if bare { ("((", "))") } else { ("(", ")") };
        changes.push(change(Span::new(whole.start, whole.start), format!("{}{open}", holder.text)));
        changes.push(change(Span::new(whole.end, whole.end), close.to_owned()));
    } else {
        return None;
    }
    Some(unsafe_(format!("Make `{}` an `{}`", syntax.slice(place.attribute), holder.text), changes))
}

/// Is it a display or comprehension whose elements may be modules, with string keys if it is a dict? Nested containers, strings and numbers
/// are not modules.
fn holds_only_parts(value: &Expr) -> bool {
    let counted = |generators: &[rustpython_ast::Comprehension]| {
        generators.iter().any(|g| {
            let Expr::Call(call) = &g.iter else { return false };
            matches!(&*call.func, Expr::Name(f) if matches!(f.id.as_str(), "range" | "enumerate"))
        })
    };
    match value {
        Expr::List(list) => list.elts.iter().all(is_part),
        Expr::Tuple(tuple) => tuple.elts.iter().all(is_part),
        Expr::ListComp(comp) => is_part(&comp.elt),
        Expr::Dict(dict) => dict.items.iter().all(|item| {
            let named = item.key.as_ref().is_some_and(|key| {
                matches!(key, Expr::StringLiteral(text) if !text.value.to_str().contains('.') && !text.value.is_empty())
            });
            named && is_part(&item.value)
        }),
        Expr::DictComp(comp) => {
            let text = match &*comp.key {
                Expr::StringLiteral(_) | Expr::FString(_) => true,
                Expr::Call(call) => matches!(&*call.func, Expr::Name(f) if f.id.as_str() == "str"),
                Expr::Name(_) => !counted(&comp.generators),
                _ => false,
            };
            text && is_part(&comp.value)
        }
        _ => false,
    }
}

fn is_part(e: &Expr) -> bool {
    matches!(
        e,
        Expr::Call(_)
            | Expr::Name(_)
            | Expr::Attribute(_)
            | Expr::Subscript(_)
            | Expr::NoneLiteral(_)
            | Expr::If(_)
    )
}

/// An assignment to `self.name` in a method of a class.
struct Attribute<'a> {
    attribute: &'a ExprAttribute,
    stmt: &'a Stmt,
    function: &'a StmtFunctionDef,
    class: &'a StmtClassDef,
}

impl<'a> Attribute<'a> {
    fn new(syntax: &'a Syntax<'_>, at: Span) -> Option<Self> {
        let ExprRef::Attribute(attribute) = syntax.expr(at)? else { return None };
        let nodes = syntax.around(at);
        let function = *syntax.functions(at).last()?;
        let class = nodes.iter().rev().find_map(|n| match n {
            AnyNodeRef::StmtClassDef(class) => Some(*class),
            _ => None,
        })?;
        // The method belongs to that class, and not to a function in it.
        if !class.body.iter().any(|s| matches!(s, Stmt::FunctionDef(f) if span(f) == span(function))) {
            return None;
        }
        let own = function.parameters.iter().next()?.name().as_str();
        if !matches!(&*attribute.value, Expr::Name(n) if n.id.as_str() == own) {
            return None;
        }
        let mut statements = Statements { at, found: None };
        walk_body(&mut statements, &function.body);
        Some(Self { attribute, stmt: statements.found?, function, class })
    }

    /// Has the method called the constructor of `nn.Module` before? Registration needs it.
    fn after_init(&self) -> bool {
        let calls_init = |s: &Stmt| {
            matches!(s, Stmt::Expr(e) if matches!(&*e.value, Expr::Call(c)
                if matches!(&*c.func, Expr::Attribute(a) if a.attr.as_str() == "__init__")))
        };
        let before = |s: &&Stmt| span(*s).end <= start(self.stmt);
        self.function.name.as_str() == "__init__" && self.function.body.iter().filter(before).any(calls_init)
    }

    /// Does the class define another attribute with this name, or set this one before? Then it cannot be registered.
    fn is_declared(&self) -> bool {
        let name = self.attribute.attr.as_str();
        let is_it = |e: &Expr| matches!(e, Expr::Name(n) if n.id.as_str() == name);
        let in_class = self.class.body.iter().any(|s| match s {
            Stmt::Assign(a) => a.targets.iter().any(is_it),
            Stmt::AnnAssign(a) => a.value.is_some() && is_it(&a.target),
            Stmt::FunctionDef(f) => f.name.as_str() == name,
            _ => false,
        });
        let stores = self.uses().stores;
        in_class
            || stores.iter().any(|(at, _)| at.start < start(self.stmt) && span(self.function).contains(*at))
    }

    /// Can all values that are assigned to the attribute be tensors, or `None`? A buffer accepts nothing else.
    fn takes_buffer(&self) -> bool {
        self.uses().stores.iter().all(|(_, value)| {
            value.is_none_or(|value| {
                matches!(
                    value,
                    Expr::Call(_) | Expr::NoneLiteral(_) | Expr::Attribute(_) | Expr::Subscript(_)
                ) || matches!(value, Expr::BinOp(_) | Expr::UnaryOp(_) | Expr::Name(_) | Expr::If(_))
            })
        })
    }

    /// Does the class of `torch.nn` support everything that the code does with the attribute?
    fn is_used_as(&self, class: &str) -> bool {
        let known: &[&str] = match class {
            "ModuleList" => &["append", "extend", "insert", "pop"],
            "ParameterList" => &["append", "extend"],
            "ModuleDict" => &["items", "keys", "values", "update", "pop", "clear"],
            _ => {
                &["items", "keys", "values", "update", "pop", "clear", "get", "setdefault", "popitem", "copy"]
            }
        };
        let uses = self.uses();
        !uses.computed
            && uses.methods.iter().all(|m| known.contains(m))
            && uses.appended.iter().all(|e| is_part(e))
            && uses.stores.len() == 1
    }

    /// Is the value a variable that the method neither changes nor reads later?
    fn is_last_use_of(&self, value: &Expr) -> bool {
        let Expr::Name(name) = value else { return false };
        let mut names = Reads { name: name.id.as_str(), found: Vec::new() };
        walk_body(&mut names, &self.function.body);
        names.found.iter().all(|at| at.end <= span(self.stmt).end)
    }

    fn uses(&self) -> Uses<'a> {
        let mut uses = Uses { name: self.attribute.attr.as_str(), ..Uses::default() };
        walk_body(&mut uses, &self.class.body);
        uses
    }
}

/// Finds the statement that assigns to a place.
struct Statements<'a> {
    at: Span,
    found: Option<&'a Stmt>,
}

impl<'a> SourceOrderVisitor<'a> for Statements<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if span(stmt).contains(self.at) {
            if let Stmt::Assign(_) | Stmt::AnnAssign(_) = stmt {
                self.found = Some(stmt);
            }
            walk_stmt(self, stmt);
        }
    }
}

/// Finds reads of a variable.
struct Reads<'n> {
    name: &'n str,
    found: Vec<Span>,
}

impl<'a> SourceOrderVisitor<'a> for Reads<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr
            && name.id.as_str() == self.name
        {
            self.found.push(span(name));
        }
        walk_expr(self, expr);
    }
}

/// The uses of attributes with this name in a class, on any object, because `self` may have another name.
#[derive(Default)]
struct Uses<'a> {
    name: &'a str,
    stores: Vec<(Span, Option<&'a Expr>)>,
    methods: Vec<&'a str>,
    appended: Vec<&'a Expr>,
    /// Whether it is an operand.
    computed: bool,
}

impl<'a> SourceOrderVisitor<'a> for Uses<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Assign(s) => s.targets.iter().for_each(|t| self.store(t, Some(&s.value))),
            Stmt::AnnAssign(s) => self.store(&s.target, s.value.as_deref()),
            Stmt::AugAssign(s) => self.computed |= self.is_it(&s.target),
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Call(call) => {
                if let Expr::Attribute(method) = &*call.func
                    && self.is_it(&method.value)
                {
                    self.methods.push(method.attr.as_str());
                    self.appended
                        .extend(call.arguments.args.last().filter(|_| method.attr.as_str() == "append"));
                }
            }
            Expr::BinOp(op) => self.computed |= self.is_it(&op.left) || self.is_it(&op.right),
            _ => {}
        }
        walk_expr(self, expr);
    }
}

impl<'a> Uses<'a> {
    fn is_it(&self, e: &Expr) -> bool {
        matches!(e, Expr::Attribute(a) if a.attr.as_str() == self.name)
    }

    fn store(&mut self, target: &'a Expr, value: Option<&'a Expr>) {
        match target {
            Expr::Attribute(a) if a.attr.as_str() == self.name && a.ctx == ExprContext::Store => {
                self.stores.push((span(a), value));
            }
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|t| self.store(t, None)),
            _ => {}
        }
    }
}
