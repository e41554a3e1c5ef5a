//! Calls that lack what the function needs, or give what it does not take: they raise a `TypeError`, and nothing comes after them.
//! The same of attributes that nothing sets.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::super::diagram::FALSE;
use super::super::nodes::Target;
use super::super::value::{ObjId, Value};
use super::Interp;
use super::args::Args;
use crate::ir::{ArgKind, Expr, ExprId, FuncId, Function, Module, ParamKind};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::sym::Sym;
use crate::torch;

/// What every module has.
static MODULE_NAMES: LazyLock<FxHashSet<Sym>> = LazyLock::new(|| {
    let lines = include_str!("../../../data/module-names.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).map(Sym::new).collect()
});

impl Interp<'_> {
    /// A function or class is called by its name. Gives whether the path ends here.
    pub(super) fn raises_for_lack(&mut self, f: Value, args: &Args) -> bool {
        let callee = match f {
            Value::Closure(id) => {
                let c = self.t.closures.get(id.0);
                Some((c.module, c.func, false))
            }
            Value::Class(key) => {
                let init = self.program.find_method(key, self.known.init);
                init.filter(|_| !self.is_decorated(key)).map(|(m, f)| (m, f, true))
            }
            _ => None,
        };
        self.ends_for_lack(callee, args)
    }

    /// The same of `receiver.name(…)`, where the receiver's own class or file has the function.
    pub(super) fn method_raises_for_lack(&mut self, receiver: Value, name: Sym, args: &Args) -> bool {
        let callee = match receiver {
            Value::Object(id) => {
                let replaced = self.obj(id).attrs.iter().any(|&(n, _)| n == name);
                let class = self.obj(id).class.filter(|_| !replaced);
                class.and_then(|key| self.program.find_method(key, name)).map(|(m, f)| (m, f, true))
            }
            Value::Module(m) => match self.program.attribute(self.here().module, m, name) {
                Some(Resolved::Function(m, f)) => Some((m, f, false)),
                _ => None,
            },
            _ => None,
        };
        self.ends_for_lack(callee, args)
    }

    /// The same of a module, by its class's `forward`.
    pub(super) fn forward_raises_for_lack(&mut self, id: ObjId, forward: Target, args: &Args) -> bool {
        let replaced = self.obj(id).attrs.iter().any(|&(n, _)| n == self.known.forward);
        !replaced && self.ends_for_lack(Some((forward.0, forward.1, true)), args)
    }

    /// An attribute is read that the object does not have. Gives whether the path ends here.
    pub(super) fn raises_for_attribute(&mut self, id: ObjId, name: Sym) -> bool {
        let unset = &self.relevance.unset;
        let lacks = self.muted == 0
            && !unset.is_empty()
            && self.obj(id).class.is_some_and(|class| unset.holds(self.program, class, name));
        if lacks {
            self.path = FALSE;
        }
        lacks
    }

    /// Is the class, or one that it is derived from, what a decorator makes of it?
    fn is_decorated(&self, key: ClassKey) -> bool {
        let decorated = |k: &ClassKey| self.program.get(k.module).ir.class(k.class).decorators.len > 0;
        self.program.class(key).mro.iter().any(decorated)
    }

    /// `net.scale()` of an instance that is made here, and whose class has nothing of that name: nothing comes after it.
    pub(super) fn has_no_such_method(&mut self, receiver: Value, name: Sym) -> bool {
        let Value::Object(id) = receiver else { return false };
        let object = self.obj(id);
        let held = object.attrs.iter().any(|&(n, _)| n == name);
        let Some(class) = object.class.filter(|_| object.outer.is_none() && !held) else { return false };
        // What a class calls of itself may be its subclasses'.
        let own = || {
            let mut around = std::iter::successors(Some(self.here()), |frame| {
                frame.caller.map(|caller| &self.frames[caller.0 as usize])
            });
            around.any(|frame| frame.receiver == receiver)
        };
        if self.muted > 0 || name.as_str().starts_with("__") || own() || self.may_have(class, name) {
            return false;
        }
        self.raise_anywhere();
        true
    }

    /// Is there anything that may be an attribute of the class's objects by that name?
    fn may_have(&self, class: ClassKey, name: Sym) -> bool {
        let info = self.program.class(class);
        let module = |path: &Sym| torch::canonical(*path).as_str() == "torch.nn.Module";
        let known = !info.unknown_base && info.externals.iter().all(module);
        let answers = ["__getattr__", "__getattribute__", "__new__", "__slots__"];
        let mut classes = info.mro.iter().map(|&k| (self.program.get(k.module), k));
        !known
            || self.is_decorated(class)
            || !info.externals.is_empty() && MODULE_NAMES.contains(&name)
            || answers.iter().any(|n| self.program.find_method(class, Sym::new(n)).is_some())
            || classes.any(|(linked, k)| {
                let ir = &linked.ir;
                let body = ir.function(ir.class(k.class).body);
                body.slots.contains(&name)
                    || ir.args(ir.class(k.class).bases).iter().any(|a| a.kind != ArgKind::Positional)
            })
            || self.around(class).any(|ir| names_attribute(ir, name))
    }

    /// The files of a class and its bases, and those that are interpreted.
    fn around(&self, class: ClassKey) -> impl Iterator<Item = &Module> {
        let classes = self.program.class(class).mro.iter().map(|k| k.module);
        classes.chain([self.entry, self.here().module]).map(|m| &self.program.get(m).ir)
    }

    fn ends_for_lack(&mut self, callee: Option<(ModIdx, FuncId, bool)>, args: &Args) -> bool {
        let Some((module, func, bound)) = callee else { return false };
        if self.muted > 0 || args.open || !self.refuses(module, func, bound, args) {
            return false;
        }
        self.raise_anywhere();
        true
    }

    /// Does the function not take what it is given? Decorators may give what they like.
    fn refuses(&self, module: ModIdx, func: FuncId, bound: bool, args: &Args) -> bool {
        let function = self.program.get(module).ir.function(func);
        let given = args.positional.len() + usize::from(bound);
        function.decorators.len == 0 && (lacks(function, given, args) || is_given_more(function, given, args))
    }
}

