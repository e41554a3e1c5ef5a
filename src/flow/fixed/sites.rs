//! Where a project calls its functions, methods, modules and classes: all calls, or nothing if others may call.

use rustc_hash::FxHashSet;

use super::Fixed;
use crate::flow::methods::class_of_self;
use crate::flow::nodes::{Node, Target, named, silent};
use crate::flow::unmoved::{class_of, parent};
use crate::flow::unused::is_plain;
use crate::ir::{CallId, Expr, ExprId, FuncId, FuncKind, Function, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::sym::Sym;

/// More calls than these are not looked at.
const MAX_SITES: usize = 64;

/// A call.
#[derive(Clone, Copy)]
pub(super) struct Site {
    pub(super) module: ModIdx,
    pub(super) call: CallId,
    /// So many of the first parameters are given by what stands before the parenthesis.
    pub(super) bound: usize,
}

fn exprs(ir: &Module) -> impl Iterator<Item = ExprId> + use<> {
    (0..ir.exprs.len()).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX)))
}

/// The call whose callee the expression is.
fn call_of(ir: &Module, e: ExprId) -> Option<CallId> {
    match ir.expr(parent(ir, e)?) {
        Expr::Call(id) if ir.call(id).func == e => Some(id),
        _ => None,
    }
}

impl Fixed<'_> {
    /// The calls of a function.
    pub(super) fn sites(&self, (m, f): Target) -> Option<Vec<Site>> {
        let ir = &self.program.get(m).ir;
        let function = ir.function(f);
        if function.kind != FuncKind::Function || !is_plain(self.program, m, function.decorators) {
            return None;
        }
        let found = match (class_of(self.program, m, f), function.class) {
            (Some(class), Some(_)) => match function.name.as_str() {
                "__init__" => self.of_makers(class, (m, f)),
                "forward" => self.of_modules(class),
                _ => self.of_method(class, (m, f)),
            },
            (None, None) if function.parent == Some(FuncId(0)) => self.of_function((m, f)),
            _ => None,
        }?;
        (!found.is_empty() && found.len() <= MAX_SITES).then_some(found)
    }

    fn of_function(&self, (of, f): Target) -> Option<Vec<Site>> {
        let name = self.program.get(of).ir.function(f).name;
        if !self.looked_up.is_named(self.program, (of, f)) || self.is_text(name) {
            return None;
        }
        let mut found = Vec::new();
        for &m in self.files {
            let ir = &self.program.get(m).ir;
            if !self.speaks(m, of, name) {
                continue;
            }
            for e in exprs(ir).filter(|&e| matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. })) {
                if named(self.program, m, e) == Some(Node::Function(of, f)) {
                    found.push(Site { module: m, call: call_of(ir, e)?, bound: 0 });
                } else if self.may_be(m, e, name) {
                    return None;
                }
            }
        }
        Some(found)
    }

    /// May an expression be what has this name, though nobody knows what it is?
    fn may_be(&self, m: ModIdx, e: ExprId, name: Sym) -> bool {
        let ir = &self.program.get(m).ir;
        match ir.expr(e) {
            Expr::Var(Var::Unbound(n)) => n == name,
            _ => match self.program.resolve_expr(m, e) {
                Some(Resolved::External(path)) => {
                    ir.last_name(e) == Some(name) && path.as_str().rsplit('.').next() == Some(name.as_str())
                }
                _ => false,
            },
        }
    }

    fn of_method(&self, class: ClassKey, (of, f): Target) -> Option<Vec<Site>> {
        let function = self.program.get(of).ir.function(f);
        let name = function.name;
        if !self.looked_up.is_called_by_name(self.program, (of, f)) || self.is_text(name) {
            return None;
        }
        let bound = usize::from(has_receiver(function));
        let mut found = Vec::new();
        for &m in self.files {
            let ir = &self.program.get(m).ir;
            if !ir.has_attribute(name) {
                continue;
            }
            for e in exprs(ir) {
                let Expr::Attr { base, name: n } = ir.expr(e) else { continue };
                let other = || class_of_self(ir, m, base).is_some_and(|k| !self.are_related(k, class));
                if n != name || other() || self.program.resolve_expr(m, e).is_some() {
                    continue;
                }
                // `Net.prepare(net, x)`
                if let Some(Resolved::Class(key)) = self.program.resolve_expr(m, base) {
                    match self.are_related(key, class) {
                        true => return None,
                        false => continue,
                    }
                }
                found.push(Site { module: m, call: call_of(ir, e)?, bound });
            }
        }
        Some(found)
    }

    /// The calls of a class, and those of its constructor.
    fn of_makers(&self, class: ClassKey, init: Target) -> Option<Vec<Site>> {
        let name = Sym::new("__init__");
        let made: Vec<ClassKey> = self
            .related(class)
            .into_iter()
            .filter(|&k| self.program.find_method(k, name) == Some(init))
            .collect();
        let mut found = Vec::new();
        for &key in &made {
            let called = self.program.get(key.module).ir.class(key.class).name;
            let known = self.looked_up.is_named_class(self.program, key);
            if !known || self.is_text(called) || !self.is_open(key, name) || self.makes_itself(key) {
                return None;
            }
        }
        for &m in self.files {
            let ir = &self.program.get(m).ir;
            let here: Vec<Sym> = made
                .iter()
                .map(|k| (k, self.program.get(k.module).ir.class(k.class).name))
                .filter(|&(k, name)| self.speaks(m, k.module, name))
                .map(|(_, name)| name)
                .collect();
            if !here.is_empty() {
                self.skip(m);
                for e in exprs(ir).filter(|&e| matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. })) {
                    if here.iter().any(|&name| self.may_be(m, e, name)) {
                        return None;
                    }
                    if matches!(named(self.program, m, e), Some(Node::Class(k)) if made.contains(&k))
                        && !self.silent.borrow().get(&m).is_some_and(|s| s.contains(&e))
                    {
                        self.mentioned(m, e, &mut found)?;
                    }
                }
            }
            if ir.has_attribute(name) {
                self.by_derived(m, init, &mut found);
            }
        }
        Some(found)
    }

    /// A class is mentioned: it is made, its constructor is called, or one of its own methods.
    fn mentioned(&self, m: ModIdx, e: ExprId, found: &mut Vec<Site>) -> Option<()> {
        let ir = &self.program.get(m).ir;
        let around = parent(ir, e)?;
        match ir.expr(around) {
            Expr::Call(id) if ir.call(id).func == e => {
                found.push(Site { module: m, call: id, bound: 1 });
            }
            Expr::Call(id) if ir.is_builtin(ir.call(id).func, "super") => {}
            Expr::Attr { name, .. } if name.as_str() == "__init__" => {
                found.push(Site { module: m, call: call_of(ir, around)?, bound: 0 });
            }
            Expr::Attr { name, .. } => {
                let Some(Node::Class(key)) = named(self.program, m, e) else { return None };
                self.program.find_method(key, name)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// Calls of `super().__init__(…)` in a file that come to this constructor.
    fn by_derived(&self, m: ModIdx, init: Target, found: &mut Vec<Site>) {
        let ir = &self.program.get(m).ir;
        for e in exprs(ir) {
            let Expr::Attr { base, name } = ir.expr(e) else { continue };
            let Expr::Call(id) = ir.expr(base) else { continue };
            if name.as_str() != "__init__" || !ir.is_builtin(ir.call(id).func, "super") {
                continue;
            }
            let around = ir.function(ir.function_around(e));
            let Some(class) = around.class else { continue };
            let mro = &self.program.class(ClassKey { module: m, class }).mro;
            let next = mro.iter().skip(1).find_map(|&k| Some((k.module, self.program.own_method(k, name)?)));
            if next == Some(init)
                && let Some(call) = call_of(ir, e)
            {
                found.push(Site { module: m, call, bound: 1 });
            }
        }
    }

    /// Does a method make other objects of its class, whatever that is: `cls(…)`, `type(self)(…)`?
    fn makes_itself(&self, class: ClassKey) -> bool {
        self.related(class).into_iter().any(|k| {
            let ir = &self.program.get(k.module).ir;
            let span = ir.class(k.class).span;
            ir.calls().filter(|call| span.contains(ir.span(call.func))).any(|call| match ir.expr(call.func) {
                Expr::Call(id) => ir.is_builtin(ir.call(id).func, "type"),
                _ => ir
                    .last_name(call.func)
                    .is_some_and(|n| matches!(n.as_str(), "cls" | "__class__" | "klass")),
            })
        })
    }

    /// The calls of the modules of a class: those of the variables and attributes that hold one.
    fn of_modules(&self, class: ClassKey) -> Option<Vec<Site>> {
        let mut holders: FxHashSet<Holder> = FxHashSet::default();
        for &m in self.files {
            let ir = &self.program.get(m).ir;
            self.skip(m);
            let silent = self.silent.borrow();
            for e in exprs(ir).filter(|e| !silent.get(&m).is_some_and(|s| s.contains(e))) {
                if !matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. }) {
                    continue;
                }
                if let Some(Node::Class(key)) = named(self.program, m, e)
                    && self.program.class(key).mro.contains(&class)
                {
                    let holder = holder(ir, e)?;
                    holders.extend(holder.and_then(|e| Holder::of(ir, m, e)));
                }
            }
        }
        let mut found = Vec::new();
        for &m in self.files {
            let ir = &self.program.get(m).ir;
            for e in exprs(ir) {
                if !holders.iter().any(|&holder| self.may_hold(holder, m, e)) {
                    continue;
                }
                match use_of(ir, e) {
                    Use::Call(call) => found.push(Site { module: m, call, bound: 1 }),
                    Use::Other => return None,
                    Use::Nothing => {}
                }
            }
        }
        Some(found)
    }

    fn may_hold(&self, holder: Holder, m: ModIdx, e: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        match holder {
            Holder::Local(of, name) => of == m && ir.variable_of(e) == Some(name),
            Holder::Anywhere(name) => ir.last_name(e) == Some(name),
            Holder::Attribute(name, of) => {
                let Expr::Attr { base, name: other } = ir.expr(e) else { return false };
                // What another class keeps under that name for itself is not it.
                let own = class_of_self(ir, m, base);
                other == name && of.zip(own).is_none_or(|(a, b)| self.are_related(a, b))
            }
        }
    }

    /// The class, its bases, and what is derived from it.
    pub(super) fn related(&self, class: ClassKey) -> Vec<ClassKey> {
        let all = self.files.iter().flat_map(|&module| {
            let count = u32::try_from(self.program.get(module).ir.classes.len()).unwrap_or_default();
            (0..count).map(move |n| ClassKey { module, class: crate::ir::ClassId(n) })
        });
        all.filter(|&k| self.are_related(k, class)).collect()
    }

    pub(super) fn are_related(&self, a: ClassKey, b: ClassKey) -> bool {
        self.program.class(a).mro.contains(&b) || self.program.class(b).mro.contains(&a)
    }

    /// Is all that such objects do in sight: are no others among their bases, and do they set no attributes by names that are put
    /// together, or answer for this one?
    pub(super) fn is_open(&self, class: ClassKey, name: Sym) -> bool {
        let harmless = |p: &Sym| {
            let p = p.as_str();
            p.starts_with("torch.nn.")
                || p.starts_with("torch.utils.data.")
                || matches!(
                    p,
                    "builtins.object"
                        | "abc.ABC"
                        | "torch.autograd.Function"
                        | "torch.autograd.function.Function"
                )
        };
        self.related(class).into_iter().all(|k| {
            let info = self.program.class(k);
            let ir = &self.program.get(k.module).ir;
            let within = ir.class(k.class).span;
            let method = |text: &str| self.program.own_method(k, Sym::new(text)).is_some();
            let hidden = ["__setattr__", "__getattr__", "__getattribute__", "__setstate__", "__new__"];
            let sets = || {
                ir.calls()
                    .filter(|call| within.contains(ir.span(call.func)))
                    .any(|call| ir.is_builtin(call.func, "setattr") || ir.is_builtin(call.func, "vars"))
                    || ir.exprs.iter().zip(&ir.expr_spans).any(|(e, span)| {
                        matches!(e, Expr::Attr { name, .. } if name.as_str() == "__dict__")
                            && within.contains(*span)
                    })
            };
            !info.unknown_base
                && info.externals.iter().all(harmless)
                && ir.class(k.class).decorators.len == 0
                && !hidden.iter().any(|text| method(text))
                && (name.as_str() == "__init__" || self.program.own_method(k, name).is_none())
                && !sets()
        })
    }

    /// Does the file know the name of something in another one, whatever it calls it?
    fn speaks(&self, m: ModIdx, of: ModIdx, name: Sym) -> bool {
        let ir = &self.program.get(m).ir;
        m == of
            || ir.has_attribute(name)
            || ir.imports.iter().any(|i| i.name == Some(name) || i.name.is_some_and(|n| n.as_str() == "*"))
    }

    /// Does a text say the name, by which somebody may look it up?
    fn is_text(&self, name: Sym) -> bool {
        self.files.iter().any(|&m| self.program.get(m).ir.has_string(name)) || (self.named_elsewhere)(name)
    }

    fn skip(&self, m: ModIdx) {
        let mut known = self.silent.borrow_mut();
        known.entry(m).or_insert_with(|| silent(&self.program.get(m).ir));
    }
}

