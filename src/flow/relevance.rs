//! Relevance: which functions can possibly say anything when they are interpreted for themselves.
//!
//! An entry point with symbols for parameters tells of something only if it, or what it calls, decides a device:
//! makes a tensor on one, names one, moves something by hand, loads. Everything else follows its inputs, and is
//! skipped. One look at each file finds such seeds; they are then carried from callees to callers. A callee that
//! cannot be told from the text adds nothing: what it gives is not known to the interpreter either.

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::assigned::Assigned;
use super::import_time::ImportTime;
use crate::ir::{ArgKind, Call, ClassId, Expr, ExprId, FuncId, FuncKind, Module, Slot, Stmt, Var};
use crate::link::{Binding, ClassKey, ModIdx, Program, Resolved, Target};
use crate::span::Span;
use crate::sym::Sym;
use crate::torch::{self, Kind, Returns, Without};

/// What is known of each function of a program.
#[derive(Debug, Default)]
pub struct Relevance {
    /// What importing a file does to CUDA.
    pub imports: ImportTime,
    /// Which attributes methods assign.
    pub assigned: Assigned,
    modules: Vec<Facts>,
}

/// What is known of the functions of one file, by number.
#[derive(Debug, Default)]
struct Facts {
    /// It, or what it calls, holds a seed.
    live: Vec<bool>,
    /// It holds a seed itself, or a method that it calls on its own object does.
    own: Vec<bool>,
    /// Calls in it and in what it calls, as far as can be told; never more than [`MAX_CALLS`].
    calls: Vec<u32>,
    /// Private, and called by the constructor of its own class alone.
    of_constructor: Vec<bool>,
}

/// Where counting calls stops.
const MAX_CALLS: u32 = 10_000;
/// How deep calls of calls are counted.
const CALL_DEPTH: usize = 6;

/// What one file's text says.
struct Found {
    seeds: Vec<Node>,
    /// From a caller (or a variable) to what it mentions.
    edges: Vec<(Node, Node)>,
    /// From a method to another one of the same object.
    same: Vec<((ModIdx, FuncId), (ModIdx, FuncId))>,
    /// Calls in each function.
    calls: Vec<u32>,
}

/// A function, or a module-level variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Node {
    Function(ModIdx, FuncId),
    Variable(ModIdx, Slot),
}

impl Relevance {
    /// Looks at every file of the program, on the current thread pool.
    pub fn of(program: &Program) -> Self {
        let names = Names::new();
        let found: Vec<Found> = (0..program.modules.len())
            .into_par_iter()
            .map(|m| Scan::new(program, index(m), &names).run())
            .collect();
        let layout = Layout::new(program);
        let mut live = vec![false; layout.len];
        let mut modules: Vec<Facts> = program
            .modules
            .iter()
            .map(|m| Facts {
                live: Vec::new(),
                own: vec![false; m.ir.functions.len()],
                calls: Vec::new(),
                of_constructor: vec![false; m.ir.functions.len()],
            })
            .collect();
        let mut work = Vec::new();
        for &seed in found.iter().flat_map(|f| &f.seeds) {
            if let Node::Function(m, f) = seed {
                modules[m.0 as usize].own[f.0 as usize] = true;
            }
            let at = layout.number(seed);
            if !std::mem::replace(&mut live[at as usize], true) {
                work.push(at);
            }
        }
        // A constructor that leaves it to a helper decides all the same; a few steps of that are enough.
        for _ in 0..4 {
            let same = found.iter().flat_map(|f| &f.same);
            let mut changed = false;
            for &((m, f), (n, g)) in same {
                let decides = modules[n.0 as usize].own[g.0 as usize];
                changed |= decides && !std::mem::replace(&mut modules[m.0 as usize].own[f.0 as usize], true);
            }
            if !changed {
                break;
            }
        }
        constructors_helpers(program, &found, &mut modules);
        let callers = layout.callers(&found);
        while let Some(at) = work.pop() {
            for &caller in callers.of(at) {
                if !std::mem::replace(&mut live[caller as usize], true) {
                    work.push(caller);
                }
            }
        }
        let calls = layout.calls(&found);
        for (m, facts) in modules.iter_mut().enumerate() {
            let start = layout.starts[m] as usize;
            facts.calls = calls[start..start + facts.own.len()].to_vec();
            facts.live = live[start..start + facts.own.len()].to_vec();
        }
        Self { modules, imports: ImportTime::of(program), assigned: Assigned::of(program) }
    }

