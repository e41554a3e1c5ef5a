//! What expressions, parameters and attributes may be, as far as the project's own calls and constructors say it.

use std::cell::RefCell;
use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::sites::Site;
use super::{Fixed, ends};
use crate::flow::methods::class_of_self;
use crate::flow::nodes::{Node, Target, named};
use crate::flow::site::own_method;
use crate::ir::{
    ArgKind, Call, Expr, ExprId, ExprList, FuncId, FuncKind, Module, ParamKind, Real, Stmt, UnaryOp, Var,
    Whole,
};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::span::Span;
use crate::sym::Sym;

/// More values than these are any.
const MAX_VALUES: usize = 8;
/// What these give may be nothing, though they are given something.
const LOOKUPS: &[&str] = &["get", "pop", "setdefault", "getattr", "getenv", "next"];
/// What every module has, and others set.
const OTHERS: &[&str] = &["training"];

/// A value that is written down somewhere.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Const {
    None,
    Bool(bool),
    Number(f64),
    Text(Sym),
    /// Anything but `None`.
    Thing,
}

/// All that something may be.
pub(super) type Values = Vec<Const>;

impl Const {
    pub(super) fn truth(self) -> Option<bool> {
        match self {
            Self::None => Some(false),
            Self::Bool(truth) => Some(truth),
            Self::Number(n) => Some(n != 0.0),
            Self::Text(text) => Some(!text.as_str().is_empty()),
            Self::Thing => None,
        }
    }

    /// Are both the same, or as good as that?
    pub(super) fn is(self, other: Self, equal: bool) -> Option<bool> {
        let number = |truth: bool| if truth { 1.0 } else { 0.0 };
        match (self, other) {
            (Self::None, Self::Thing) | (Self::Thing, Self::None) => Some(false),
            (Self::Thing, _) | (_, Self::Thing) => None,
            (Self::Bool(truth), Self::Number(n)) | (Self::Number(n), Self::Bool(truth)) => {
                Some(equal && number(truth) == n)
            }
            (a, b) => Some(a == b),
        }
    }
}

/// Who asks?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// A test: who writes one thinks that it may come out either way, unless the project's own calls say otherwise.
    Test,
    /// A call: what is given is something, unless it is seen to be nothing.
    Argument,
}