/// Is the function's first parameter the object that it is called of?
fn has_receiver(function: &Function) -> bool {
    function.params.first().is_some_and(|p| matches!(p.name.as_str(), "self" | "cls"))
}

/// What holds the module whose class is mentioned: nothing if it is a mention that makes none, or `None` if it gets out of sight.
fn holder(ir: &Module, mention: ExprId) -> Option<Option<ExprId>> {
    let made = parent(ir, mention)?;
    match ir.expr(made) {
        Expr::Call(id) if ir.call(id).func == mention => {}
        // `super(Cell, self)`
        Expr::Call(id) => return ir.is_builtin(ir.call(id).func, "super").then_some(None),
        _ => return None,
    }
    if parent(ir, made).is_some() {
        return None;
    }
    let mut stmts = ir.stmts.iter();
    let targets = stmts.find_map(|s| match *s {
        Stmt::Assign { targets, value } if value == made => Some(targets),
        _ => None,
    })?;
    match ir.list(targets) {
        &[only] => ir.last_name(only).map(|_| Some(only)),
        _ => None,
    }
}

/// What holds a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    /// An attribute, with the class whose methods set it, if that is known.
    Attribute(Sym, Option<ClassKey>),
    /// A variable of a function.
    Local(ModIdx, Sym),
    /// One of a file, which others may import.
    Anywhere(Sym),
}

