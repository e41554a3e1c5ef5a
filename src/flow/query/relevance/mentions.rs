//! What an expression mentions: functions, classes, variables, devices.

use crate::flow::query::relevance::file_scan::{Scan, packs_sequences};
use crate::flow::query::relevance::graph::Node;
use crate::ir::{ArgKind, Call, ClassId, Expr, ExprId, FuncId, FuncKind, Slot, Var};
use crate::link::{Binding, ClassKey, ModIdx, Resolved, Target};
use crate::sym::{Answers, Sym};
use crate::torch::{self};

thread_local! {
    static SEEDS: Answers = const { Answers::new() };
    static TELLING: Answers = const { Answers::new() };
    static REVEALING: Answers = const { Answers::new() };
}

/// Whether the function is one of those that reveal the engine's knowledge to a program.
fn is_revealing(name: Sym) -> bool {
    REVEALING.with(|known| known.ask(name, |text| text.starts_with("reveal_")))
}

impl Scan<'_> {
    pub(crate) fn attribute(&mut self, e: ExprId, base: ExprId, name: Sym) {
        match self.ir.expr(base) {
            // `self.method`
            Expr::Var(Var::Local(0)) => {
                let owner = self.owner(e);
                if let Some(class) = self
                    .ir
                    .function(owner)
                    .class
                    .filter(|_| self.ir.function(owner).kind == FuncKind::Function)
                {
                    self.method(owner, e, class, name);
                }
            }
            Expr::Var(Var::Enclosing { slot: 0, .. }) => {
                let owner = self.owner(e);
                if let Some(class) = self.class_around(owner) {
                    self.method(owner, e, class, name);
                }
            }
            Expr::Call(id) if matches!(self.ir.expr(self.ir.call(id).func), Expr::Var(Var::Unbound(n)) if n == self.names.super_) =>
            {
                let owner = self.owner(e);
                if let Some(class) = self.class_around(owner) {
                    let key = ClassKey { module: self.module, class };
                    for &k in self.program.class(key).mro.iter().skip(1) {
                        if let Some((m, f)) = self.own_method(k, name) {
                            self.edge(owner, self.ir.span(e), Node::Function(m, f));
                            break;
                        }
                    }
                }
            }
            // `module.function`, `Class.method`
            Expr::Var(Var::Global(_) | Var::Unbound(_)) | Expr::Attr { .. } if self.in_project(base) => {
                match self.program.resolve_expr(self.module, base) {
                    Some(Resolved::Module(m)) => {
                        if let Some(r) = self.program.attribute(self.module, m, name) {
                            self.mention(e, r);
                        }
                    }
                    Some(Resolved::Class(key)) => {
                        if let Some((m, f)) = self.program.find_method(key, name) {
                            self.edge(self.owner(e), self.ir.span(e), Node::Function(m, f));
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Whether an attribute of this name can be a seed, on any object. Most names cannot.
    pub(crate) fn says_something(&self, name: Sym) -> bool {
        TELLING.with(|known| {
            known.ask(name, |text| {
                let names = self.names;
                names.seeds.contains(&name)
                    || names.demands.contains(&name)
                    || name == names.generators
                    || text.ends_with("Tensor")
            })
        })
    }

    pub(crate) fn telling_attribute(&mut self, e: ExprId, base: ExprId, name: Sym, asked: bool) {
        if self.names.seeds.contains(&name) || self.names.demands.contains(&name) {
            if asked || self.is_from_numpy(base) {
                self.hint(e);
            } else if self.is_package(e) {
                self.uses(e);
            } else {
                self.seed(e);
            }
        }
        if name == self.names.generators {
            self.found.generators.push(e);
        }
        // `torch.cuda.FloatTensor`
        if name.as_str().ends_with("Tensor") && self.is_package(base) {
            self.seed(e);
        }
    }

    /// Whether the base is `np`: `np.float64` is not a tensor type.
    fn is_from_numpy(&self, base: ExprId) -> bool {
        matches!(self.ir.expr(base), Expr::Var(_))
            && matches!(self.program.resolve_expr(self.module, base),
                Some(Resolved::External(path)) if path.as_str() == "numpy")
    }

    /// Whether the expression is a package such as `torch.cuda`, and not a method of a tensor.
    fn is_package(&self, e: ExprId) -> bool {
        let path = self.program.resolve_expr(self.module, e);
        matches!(path, Some(Resolved::External(path)) if path.as_str().starts_with("torch."))
    }

    /// Whether the dotted name begins with an item of the project.
    pub(crate) fn in_project(&self, mut e: ExprId) -> bool {
        loop {
            match self.ir.expr(e) {
                Expr::Attr { base, .. } => e = base,
                Expr::Var(Var::Global(slot)) => {
                    let binding = self.program.get(self.module).bindings.get(slot as usize);
                    return matches!(
                        binding,
                        Some(
                            Binding::Class(_)
                                | Binding::Import(Target::Module(_) | Target::Member(..))
                                | Binding::Value(_)
                        )
                    );
                }
                Expr::Var(Var::Local(_)) => return self.owner(e) == FuncId(0),
                Expr::Var(Var::Unbound(_)) => return !self.program.get(self.module).stars.is_empty(),
                _ => return false,
            }
        }
    }

    pub(crate) fn own_method(&self, key: ClassKey, name: Sym) -> Option<(ModIdx, FuncId)> {
        self.program.own_method(key, name).map(|f| (key.module, f))
    }

    pub(crate) fn class_around(&self, mut f: FuncId) -> Option<ClassId> {
        loop {
            let function = self.ir.function(f);
            if function.kind == FuncKind::Function && function.class.is_some() {
                return function.class;
            }
            f = function.parent?;
        }
    }

    pub(crate) fn method(&mut self, owner: FuncId, e: ExprId, class: ClassId, name: Sym) {
        let key = ClassKey { module: self.module, class };
        let Some((m, f)) = self.program.find_method(key, name) else { return };
        self.edge(owner, self.ir.span(e), Node::Function(m, f));
        self.found.same.push(((self.module, owner), (m, f)));
    }

    pub(crate) fn variable(&mut self, e: ExprId, var: Var) {
        match var {
            Var::Global(slot) => self.global(e, slot),
            // In module-level code, local slots are the module's variables.
            Var::Local(slot) if self.owner(e) == FuncId(0) => self.global(e, slot),
            // A local import counts only for external modules such as PyTorch. Functions of the project that are imported locally are
            // usually expensive to import and irrelevant here.
            Var::Local(_) | Var::Enclosing { .. } => {
                if let Some(r @ Resolved::External(_)) = self.program.resolve_expr(self.module, e) {
                    self.mention(e, r);
                }
            }
            Var::Unbound(name) if is_revealing(name) => self.seed(e),
            // `from helpers import *`
            Var::Unbound(name) if !self.program.get(self.module).stars.is_empty() => {
                if let Some(r) = self.program.lookup(self.module, name) {
                    self.mention(e, r);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn global(&mut self, e: ExprId, slot: Slot) {
        let linked = self.program.get(self.module);
        match linked.bindings.get(slot as usize) {
            Some(Binding::Value(_) | Binding::Complex) => {
                self.edge(self.owner(e), self.ir.span(e), Node::Variable(self.module, slot));
            }
            Some(&Binding::Def(f)) => self.mention(e, Resolved::Function(self.module, f)),
            Some(&Binding::Import(target @ (Target::Member(..) | Target::External(_)))) => {
                if let Some(r) = self.program.resolve(target) {
                    self.mention(e, r);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn mention(&mut self, e: ExprId, r: Resolved) {
        let (owner, span) = (self.owner(e), self.ir.span(e));
        match r {
            Resolved::Function(m, f) => self.edge(owner, span, Node::Function(m, f)),
            Resolved::Variable(m, slot)
                if matches!(self.program.get(m).bindings.get(slot as usize), Some(Binding::Value(_))) =>
            {
                self.edge(owner, span, Node::Variable(m, slot));
            }
            Resolved::External(path) if self.is_seed(path) => self.seed(e),
            _ => {}
        }
    }

    /// Whether an imported name is a seed wherever it is used.
    pub(crate) fn is_seed(&self, path: Sym) -> bool {
        SEEDS.with(|known| {
            known.ask(path, |text| {
                let last = text.rsplit('.').next().unwrap_or(text);
                text.starts_with("torch.cuda.") && text != "torch.cuda.is_available"
                    || self.names.seeds.contains(&Sym::new(last))
                    || torch::call(path).is_some_and(|fact| fact.keeps_at.is_some())
            })
        })
    }

    /// `by_name`: whether the callee may be a variable that resolves by name.
    pub(crate) fn call(&mut self, e: ExprId, call: Call<'_>, by_name: bool) {
        let owner = self.owner(e);
        self.found.calls[owner.0 as usize] += 1;
        self.decided_by_arguments(e, owner, call);
        let callee = match self.ir.expr(call.func) {
            Expr::Var(_) | Expr::Attr { .. } if by_name || !self.is_of_local(call.func) => {
                self.program.resolve_expr(self.module, call.func)
            }
            _ => None,
        };
        // `(Large if large else Small)(width)`
        if let Expr::IfElse(id) = self.ir.expr(call.func) {
            for class in [self.ir.if_else(id).then, self.ir.if_else(id).orelse] {
                if let Some(Resolved::Class(key)) = self.program.resolve_expr(self.module, class)
                    && let Some((m, f)) = self.program.find_method(key, self.names.init)
                {
                    self.edge(owner, self.ir.span(e), Node::Function(m, f));
                }
            }
        }
        let for_itself = by_name && self.program.is_local_import(self.module, call.func);
        match callee {
            Some(Resolved::External(path)) => self.external(e, path, call),
            // `self.table = make_table(…)`: the constructor keeps the result.
            Some(Resolved::Function(m, f)) if self.ir.function(owner).name == self.names.init => {
                self.found.helpers.push(((self.module, owner), (m, f)));
            }
            Some(Resolved::Class(key)) if !for_itself => {
                if let Some((m, f)) = self.program.find_method(key, self.names.init) {
                    self.edge(owner, self.ir.span(e), Node::Function(m, f));
                }
                if packs_sequences(&self.program.get(key.module).ir) {
                    self.hands_lengths(owner);
                }
                // A module that no code moves is on the CPU. A submodule moves with its parent.
                if self.is_module_class(key) && !self.builds_module(owner) {
                    self.seed_in(owner, self.ir.span(e));
                }
            }
            _ if self.is_of_modules(call.func) && !self.builds_module(owner) => {
                self.seed_in(owner, self.ir.span(e));
            }
            _ => {}
        }
    }

    /// Records devices that the arguments of a call decide, for any callee.
    fn decided_by_arguments(&mut self, e: ExprId, owner: FuncId, call: Call<'_>) {
        if let Expr::Attr { name, .. } = self.ir.expr(call.func)
            && name == self.names.to
            && call.args.iter().any(|a| self.is_index(e, a.value))
        {
            self.seed(e);
        }
        // The creator of the generator has decided its device.
        if let Some(given) = call.args.iter().find(|a| a.kind == ArgKind::Keyword(self.names.generator)) {
            // A parameter's device is unknown here.
            if self.is_parameter(owner, given.value) {
                self.hint(e);
            } else {
                self.seed(e);
            }
        }
        if call.args.iter().any(|a| {
            a.kind == ArgKind::Keyword(self.names.device)
                && (self.is_index(e, a.value) || self.is_type(a.value))
        }) {
            self.seed(e);
        }
        // `.numpy()` in the `forward` of a module: tensors that the module creates need not be on the host.
        if let Expr::Attr { name, .. } = self.ir.expr(call.func)
            && name == self.names.numpy
            && let function = self.ir.function(owner)
            && function.name == self.names.forward
            && let Some(class) = function.class
            && self.is_module_class(ClassKey { module: self.module, class })
        {
            self.seed(e);
        }
        // A tokenizer's result is on the CPU.
        if call.args.iter().any(|a| {
            a.kind == ArgKind::Keyword(self.names.return_tensors)
                && matches!(self.ir.expr(a.value), Expr::Str(s) if s.as_str() == "pt")
        }) {
            self.seed(e);
        }
        // `.type(torch.FloatTensor)` moves to the CPU.
        if let Expr::Attr { name, .. } = self.ir.expr(call.func)
            && name == self.names.type_
            && call.args.iter().any(|a| self.is_legacy_type(a.value))
        {
            self.seed(e);
        }
    }

    /// Whether the expression is a local variable of a function, or a dotted name that begins with one.
    fn is_of_local(&self, mut e: ExprId) -> bool {
        loop {
            match self.ir.expr(e) {
                Expr::Attr { base, .. } | Expr::Index { base, .. } => e = base,
                Expr::Var(Var::Local(_) | Var::Enclosing { .. }) => return true,
                _ => return false,
            }
        }
    }

    /// If a submodule packs sequences, the `forward` of the module decides on which device the lengths are.
    fn hands_lengths(&mut self, constructor: FuncId) {
        if !self.builds_module(constructor) {
            return;
        }
        let Some(class) = self.ir.function(constructor).class else { return };
        let key = ClassKey { module: self.module, class };
        if let Some(forward) = self.program.own_method(key, self.names.forward) {
            self.seed_in(forward, self.ir.function(forward).span);
        }
    }

    /// `torch.FloatTensor`, or its name as a string.
    fn is_legacy_type(&self, e: ExprId) -> bool {
        let legacy = |name: &str| name.ends_with("Tensor") && name != "Tensor";
        match self.ir.expr(e) {
            Expr::Attr { name, .. } => legacy(name.as_str()),
            Expr::Str(s) => s.as_str().starts_with("torch.") && legacy(s.as_str()),
            _ => false,
        }
    }
}