    /// Can interpreting the function for itself say anything?
    pub fn is_live(&self, module: ModIdx, func: FuncId) -> bool {
        self.modules.get(module.0 as usize).and_then(|m| m.live.get(func.0 as usize)).copied().unwrap_or(true)
    }

    /// How many calls interpreting the function takes, roughly.
    pub fn calls(&self, module: ModIdx, func: FuncId) -> u32 {
        self.modules.get(module.0 as usize).and_then(|m| m.calls.get(func.0 as usize)).copied().unwrap_or(0)
    }

    /// Does only the constructor of its class call the method?
    pub fn is_of_constructor(&self, module: ModIdx, func: FuncId) -> bool {
        let facts = self.modules.get(module.0 as usize);
        facts.and_then(|m| m.of_constructor.get(func.0 as usize)).copied().unwrap_or(false)
    }

    /// Does the function itself decide a device somewhere?
    pub fn decides(&self, module: ModIdx, func: FuncId) -> bool {
        self.modules.get(module.0 as usize).and_then(|m| m.own.get(func.0 as usize)).copied().unwrap_or(true)
    }
}

/// Marks private methods that their class calls from its constructor and nowhere else.
fn constructors_helpers(program: &Program, found: &[Found], modules: &mut [Facts]) {
    let init = Sym::new("__init__");
    let name = |(m, f): (ModIdx, FuncId)| program.get(m).ir.function(f).name;
    let same = || found.iter().flat_map(|f| &f.same);
    for &(caller, (m, f)) in same() {
        let callee = name((m, f));
        if name(caller) == init && callee.as_str().starts_with('_') && !callee.as_str().starts_with("__") {
            modules[m.0 as usize].of_constructor[f.0 as usize] = true;
        }
    }
    for &(caller, (m, f)) in same() {
        if name(caller) != init {
            modules[m.0 as usize].of_constructor[f.0 as usize] = false;
        }
    }
}

/// Numbers for nodes: a file's functions, then its module-level variables.
struct Layout {
    starts: Vec<u32>,
    functions: Vec<u32>,
    len: usize,
}

/// Callers by callee.
struct Callers {
    starts: Vec<u32>,
    callers: Vec<u32>,
}

impl Callers {
    fn of(&self, node: u32) -> &[u32] {
        &self.callers[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }
}

impl Layout {
    fn new(program: &Program) -> Self {
        let (mut starts, mut functions, mut len) = (Vec::new(), Vec::new(), 0);
        for linked in &program.modules {
            starts.push(number(len));
            functions.push(number(linked.ir.functions.len()));
            len += linked.ir.functions.len() + linked.bindings.len();
        }
        Self { starts, functions, len }
    }

    fn number(&self, node: Node) -> u32 {
        match node {
            Node::Function(m, f) => self.starts[m.0 as usize] + f.0,
            Node::Variable(m, slot) => {
                self.starts[m.0 as usize] + self.functions[m.0 as usize] + u32::from(slot)
            }
        }
    }

    /// Calls in each node and in what it mentions.
    fn calls(&self, found: &[Found]) -> Vec<u32> {
        let mut own = vec![0; self.len];
        for (m, f) in found.iter().enumerate() {
            let start = self.starts[m] as usize;
            own[start..start + f.calls.len()].copy_from_slice(&f.calls);
        }
        let edges: Vec<(u32, u32)> = found
            .iter()
            .flat_map(|f| &f.edges)
            .map(|&(from, to)| (self.number(from), self.number(to)))
            .collect();
        let mut all = own.clone();
        for _ in 1..CALL_DEPTH {
            let mut next = own.clone();
            for &(from, to) in &edges {
                let sum = &mut next[from as usize];
                *sum = (*sum + all[to as usize]).min(MAX_CALLS);
            }
            all = next;
        }
        all
    }