/// Has a parameter no value?
fn lacks(function: &Function, given: usize, args: &Args) -> bool {
    function.params.iter().enumerate().any(|(n, p)| {
        let by_position = match p.kind {
            ParamKind::PositionalOnly | ParamKind::Normal => n < given,
            ParamKind::KeywordOnly => false,
            ParamKind::Star | ParamKind::DoubleStar => true,
        };
        !by_position && p.default.is_none() && args.keyword(p.name.as_str()).is_none()
    })
}

/// Is there no parameter for an argument?
fn is_given_more(function: &Function, given: usize, args: &Args) -> bool {
    let takes = |kind: ParamKind| function.params.iter().any(|p| p.kind == kind);
    let positional = function
        .params
        .iter()
        .filter(|p| matches!(p.kind, ParamKind::PositionalOnly | ParamKind::Normal))
        .count();
    let named = |name: Sym| {
        let by_name = |kind: ParamKind| matches!(kind, ParamKind::Normal | ParamKind::KeywordOnly);
        function.params.iter().any(|p| p.name == name && by_name(p.kind))
    };
    !takes(ParamKind::Star) && given > positional
        || !takes(ParamKind::DoubleStar) && args.keywords.iter().any(|&(name, ..)| !named(name))
}

/// Does the file do more with attributes of that name than to call them, or may it set one by a text?
fn names_attribute(ir: &Module, name: Sym) -> bool {
    let called: FxHashSet<ExprId> = ir.calls().map(|call| call.func).collect();
    let mut named = (0..ir.exprs.len()).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX)));
    ir.has_string(name)
        || ir.has_attribute(Sym::new("__dict__"))
        || ir.calls().any(|call| ir.is_builtin(call.func, "setattr"))
        || named
            .any(|e| matches!(ir.expr(e), Expr::Attr { name: n, .. } if n == name) && !called.contains(&e))
}