impl Holder {
    fn of(ir: &Module, m: ModIdx, e: ExprId) -> Option<Self> {
        let name = ir.last_name(e)?;
        Some(match ir.expr(e) {
            Expr::Attr { base, .. } => Self::Attribute(name, class_of_self(ir, m, base)),
            Expr::Var(Var::Local(_)) if ir.function_around(e) != FuncId(0) => Self::Local(m, name),
            _ => Self::Anywhere(name),
        })
    }
}

/// What is done with a module.
enum Use {
    /// It is called.
    Call(CallId),
    /// It is only bound, or one of its attributes is read.
    Nothing,
    /// It may be called by others.
    Other,
}

fn use_of(ir: &Module, e: ExprId) -> Use {
    let Some(around) = parent(ir, e) else {
        let bound = ir
            .stmts
            .iter()
            .any(|s| matches!(*s, Stmt::Assign { targets, .. } if ir.list(targets).contains(&e)));
        return if bound { Use::Nothing } else { Use::Other };
    };
    match ir.expr(around) {
        Expr::Call(id) if ir.call(id).func == e => Use::Call(id),
        Expr::Attr { name, .. } if name.as_str() == "forward" => match call_of(ir, around) {
            Some(id) => Use::Call(id),
            None => Use::Other,
        },
        Expr::Attr { .. } => Use::Nothing,
        _ => Use::Other,
    }
}