    fn callers(&self, found: &[Found]) -> Callers {
        let edges = || found.iter().flat_map(|f| &f.edges);
        let mut starts = vec![0_u32; self.len + 1];
        for &(_, to) in edges() {
            starts[self.number(to) as usize + 1] += 1;
        }
        for n in 0..self.len {
            starts[n + 1] += starts[n];
        }
        let mut next = starts.clone();
        let mut callers = vec![0; starts[self.len] as usize];
        for &(from, to) in edges() {
            let at = &mut next[self.number(to) as usize];
            callers[*at as usize] = self.number(from);
            *at += 1;
        }
        Callers { starts, callers }
    }
}

/// Names that are looked for, as symbols.
struct Names {
    /// Attributes whose mention is a seed: `x.cuda()`, `torch.cuda.…`.
    seeds: FxHashSet<Sym>,
    /// Methods that move without naming a definite device.
    movers: FxHashSet<Sym>,
    /// Methods and functions that demand a CPU tensor.
    demands: FxHashSet<Sym>,
    /// Devices as strings.
    init: Sym,
    device: Sym,
    to: Sym,
}

impl Names {
    fn new() -> Self {
        let set = |names: &[&str]| names.iter().map(|n| Sym::new(n)).collect();
        Self {
            seeds: set(&[
                "cuda",
                "cpu",
                "xpu",
                "npu",
                "hpu",
                "mps",
                "ipu",
                "mlu",
                "musa",
                "xla_device",
                "pin_memory",
                "DataLoader",
                "from_pretrained",
                "from_config",
                "from_numpy",
                "load_state_dict_from_url",
                "OutOfMemoryError",
                "get_device",
            ]),
            movers: set(&["to", "cuda", "cpu", "type_as", "xpu", "npu"]),
            demands: set(&["pack_padded_sequence", "pin_memory"]),
            init: Sym::new("__init__"),
            device: Sym::new("device"),
            to: Sym::new("to"),
        }
    }
}

/// The look at one file.
struct Scan<'a> {
    program: &'a Program,
    module: ModIdx,
    ir: &'a Module,
    names: &'a Names,
    /// Functions by where they begin.
    order: Vec<(u32, FuncId)>,
    /// Statements of the module's body that bind variables, by where they begin.
    top: Vec<(Span, Vec<Slot>)>,
    seen: FxHashSet<(Node, Node)>,
    found: Found,
}

impl<'a> Scan<'a> {
    fn new(program: &'a Program, module: ModIdx, names: &'a Names) -> Self {
        let ir = &program.get(module).ir;
        let mut order: Vec<(u32, FuncId)> =
            ir.functions.iter().enumerate().map(|(n, f)| (f.span.start, FuncId(number(n)))).collect();
        order.sort_by_key(|&(start, f)| (start, f));
        let found = Found {
            seeds: Vec::new(),
            edges: Vec::new(),
            same: Vec::new(),
            calls: vec![0; ir.functions.len()],
        };
        Self { program, module, ir, names, order, top: Vec::new(), seen: FxHashSet::default(), found }
    }

    fn run(mut self) -> Found {
        self.top_level();
        let compared = self.compared();
        for n in 0..self.ir.exprs.len() {
            let e = ExprId(number(n));
            match self.ir.exprs[n] {
                Expr::Str(s) if names_place(s) && !compared.contains(&e) => self.seed(e),
                Expr::Attr { base, name } => self.attribute(e, base, name),
                Expr::Var(var) => self.variable(e, var),
                Expr::Call(id) => self.call(e, self.ir.call(id)),
                _ => {}
            }
        }
        self.statements();
        self.enclosing();
        self.found.seeds.sort_unstable_by_key(|&n| key(n));
        self.found.seeds.dedup();
        self.found
    }

    /// Which variables each statement of the module's body may bind.
    fn top_level(&mut self) {
        let Some(body) = self.ir.functions.first() else { return };
        for &s in self.ir.block(body.body) {
            let span = self.ir.stmt_span(s);
            let slots = match self.ir.stmt(s) {
                Stmt::Assign { targets, .. } => {
                    let mut slots = Vec::new();
                    for &t in self.ir.list(*targets) {
                        self.targets(t, &mut slots);
                    }
                    slots
                }
                Stmt::AnnAssign { target, .. } | Stmt::AugAssign { target, .. } => {
                    let mut slots = Vec::new();
                    self.targets(*target, &mut slots);
                    slots
                }
                Stmt::If { .. }
                | Stmt::For { .. }
                | Stmt::While { .. }
                | Stmt::With { .. }
                | Stmt::Try { .. } => {
                    // Whatever is bound in a branch.
                    let complex = |b: &Binding| matches!(b, Binding::Complex | Binding::Value(_));
                    let bindings = self.program.get(self.module).bindings.iter().enumerate();
                    bindings
                        .filter(|(_, b)| complex(b))
                        .map(|(n, _)| Slot::try_from(n).unwrap_or(Slot::MAX))
                        .collect()
                }
                _ => Vec::new(),
            };
            if !slots.is_empty() {
                self.top.push((span, slots));
            }
        }
    }