impl Fixed<'_> {
    /// What the expression may be, if that is known.
    pub(super) fn values(&self, m: ModIdx, e: ExprId, who: For) -> Option<Values> {
        let ir = &self.program.get(m).ir;
        Some(vec![match ir.expr(e) {
            Expr::None => Const::None,
            Expr::True => Const::Bool(true),
            Expr::False => Const::Bool(false),
            Expr::Int(Whole(n)) => Const::Number(n as f64),
            Expr::Float(Real(n)) => Const::Number(n),
            Expr::Str(text) => Const::Text(text),
            Expr::Unary { op: UnaryOp::Not, operand } => Const::Bool(!self.outcome(m, operand)?),
            Expr::Unary { op: UnaryOp::Neg, operand } => match self.values(m, operand, who)?[..] {
                [Const::Number(n)] => Const::Number(-n),
                _ => Const::Thing,
            },
            Expr::Compare { .. } => self.outcome(m, e).map_or(Const::Thing, Const::Bool),
            Expr::IfElse(id) => {
                let parts = ir.if_else(id);
                return match self.outcome(m, parts.test) {
                    Some(true) => self.values(m, parts.then, who),
                    Some(false) => self.values(m, parts.orelse, who),
                    None => joined([self.values(m, parts.then, who), self.values(m, parts.orelse, who)]),
                };
            }
            Expr::And(list) => return self.chosen(m, list, true, who),
            Expr::Or(list) => return self.chosen(m, list, false, who),
            Expr::Var(Var::Local(slot)) => {
                let f = ir.function_around(e);
                let known = self.of_variable(m, f, slot, ir.span(e), who);
                let something =
                    || who == For::Argument && is_variable_of(ir, f, slot) && self.is_something(m, e);
                return known.or_else(|| something().then(|| vec![Const::Thing]));
            }
            Expr::Attr { base, name } => {
                let own = class_of_self(ir, m, base).and_then(|class| self.of_attribute(class, name));
                let something = || who == For::Argument && self.is_something(m, e);
                return own.or_else(|| something().then(|| vec![Const::Thing]));
            }
            Expr::Call(id) => self.given_back(m, ir.call(id), who)?,
            // Settings have texts for their names.
            Expr::Index { index, .. } if matches!(ir.expr(index), Expr::Str(_)) => return None,
            Expr::Var(_) | Expr::Await(_) | Expr::Yield(_) | Expr::YieldFrom(_) | Expr::Star(_) => {
                return None;
            }
            Expr::Walrus(_) | Expr::Opaque(_) => return None,
            _ => Const::Thing,
        }])
    }

    /// `a and b` is the first that is not true, or the last.
    fn chosen(&self, m: ModIdx, list: ExprList, truth: bool, who: For) -> Option<Values> {
        let (&last, before) = self.program.get(m).ir.list(list).split_last()?;
        let mut found = Vec::new();
        for &e in before {
            let values = self.values(m, e, who)?;
            found.extend(values.iter().copied().filter(|v| v.truth() != Some(truth)));
            if values.iter().all(|v| v.truth() == Some(!truth)) {
                return joined([Some(found)]);
            }
        }
        joined([Some(found), self.values(m, last, who)])
    }

    /// What a call gives: anything but nothing, as far as that is to be seen.
    fn given_back(&self, m: ModIdx, call: Call<'_>, who: For) -> Option<Const> {
        let ir = &self.program.get(m).ir;
        if looks_up(ir, call) {
            return None;
        }
        let function = match named(self.program, m, call.func) {
            Some(Node::Function(m, f)) => Some((m, f)),
            Some(Node::Class(_)) => return Some(Const::Thing),
            None => own_method(self.program, m, ir.function_around(call.func), call.func),
        };
        let made = || match self.program.resolve_expr(m, call.func) {
            Some(Resolved::External(path)) => path.as_str().starts_with("torch.nn."),
            _ => false,
        };
        match function {
            Some(f) => self.gives_something(f),
            None => who == For::Argument || made(),
        }
        .then_some(Const::Thing)
    }

    /// Is it never `None`? A variable is not if nothing of its name is set to that, and it is no parameter that may be.
    fn is_something(&self, m: ModIdx, e: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        let name = ir.last_name(e);
        let same = |t: ExprId| ir.last_name(t) == name;
        let may_be = |value: ExprId| match ir.expr(value) {
            Expr::None | Expr::IfElse(_) | Expr::Or(_) | Expr::And(_) => true,
            Expr::Call(id) => self.given_back(m, ir.call(id), For::Argument).is_none(),
            _ => false,
        };
        let mut set = ir.stmts.iter().filter_map(|s| match *s {
            Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| same(t)) => Some(value),
            _ => None,
        });
        let unpacked = |list| ir.list(list).iter().any(|&t| same(t));
        let several = ir.stmts.iter().any(|s| match *s {
            Stmt::Assign { targets, .. } => ir
                .list(targets)
                .iter()
                .any(|&t| matches!(ir.expr(t), Expr::Tuple(list) | Expr::List(list) if unpacked(list))),
            _ => false,
        });
        let param = ir.functions.iter().flat_map(|f| f.params.iter()).find(|p| Some(p.name) == name);
        let left_out = param.is_some_and(|p| p.default.is_some_and(may_be));
        let known = set.next();
        !left_out
            && !may_be(known.unwrap_or(e))
            && !set.any(may_be)
            && (known.is_some() || several || param.is_some())
    }

    fn gives_something(&self, (m, f): Target) -> bool {
        let ir = &self.program.get(m).ir;
        let function = ir.function(f);
        let mut some = function.is_generator;
        if !some && !ends(ir, function.body) {
            return false;
        }
        for s in &ir.stmts[ir.stmts_of(function)] {
            match *s {
                Stmt::Return(Some(e)) if !may_be_none(ir, e) => some = true,
                Stmt::Return(_) => return false,
                _ => {}
            }
        }
        some
    }

    /// What a variable of a function may be at a place: what it is given, and all that it is set to before. What is set to
    /// what it was itself, again and again, is not known.
    fn of_variable(&self, m: ModIdx, f: FuncId, slot: u16, at: Span, who: For) -> Option<Values> {
        let asked = (m, f, slot);
        if !self.asked.borrow_mut().insert(asked) {
            return None;
        }
        let found = self.set_before(m, f, slot, at, who);
        self.asked.borrow_mut().remove(&asked);
        found
    }

    fn set_before(&self, m: ModIdx, f: FuncId, slot: u16, at: Span, who: For) -> Option<Values> {
        let ir = &self.program.get(m).ir;
        let function = ir.function(f);
        if function.kind != FuncKind::Function {
            return None;
        }
        let var = Var::Local(slot);
        let param = function.params.iter().position(|p| p.slot == slot);
        let mut found = match param {
            Some(n) => self.of_parameter((m, f), n)?,
            None => Vec::new(),
        };
        let own = |e: ExprId| ir.function_around(e) == f;
        let body = ir.stmts_of(function);
        let stmts = || ir.stmts[body.clone()].iter().zip(&ir.stmt_spans[body.clone()]);
        let again = |set: Span| {
            stmts().any(|(s, span)| {
                matches!(s, Stmt::For { .. } | Stmt::While { .. }) && span.contains(set) && span.contains(at)
            })
        };
        for (s, &span) in stmts() {
            if span.start > at.end && !again(span) {
                continue;
            }
            let set = match *s {
                Stmt::Assign { targets, value } => {
                    let bound = ir.list(targets).iter().find(|&&t| own(t) && ir.binds(t, var));
                    bound.map(|&t| self.bound(m, t, value, who, &|t| ir.expr(t) == Expr::Var(var)))
                }
                Stmt::AnnAssign { target, value: Some(value), .. } => {
                    (own(target) && ir.binds(target, var)).then(|| self.values(m, value, who))
                }
                Stmt::AugAssign { target, .. } => {
                    (own(target) && ir.binds(target, var)).then(|| Some(vec![Const::Thing]))
                }
                Stmt::For { target, .. } => (own(target) && ir.binds(target, var)).then_some(None),
                Stmt::With { ref items, .. } => {
                    let bound = items.iter().any(|(_, t)| t.is_some_and(|t| own(t) && ir.binds(t, var)));
                    bound.then_some(None)
                }
                Stmt::Def(inner, bound) => {
                    (bound == var && ir.function(inner).parent == Some(f)).then(|| Some(vec![Const::Thing]))
                }
                _ => None,
            };
            if let Some(values) = set {
                found.extend(values?);
            }
        }
        let walrus = |n: usize| matches!(ir.exprs[n], Expr::Walrus(id) if ir.walrus(id).target == var);
        if found.is_empty() || ir.exprs_of(function).any(walrus) {
            return None;
        }
        joined([Some(found)])
    }

    /// What an assignment puts into one of the places that it binds.
    fn bound(
        &self,
        m: ModIdx,
        target: ExprId,
        value: ExprId,
        who: For,
        is: &dyn Fn(ExprId) -> bool,
    ) -> Option<Values> {
        let ir = &self.program.get(m).ir;
        if is(target) {
            return self.values(m, value, who);
        }
        let (Expr::Tuple(targets) | Expr::List(targets)) = ir.expr(target) else { return None };
        match ir.expr(value) {
            Expr::Tuple(values) | Expr::List(values) if values.len == targets.len => {
                let mut pairs = ir.list(targets).iter().zip(ir.list(values));
                let &(_, &value) = &pairs.find(|&(&t, _)| is(t))?;
                self.values(m, value, who)
            }
            Expr::Call(_) if who == For::Argument => Some(vec![Const::Thing]),
            _ => None,
        }
    }

    /// What the project gives for a parameter of a function, by its position.
    fn of_parameter(&self, target: Target, at: usize) -> Option<Values> {
        once(&self.params, (target, at), || self.given(target, at))
    }

    fn given(&self, (m, f): Target, at: usize) -> Option<Values> {
        let function = self.program.get(m).ir.function(f);
        let param = function.params.get(at)?;
        if matches!(param.kind, ParamKind::Star | ParamKind::DoubleStar) {
            return None;
        }
        let sites = self.sites((m, f))?;
        let mut found = Vec::new();
        for site in sites {
            let ir = &self.program.get(site.module).ir;
            let Some(value) = argument_at(ir, site, at, param.name)? else {
                found.extend(self.values(m, param.default?, For::Argument)?);
                continue;
            };
            // What it hands to itself it has been given.
            let itself = site.module == m
                && ir.function_around(value) == f
                && ir.expr(value) == Expr::Var(Var::Local(param.slot));
            if !itself {
                found.extend(self.values(site.module, value, For::Argument)?);
            }
        }
        if found.is_empty() { None } else { joined([Some(found)]) }
    }

    /// What instances of a class, of its bases and of what is derived from it have under a name.
    fn of_attribute(&self, class: ClassKey, name: Sym) -> Option<Values> {
        once(&self.attributes, (class, name), || self.set_to(class, name))
    }

    fn set_to(&self, class: ClassKey, name: Sym) -> Option<Values> {
        if OTHERS.contains(&name.as_str()) || !self.is_open(class, name) {
            return None;
        }
        let mut found = Vec::new();
        for &m in self.files {
            let ir = &self.program.get(m).ir;
            if ir.has_string(name) && ir.calls().any(|call| ir.is_builtin(call.func, "setattr")) {
                return None;
            }
            if !ir.has_attribute(name) {
                continue;
            }
            for s in &ir.stmts {
                let (targets, value): (&[ExprId], _) = match s {
                    Stmt::Assign { targets, value } => (ir.list(*targets), Some(*value)),
                    Stmt::AnnAssign { target, value: Some(value), .. } => {
                        (std::slice::from_ref(target), Some(*value))
                    }
                    Stmt::AugAssign { target, .. } | Stmt::For { target, .. } => {
                        (std::slice::from_ref(target), None)
                    }
                    _ => continue,
                };
                for target in targets.iter().flat_map(|&t| ir.exprs_in(t)) {
                    let target = ExprId(u32::try_from(target).unwrap_or(u32::MAX));
                    let Expr::Attr { base, name: other } = ir.expr(target) else { continue };
                    if other != name || !is_target(ir, targets, target) {
                        continue;
                    }
                    match class_of_self(ir, m, base) {
                        Some(k) if !self.are_related(k, class) => continue,
                        Some(_) => {}
                        None => return None,
                    }
                    let whole = targets.iter().find(|&&t| ir.span(t).contains(ir.span(target)))?;
                    found.extend(self.bound(m, *whole, value?, For::Test, &|t| t == target)?);
                }
            }
        }
        found.extend(self.set_in_bodies(class, name)?);
        if found.is_empty() { None } else { joined([Some(found)]) }
    }

    /// What the class and its bases say of it in their own bodies.
    fn set_in_bodies(&self, class: ClassKey, name: Sym) -> Option<Values> {
        let mut found = Vec::new();
        for &k in &self.related(class) {
            let ir = &self.program.get(k.module).ir;
            let body = ir.class(k.class).body;
            let function = ir.function(body);
            let Some(slot) = function.slots.iter().position(|&s| s == name) else { continue };
            let var = Var::Local(u16::try_from(slot).ok()?);
            for &s in ir.block(function.body) {
                let set = match *ir.stmt(s) {
                    Stmt::Assign { targets, value } => {
                        ir.list(targets).iter().any(|&t| ir.binds(t, var)).then_some(Some(value))
                    }
                    Stmt::AnnAssign { target, value, .. } => ir.binds(target, var).then_some(value),
                    _ => None,
                };
                match set {
                    Some(Some(value)) => found.extend(self.values(k.module, value, For::Test)?),
                    // A field is given when the object is made.
                    Some(None) => return None,
                    None => {}
                }
            }
        }
        Some(found)
    }
}

