//! What an expression mentions: functions, classes, variables, devices.

use super::file_scan::{Scan, names_place, packs_sequences};
use super::relevance_graph::Node;
use crate::ir::{ArgKind, Call, ClassId, Expr, ExprId, FuncId, FuncKind, Slot, Stmt, Var, Whole};
use crate::link::{Binding, ClassKey, ModIdx, Resolved, Target};
use crate::sym::{Answers, Sym};
use crate::torch::{self, Kind, Returns, State, Without};

thread_local! {
    static SEEDS: Answers = const { Answers::new() };
    static TELLING: Answers = const { Answers::new() };
    static REVEALING: Answers = const { Answers::new() };
}

/// Is it one of the functions by which programs ask what the engine knows?
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

    /// Can an attribute of this name be a seed, whatever it is one of? Most names cannot.
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

    /// `np`, of which `np.float64` is no type of a tensor.
    fn is_from_numpy(&self, base: ExprId) -> bool {
        matches!(self.ir.expr(base), Expr::Var(_))
            && matches!(self.program.resolve_expr(self.module, base),
                Some(Resolved::External(path)) if path.as_str() == "numpy")
    }

    /// `torch.cuda`, and no method of a tensor.
    fn is_package(&self, e: ExprId) -> bool {
        let path = self.program.resolve_expr(self.module, e);
        matches!(path, Some(Resolved::External(path)) if path.as_str().starts_with("torch."))
    }

    /// Does the dotted name begin with something of the project?
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
            // In module-level code the slot is the module's.
            Var::Local(slot) if self.owner(e) == FuncId(0) => self.global(e, slot),
            // What a function imports for itself: PyTorch, that is. Of the project's own functions it is those that are
            // expensive to import, and what they do is mostly beside the point.
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

    /// An imported name that is a seed wherever it is used.
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

    /// `by_name`: may what is called be a variable that is known by its name?
    pub(crate) fn call(&mut self, e: ExprId, call: Call<'_>, by_name: bool) {
        let owner = self.owner(e);
        self.found.calls[owner.0 as usize] += 1;
        if let Expr::Attr { name, .. } = self.ir.expr(call.func)
            && name == self.names.to
            && call.args.iter().any(|a| self.is_index(e, a.value))
        {
            self.seed(e);
        }
        // Whoever made the generator has decided where it draws.
        if let Some(given) = call.args.iter().find(|a| a.kind == ArgKind::Keyword(self.names.generator)) {
            if self.is_parameter(owner, given.value) {
                self.own(e);
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
        // What a module makes itself is not.
        if let Expr::Attr { name, .. } = self.ir.expr(call.func)
            && name == self.names.numpy
            && let function = self.ir.function(owner)
            && function.name == self.names.forward
            && let Some(class) = function.class
            && self.is_module_class(ClassKey { module: self.module, class })
        {
            self.seed(e);
        }
        // What a tokenizer gives is on the CPU.
        if call.args.iter().any(|a| {
            a.kind == ArgKind::Keyword(self.names.return_tensors)
                && matches!(self.ir.expr(a.value), Expr::Str(s) if s.as_str() == "pt")
        }) {
            self.seed(e);
        }
        // `.type(torch.FloatTensor)` is for the CPU.
        if let Expr::Attr { name, .. } = self.ir.expr(call.func)
            && name == self.names.type_
            && call.args.iter().any(|a| self.is_legacy_type(a.value))
        {
            self.seed(e);
        }
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
            // `self.table = make_table(…)`: the constructor keeps what that makes.
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
                // A module that nothing moves is on the CPU; one that belongs to a module moves with it.
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

    /// Is it a variable of a function, or a dotted name that begins with one?
    fn is_of_local(&self, mut e: ExprId) -> bool {
        loop {
            match self.ir.expr(e) {
                Expr::Attr { base, .. } | Expr::Index { base, .. } => e = base,
                Expr::Var(Var::Local(_) | Var::Enclosing { .. }) => return true,
                _ => return false,
            }
        }
    }

    /// A part of the module packs sequences: its `forward` decides where the lengths are that it hands to it.
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

    /// `torch.FloatTensor`, and its name as a text.
    fn is_legacy_type(&self, e: ExprId) -> bool {
        let legacy = |name: &str| name.ends_with("Tensor") && name != "Tensor";
        match self.ir.expr(e) {
            Expr::Attr { name, .. } => legacy(name.as_str()),
            Expr::Str(s) => s.as_str().starts_with("torch.") && legacy(s.as_str()),
            _ => false,
        }
    }

    /// `KINDS[name]` of a table of modules' classes.
    pub(crate) fn is_of_modules(&self, callee: ExprId) -> bool {
        let Expr::Index { base, .. } = self.ir.expr(callee) else { return false };
        let Expr::Var(_) = self.ir.expr(base) else { return false };
        let Some((m, table)) = self.program.bound_to(self.module, base) else { return false };
        let linked = self.program.get(m);
        let (Expr::Dict(list) | Expr::List(list) | Expr::Tuple(list)) = linked.ir.expr(table) else {
            return false;
        };
        linked.ir.list(list).iter().any(|&e| {
            matches!(linked.ir.expr(e), Expr::Var(_) | Expr::Attr { .. })
                && matches!(self.program.resolve_expr(m, e), Some(Resolved::Class(key)) if self.is_module_class(key))
        })
    }

    /// Is the expression, as an argument of `torch.device`, a device that is not the caller's to choose?
    fn is_place(&self, at: ExprId, e: ExprId) -> bool {
        match self.ir.expr(e) {
            Expr::Var(_) | Expr::Attr { .. } | Expr::Call(_) => self.is_index(at, e),
            Expr::Str(s) => names_place(s),
            _ => true,
        }
    }

    /// Is the expression a number that names a device?
    pub(crate) fn is_index(&self, at: ExprId, e: ExprId) -> bool {
        match self.ir.expr(e) {
            Expr::Int(_) | Expr::Binary { .. } => true,
            Expr::Attr { name, .. } => is_rank(name.as_str()),
            Expr::Var(var) => {
                let owner = self.owner(at);
                let function = self.ir.function(owner);
                let name = match var {
                    Var::Local(slot) => function.slots.get(slot as usize).copied(),
                    Var::Global(slot) => {
                        self.ir.functions.first().and_then(|f| f.slots.get(slot as usize)).copied()
                    }
                    Var::Unbound(name) => Some(name),
                    Var::Enclosing { .. } => return true,
                };
                let param = match var {
                    Var::Local(slot) => function.params.iter().find(|p| p.slot == slot),
                    _ => None,
                };
                let numeric = param.is_some_and(|p| {
                    p.default.is_some_and(|d| {
                        matches!(self.ir.expr(d), Expr::Int(_) | Expr::Float(_) | Expr::Unary { .. })
                    }) || p.annotation.is_some_and(
                        |a| matches!(self.ir.expr(a), Expr::Var(Var::Unbound(n)) if n.as_str() == "int"),
                    )
                });
                numeric || name.is_some_and(|n| is_rank(n.as_str()))
            }
            // `dist.get_rank()`
            Expr::Call(id) => self.ir.last_name(self.ir.call(id).func).is_some_and(|n| is_rank(n.as_str())),
            _ => false,
        }
    }

    /// `device.type == "gpu"`
    pub(crate) fn compares_type(&self, left: ExprId, right: ExprId) -> bool {
        [(left, right), (right, left)].into_iter().any(|(of, text)| {
            matches!(self.ir.expr(of), Expr::Attr { name, .. } if name.as_str() == "type")
                && matches!(self.ir.expr(text), Expr::Str(s) if super::type_names::is_no_device_type(s.as_str()))
        })
    }

    /// `x.device == "cuda"` and `"cpu" in x.device`, as if that were a text.
    pub(crate) fn takes_for_text(&self, left: ExprId, right: ExprId) -> bool {
        [(left, right), (right, left)].into_iter().any(|(of, text)| {
            matches!(self.ir.expr(of), Expr::Attr { name, .. } if name == self.names.device)
                && matches!(self.ir.expr(text), Expr::Str(s) if s.as_str() == "meta" || super::file_scan::names_place(s))
        })
    }

    /// `torch.autocast(x.device)`, which wants the type of that.
    fn is_cast_for_device(&self, path: Sym, call: Call<'_>) -> bool {
        let device =
            |e: ExprId| matches!(self.ir.expr(e), Expr::Attr { name, .. } if name == self.names.device);
        torch::canonical(path).as_str() == "torch.autocast" && call.args.iter().any(|a| device(a.value))
    }

    /// `x.dtype`: the type of numbers, where a device belongs.
    fn is_type(&self, e: ExprId) -> bool {
        matches!(self.ir.expr(e), Expr::Attr { name, .. }
            if name.as_str() == "dtype" || super::type_names::is_number_type(name.as_str()))
    }

    pub(crate) fn external(&mut self, e: ExprId, path: Sym, call: Call<'_>) {
        if path.as_str().starts_with("builtins.") {
            return;
        }
        if self.is_cast_for_device(path, call) {
            self.own(e);
        }
        let seed = if matches!(
            path.as_str(),
            "torch.load" | "torch.jit.load" | "torch.distributed.init_process_group"
        ) {
            true
        } else if let Some(module) = torch::module(path) {
            // Without weights it works anywhere.
            let empty = module.state == State::No || module.state == State::Sometimes && call.args.is_empty();
            let owner = self.owner(e);
            !empty && (!self.builds_module(owner) || self.is_of_moved_base(owner))
        } else if let Some(op) = torch::function(path) {
            let placed = op.accepts.device
                && call.args.iter().any(|a| {
                    a.kind == ArgKind::DoubleStar
                        || a.kind == ArgKind::Keyword(self.names.device)
                            && self.ir.expr(a.value) != Expr::None
                });
            let makes = matches!(op.kind, Kind::Factory | Kind::Distribution)
                || matches!(
                    op.result,
                    torch::ResultRule::Cpu | torch::ResultRule::Cuda | torch::ResultRule::Backend(_)
                );
            if placed && makes && self.is_beside(call) {
                let owner = self.owner(e);
                self.found.beside.insert(owner);
            }
            let large = placed && call.args.iter().any(|a| self.is_large(a.value));
            let demands = op.kind == Kind::CpuOnly || op.args.iter().any(|a| a.share == torch::Share::Cpu);
            // What has no dimensions meets tensors anywhere.
            if makes && !placed && self.is_of_number(call) {
                self.own(e);
                return;
            }
            let open = !placed || large || self.is_for_new_module(e, call);
            makes && !self.is_registered(self.ir.span(e)) && open || demands
        } else if let Some(fact) = torch::call(path) {
            if fact.accelerator.is_some_and(|a| a.without == Without::Raises) {
                self.uses(e);
            }
            matches!(fact.returns, Returns::Cpu | Returns::CpuBatches(_) | Returns::Items)
        } else {
            let text = path.as_str();
            text == "torch.device" && call.args.iter().any(|a| self.is_place(e, a.value))
                || text.starts_with("torchvision.models.")
                || torch::base_class(path).is_some_and(|b| b.kind == torch::Base::Module)
        };
        if seed {
            self.seed(e);
        } else if path.as_str() == "torch.device" {
            self.hint(e);
        }
    }

    /// `torch.ones(n, device=self.device)` in the constructor of a module that a framework moves later: that is the CPU.
    fn is_for_new_module(&self, e: ExprId, call: Call<'_>) -> bool {
        let own = |e: ExprId| {
            self.is_own_attribute(e)
                && matches!(self.ir.expr(e), Expr::Attr { name, .. } if name == self.names.device)
        };
        let owner = self.owner(e);
        let moved = |&path: &Sym| torch::base_class(path).is_some_and(|b| b.moves_for_user);
        call.args.iter().any(|a| a.kind == ArgKind::Keyword(self.names.device) && own(a.value))
            && self.builds_module(owner)
            && self.ir.function(owner).class.is_some_and(|class| {
                self.program.class(ClassKey { module: self.module, class }).externals.iter().any(moved)
            })
    }

    /// `torch.tensor(self.window)` of what the function has been given as a number.
    fn is_of_number(&self, call: Call<'_>) -> bool {
        let named = matches!(self.ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "tensor");
        named
            && call.args.first().is_some_and(|a| a.kind == ArgKind::Positional && self.is_number(a.value, 0))
    }

    fn is_number(&self, e: ExprId, depth: u32) -> bool {
        match self.ir.expr(e) {
            Expr::Int(_) | Expr::Float(_) => depth > 0,
            Expr::Var(Var::Local(slot)) => {
                let function = self.ir.function(self.owner(e));
                function.params.iter().filter(|p| p.slot == slot).filter_map(|p| p.annotation).any(|a| {
                    matches!(self.ir.expr(a), Expr::Var(Var::Unbound(n)) if matches!(n.as_str(), "int" | "float"))
                })
            }
            // What it has just kept.
            Expr::Attr { name, .. } if depth == 0 && self.is_own_attribute(e) => {
                let body = self.ir.function(self.owner(e)).body;
                self.ir.block(body).iter().any(|&s| match self.ir.stmt(s) {
                    Stmt::Assign { targets, value } => {
                        let kept = |&t: &ExprId| {
                            self.is_own_attribute(t)
                                && matches!(self.ir.expr(t), Expr::Attr { name: n, .. } if n == name)
                        };
                        self.ir.list(*targets).iter().any(kept) && self.is_number(*value, 1)
                    }
                    _ => false,
                })
            }
            _ => false,
        }
    }

    /// Is it what the function has been given?
    fn is_parameter(&self, owner: FuncId, e: ExprId) -> bool {
        matches!(self.ir.expr(e), Expr::Var(Var::Local(slot))
            if self.ir.function(owner).params.iter().any(|p| p.slot == slot))
    }

    /// `device=x.device`
    fn is_beside(&self, call: Call<'_>) -> bool {
        let device = self.names.device;
        call.args.iter().any(|a| {
            a.kind == ArgKind::Keyword(device)
                && matches!(self.ir.expr(a.value), Expr::Attr { name, .. } if name == device)
        })
    }

    pub(crate) fn is_large(&self, e: ExprId) -> bool {
        match self.ir.expr(e) {
            Expr::Int(Whole(i)) => i >= 512,
            Expr::Tuple(list) | Expr::List(list) => self.ir.list(list).iter().any(|&x| self.is_large(x)),
            // A product of constants.
            Expr::Binary { left, right, .. } => [left, right].iter().all(|&x| {
                matches!(self.ir.expr(x), Expr::Int(_) | Expr::Binary { .. } | Expr::Var(Var::Global(_)))
            }),
            _ => false,
        }
    }
}

/// Does the name speak of a device's number?
pub(crate) fn is_rank(name: &str) -> bool {
    ["rank", "gpu", "index", "idx", "ordinal"].iter().any(|w| name.contains(w)) || name.ends_with("_id")
}