    fn targets(&self, target: ExprId, slots: &mut Vec<Slot>) {
        match self.ir.expr(target) {
            Expr::Var(Var::Local(slot) | Var::Global(slot)) => slots.push(slot),
            Expr::Tuple(list) | Expr::List(list) => {
                for &t in self.ir.list(list) {
                    self.targets(t, slots);
                }
            }
            _ => {}
        }
    }

    /// Strings that something is only compared with: they say when, not where.
    fn compared(&self) -> FxHashSet<ExprId> {
        let mut compared = FxHashSet::default();
        for expr in &self.ir.exprs {
            let Expr::Compare { left, right, .. } = *expr else { continue };
            for side in [left, right] {
                match self.ir.expr(side) {
                    Expr::Str(_) => {
                        compared.insert(side);
                    }
                    Expr::Tuple(list) | Expr::List(list) | Expr::Set(list) => {
                        compared.extend(self.ir.list(list))
                    }
                    _ => {}
                }
            }
        }
        compared
    }

    /// The innermost function at an expression.
    fn owner(&self, e: ExprId) -> FuncId {
        self.owner_at(self.ir.span(e))
    }

    fn owner_at(&self, span: Span) -> FuncId {
        let at = self.order.partition_point(|&(start, _)| start <= span.start);
        let Some(&(_, mut f)) = at.checked_sub(1).and_then(|i| self.order.get(i)) else { return FuncId(0) };
        while f != FuncId(0) && !self.ir.function(f).span.contains(span) {
            f = self.ir.function(f).parent.unwrap_or(FuncId(0));
        }
        f
    }

    /// What a seed or mention at this place belongs to: a function, or variables of the module.
    fn nodes_at(&self, owner: FuncId, span: Span, f: &mut dyn FnMut(Node)) {
        f(Node::Function(self.module, owner));
        if owner == FuncId(0) {
            let at = self.top.partition_point(|(s, _)| s.start <= span.start);
            if let Some((s, slots)) = at.checked_sub(1).and_then(|i| self.top.get(i))
                && s.contains(span)
            {
                slots.iter().for_each(|&slot| f(Node::Variable(self.module, slot)));
            }
        }
    }

    fn seed(&mut self, e: ExprId) {
        let owner = self.owner(e);
        self.seed_in(owner, self.ir.span(e));
    }

    fn seed_in(&mut self, owner: FuncId, span: Span) {
        let mut nodes = Vec::new();
        self.nodes_at(owner, span, &mut |n| nodes.push(n));
        self.found.seeds.extend(nodes);
    }

    fn edge(&mut self, owner: FuncId, span: Span, to: Node) {
        let mut nodes = Vec::new();
        self.nodes_at(owner, span, &mut |n| nodes.push(n));
        for from in nodes {
            if from != to && self.seen.insert((from, to)) {
                self.found.edges.push((from, to));
            }
        }
    }