/// What has been found under this key, or is found now. What hangs on itself is not known.
fn once<K: Copy + Eq + Hash>(
    known: &RefCell<FxHashMap<K, Option<Values>>>,
    key: K,
    find: impl FnOnce() -> Option<Values>,
) -> Option<Values> {
    if let Some(found) = known.borrow().get(&key) {
        return found.clone();
    }
    known.borrow_mut().insert(key, None);
    let found = find();
    known.borrow_mut().insert(key, found.clone());
    found
}

/// The argument of a call for the parameter at this position; nothing if it is left out, `None` if it cannot be told.
pub(super) fn argument_at(ir: &Module, site: Site, at: usize, name: Sym) -> Option<Option<ExprId>> {
    let call = ir.call(site.call);
    let spread = call.args.iter().any(|a| matches!(a.kind, ArgKind::Star | ArgKind::DoubleStar));
    let given = match at.checked_sub(site.bound) {
        Some(at) => crate::flow::site::argument(call, at, name),
        None => return None,
    };
    if given.is_none() && spread { None } else { Some(given) }
}

/// All of them, each once; nothing if one of them is not known, or there are too many.
fn joined(parts: impl IntoIterator<Item = Option<Values>>) -> Option<Values> {
    let mut all: Values = Vec::new();
    for part in parts {
        for value in part? {
            if !all.contains(&value) {
                all.push(value);
            }
        }
    }
    (all.len() <= MAX_VALUES).then_some(all)
}

/// Is it bound itself, and no part of what is bound: `self.items` in `self.items[0]`?
fn is_target(ir: &Module, targets: &[ExprId], e: ExprId) -> bool {
    targets.iter().any(|&t| {
        t == e
            || match ir.expr(t) {
                Expr::Tuple(list) | Expr::List(list) => is_target(ir, ir.list(list), e),
                Expr::Star(rest) => rest == e,
                _ => false,
            }
    })
}

fn may_be_none(ir: &Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::None | Expr::And(_) | Expr::Or(_) => true,
        Expr::IfElse(id) => {
            let parts = ir.if_else(id);
            may_be_none(ir, parts.then) || may_be_none(ir, parts.orelse)
        }
        _ => false,
    }
}

/// May it give nothing, since it looks for something?
fn looks_up(ir: &Module, call: Call<'_>) -> bool {
    ir.last_name(call.func).is_some_and(|name| LOOKUPS.contains(&name.as_str()))
}

/// Is the variable given to the function, or only set by assignments?
fn is_variable_of(ir: &Module, f: FuncId, slot: u16) -> bool {
    let function = ir.function(f);
    let param = function.params.iter().find(|p| p.slot == slot);
    if param.is_some_and(|p| p.default.is_some_and(|d| may_be_none(ir, d))) {
        return false;
    }
    let own = |t: ExprId| ir.function_around(t) == f && ir.binds(t, Var::Local(slot));
    let mut set = ir.stmts[ir.stmts_of(function)].iter();
    param.is_some()
        || set.any(|s| matches!(*s, Stmt::Assign { targets, .. } if ir.list(targets).iter().any(|&t| own(t))))
}