    fn attribute(&mut self, e: ExprId, base: ExprId, name: Sym) {
        if self.names.seeds.contains(&name) || self.names.demands.contains(&name) {
            self.seed(e);
        }
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
            Expr::Call(id) if matches!(self.ir.expr(self.ir.call(id).func), Expr::Var(Var::Unbound(n)) if n.as_str() == "super") =>
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
                        if let Some(r) = self.program.lookup(m, name) {
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

    /// Does the dotted name begin with something of the project?
    fn in_project(&self, mut e: ExprId) -> bool {
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

    fn own_method(&self, key: ClassKey, name: Sym) -> Option<(ModIdx, FuncId)> {
        let methods = &self.program.get(key.module).ir.class(key.class).methods;
        methods.iter().rev().find(|(n, _)| *n == name).map(|&(_, f)| (key.module, f))
    }

    fn class_around(&self, mut f: FuncId) -> Option<ClassId> {
        loop {
            let function = self.ir.function(f);
            if function.kind == FuncKind::Function && function.class.is_some() {
                return function.class;
            }
            f = function.parent?;
        }
    }

    fn method(&mut self, owner: FuncId, e: ExprId, class: ClassId, name: Sym) {
        let key = ClassKey { module: self.module, class };
        let Some((m, f)) = self.program.find_method(key, name) else { return };
        self.edge(owner, self.ir.span(e), Node::Function(m, f));
        self.found.same.push(((self.module, owner), (m, f)));
    }

    fn variable(&mut self, e: ExprId, var: Var) {
        match var {
            Var::Global(slot) => self.global(e, slot),
            // In module-level code the slot is the module's.
            Var::Local(slot) if self.owner(e) == FuncId(0) => self.global(e, slot),
            Var::Unbound(name) if name.as_str().starts_with("reveal_") => self.seed(e),
            _ => {}
        }
    }

    fn global(&mut self, e: ExprId, slot: Slot) {
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

    fn mention(&mut self, e: ExprId, r: Resolved) {
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
    fn is_seed(&self, path: Sym) -> bool {
        let text = path.as_str();
        let last = text.rsplit('.').next().unwrap_or(text);
        text.starts_with("torch.cuda.") && text != "torch.cuda.is_available"
            || self.names.seeds.contains(&Sym::new(last))
    }

    fn call(&mut self, e: ExprId, call: &Call) {
        let owner = self.owner(e);
        self.found.calls[owner.0 as usize] += 1;
        if let Expr::Attr { name, .. } = self.ir.expr(call.func)
            && name == self.names.to
            && call.args.iter().any(|a| self.is_index(e, a.value))
        {
            self.seed(e);
        }
        if call
            .args
            .iter()
            .any(|a| a.kind == ArgKind::Keyword(self.names.device) && self.is_index(e, a.value))
        {
            self.seed(e);
        }
        let callee = match self.ir.expr(call.func) {
            Expr::Var(Var::Local(_)) if owner != FuncId(0) => None,
            Expr::Var(_) | Expr::Attr { .. } => self.program.resolve_expr(self.module, call.func),
            _ => None,
        };
        match callee {
            Some(Resolved::External(path)) => self.external(e, path, call),
            Some(Resolved::Class(key)) => {
                if let Some((m, f)) = self.program.find_method(key, self.names.init) {
                    self.edge(owner, self.ir.span(e), Node::Function(m, f));
                }
                // A module that nothing moves is on the CPU; one that belongs to a module moves with it.
                if self.is_module_class(key) && !self.builds_module(owner) {
                    self.seed_in(owner, self.ir.span(e));
                }
            }
            _ => {}
        }
    }

    /// Is the expression a number that names a device?
    fn is_index(&self, at: ExprId, e: ExprId) -> bool {
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
            Expr::Call(_) => false,
            _ => false,
        }
    }

    fn external(&mut self, e: ExprId, path: Sym, call: &Call) {
        if path.as_str().starts_with("builtins.") {
            return;
        }
        let seed = if let Some(_module) = torch::module(path) {
            !self.builds_module(self.owner(e))
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
            let large = placed && call.args.iter().any(|a| self.is_large(a.value));
            let demands = op.kind == Kind::CpuOnly || op.args.iter().any(|a| a.share == torch::Share::Cpu);
            makes && (!placed || large) || demands
        } else if let Some(fact) = torch::call(path) {
            fact.accelerator.is_some_and(|a| a.without == Without::Raises)
                || matches!(fact.returns, Returns::Cpu | Returns::CpuBatches(_))
        } else {
            let text = path.as_str();
            matches!(text, "torch.load" | "torch.device")
                || text.starts_with("torchvision.models.")
                || torch::base_class(path).is_some_and(|b| b.kind == torch::Base::Module)
        };
        if seed {
            self.seed(e);
        }
    }

    fn is_large(&self, e: ExprId) -> bool {
        match self.ir.expr(e) {
            Expr::Int(i) => i >= 512,
            Expr::Tuple(list) | Expr::List(list) => self.ir.list(list).iter().any(|&x| self.is_large(x)),
            Expr::Binary { .. } => true,
            _ => false,
        }
    }

    fn is_module_class(&self, key: ClassKey) -> bool {
        let externals = &self.program.class(key).externals;
        externals.iter().any(|&path| torch::base_class(path).is_some_and(|b| b.kind == torch::Base::Module))
    }

    /// Is it the constructor of a module, whose parts are moved with it?
    fn builds_module(&self, owner: FuncId) -> bool {
        let function = self.ir.function(owner);
        let class = match function.kind {
            FuncKind::Function => function.class.filter(|_| function.name == self.names.init),
            // In a comprehension's lambda, say.
            _ => None,
        };
        class.is_some_and(|class| self.is_module_class(ClassKey { module: self.module, class }))
    }

    /// Dropped transfers, and containers that a module's constructor keeps.
    fn statements(&mut self) {
        for stmt in &self.ir.stmts {
            if let Stmt::Assign { targets, value } = *stmt {
                self.kept_container(targets, value);
            }
            let Stmt::Expr(e) = *stmt else { continue };
            let Expr::Call(id) = self.ir.expr(e) else { continue };
            if let Expr::Attr { name, .. } = self.ir.expr(self.ir.call(id).func)
                && self.names.movers.contains(&name)
            {
                self.seed(e);
            }
        }
    }

    /// `self.layers = [nn.Linear(…), …]`, or an empty container that is filled later, in a module's constructor.
    fn kept_container(&mut self, targets: crate::ir::ExprList, value: ExprId) {
        let kept = self.ir.list(targets).iter().any(|&t| matches!(self.ir.expr(t), Expr::Attr { .. }));
        let empty = match self.ir.expr(value) {
            Expr::List(list) | Expr::Dict(list) | Expr::Tuple(list) => list.len == 0,
            Expr::Comp(_) => false,
            _ => return,
        };
        if !kept {
            return;
        }
        let owner = self.owner(value);
        if !self.builds_module(owner) {
            return;
        }
        let span = if empty { self.ir.function(owner).span } else { self.ir.span(value) };
        let makes = |e: &Expr| match *e {
            Expr::Call(call) => match self.program.resolve_expr(self.module, self.ir.call(call).func) {
                Some(Resolved::External(path)) => {
                    path.as_str().ends_with("nn.Parameter")
                        || torch::module(path).is_some_and(|m| m.state == torch::State::Yes)
                }
                Some(Resolved::Class(key)) => self.is_module_class(key),
                _ => false,
            },
            _ => false,
        };
        let made =
            self.ir.exprs.iter().zip(&self.ir.expr_spans).any(|(e, &at)| span.contains(at) && makes(e));
        let filled = !empty
            || self.ir.exprs.iter().zip(&self.ir.expr_spans).any(|(e, &at)| {
                span.contains(at)
                    && matches!(e, Expr::Attr { name, .. } if matches!(name.as_str(), "append" | "extend"))
                    || span.contains(at) && matches!(e, Expr::Index { .. })
            });
        if made && filled {
            self.seed_in(owner, self.ir.span(value));
        }
    }

    /// What a nested function holds, the function around it holds.
    fn enclosing(&mut self) {
        for (n, f) in self.ir.functions.iter().enumerate() {
            let Some(parent) = f.parent else { continue };
            if parent != FuncId(0) && self.ir.function(parent).kind != FuncKind::ClassBody {
                let (from, to) =
                    (Node::Function(self.module, parent), Node::Function(self.module, FuncId(number(n))));
                self.found.edges.push((from, to));
            }
            // Variables of a class are every method's.
            if parent != FuncId(0)
                && self.ir.function(parent).kind == FuncKind::ClassBody
                && f.kind == FuncKind::Function
            {
                let (from, to) =
                    (Node::Function(self.module, FuncId(number(n))), Node::Function(self.module, parent));
                self.found.edges.push((from, to));
            }
        }
    }
}

/// Does the name speak of a device's number?
fn is_rank(name: &str) -> bool {
    ["rank", "gpu", "index", "idx", "ordinal"].iter().any(|w| name.contains(w)) || name.ends_with("_id")
}

/// A device that is not the caller's to choose.
fn names_place(s: Sym) -> bool {
    let text = s.as_str();
    let kind = text.split_once(':').map_or(text, |(kind, _)| kind);
    kind == "cpu"
        || kind == "cuda"
        || crate::world::Backend::from_name(kind).is_some()
        || text.starts_with("torch.cuda.")
}

fn key(node: Node) -> (u32, u32, u32) {
    match node {
        Node::Function(m, f) => (m.0, 0, f.0),
        Node::Variable(m, s) => (m.0, 1, u32::from(s)),
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn index(n: usize) -> ModIdx {
    ModIdx(number(n))
}
