//! The scan of one file: which code in it decides devices, and what mentions what.

use crate::flow::query::relevance::graph::{Found, Node, key, number};
use crate::ir::{ClassId, Expr, ExprId, FuncId, Module, Slot, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::span::Span;
use crate::sym::{Answers, Sym};
use crate::torch::{self, Without};
use crate::words::Words;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;

/// Attributes that are seeds: `x.cuda()`, `torch.cuda.…`.
static SEEDS: Words = Words::of("names that decide devices");
/// Methods that move a tensor or module.
static MOVERS: Words = Words::of("move a tensor");
/// Functions that query the machine.
static QUESTIONS: Words = Words::of("query the machine");

/// The function that packs sequences for a recurrent module. It requires their lengths on the CPU (`torch.nn.utils.rnn`).
const PACKS: &str = "pack_padded_sequence";

/// Whether any code in the file packs sequences.
pub(crate) fn packs_sequences(ir: &Module) -> bool {
    let packs = Sym::new(PACKS);
    ir.has_attribute(packs) || ir.imports.iter().any(|i| i.name == Some(packs))
}

/// Symbols for the names that the scan looks for.
pub(crate) struct Names {
    /// Attributes that are seeds: `x.cuda()`, `torch.cuda.…`.
    pub(crate) seeds: FxHashSet<Sym>,
    /// Methods that move a tensor or module.
    pub(crate) movers: FxHashSet<Sym>,
    /// Methods and functions that require a CPU tensor.
    pub(crate) demands: FxHashSet<Sym>,
    /// The method `__init__`.
    pub(crate) init: Sym,
    pub(crate) device: Sym,
    pub(crate) generator: Sym,
    /// The class of generators.
    pub(crate) generators: Sym,
    pub(crate) to: Sym,
    /// The method that requires a tensor on the host.
    pub(crate) numpy: Sym,
    pub(crate) forward: Sym,
    /// The function `super`.
    pub(crate) super_: Sym,
    /// The method that converts to another type.
    pub(crate) type_: Sym,
    /// The argument that makes tokenizers return tensors.
    pub(crate) return_tensors: Sym,
    /// Functions that query the machine.
    pub(crate) questions: FxHashSet<Sym>,
    /// Methods that register a tensor with a module.
    pub(crate) registering: FxHashSet<Sym>,
}

impl Names {
    pub(crate) fn new() -> Self {
        let set = |names: &[&str]| names.iter().map(|n| Sym::new(n)).collect();
        Self {
            seeds: set(SEEDS.all()),
            movers: set(MOVERS.all()),
            demands: set(&[PACKS, "pin_memory"]),
            init: Sym::new("__init__"),
            device: Sym::new("device"),
            generator: Sym::new("generator"),
            generators: Sym::new("Generator"),
            to: Sym::new("to"),
            numpy: Sym::new("numpy"),
            forward: Sym::new("forward"),
            super_: Sym::new("super"),
            type_: Sym::new("type"),
            return_tensors: Sym::new("return_tensors"),
            questions: set(QUESTIONS.all()),
            registering: set(&["register_buffer", "register_parameter"]),
        }
    }
}

/// The scan of one file.
pub(crate) struct Scan<'a> {
    pub(crate) program: &'a Program,
    pub(crate) module: ModIdx,
    pub(crate) ir: &'a Module,
    pub(crate) names: &'a Names,
    /// All functions, sorted by start position.
    pub(crate) order: Vec<(u32, FuncId)>,
    /// A cache for `owner_at`: the number of functions that start before the place of the last query. The next query is usually nearby.
    pub(crate) begun: Cell<usize>,
    /// Statements of the module's body that bind variables, sorted by start position.
    pub(crate) top: Vec<(Span, Vec<Slot>)>,
    /// The statements in `top` that define large tables of functions.
    pub(crate) tables: Vec<Span>,
    /// Bodies of `try` statements that continue after any exception.
    pub(crate) caught: Vec<Span>,
    /// Statements that register a new value with the module under construction, sorted by start position.
    pub(crate) registering: Vec<Span>,
    /// A cache: for each class, whether a base class moves every instance in its constructor.
    pub(crate) moved_bases: FxHashMap<ClassId, bool>,
    pub(crate) seen: FxHashSet<(Node, Node)>,
    pub(crate) found: Found,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(program: &'a Program, module: ModIdx, names: &'a Names) -> Self {
        let ir = &program.get(module).ir;
        let mut order: Vec<(u32, FuncId)> =
            ir.functions.iter().enumerate().map(|(n, f)| (f.span.start, FuncId(number(n)))).collect();
        order.sort_by_key(|&(start, f)| (start, f));
        let found = Found {
            seeds: Vec::new(),
            own: Vec::new(),
            uses: Vec::new(),
            hints: Vec::new(),
            edges: Vec::new(),
            same: Vec::new(),
            helpers: Vec::new(),
            calls: vec![0; ir.functions.len()],
            asking: FxHashSet::default(),
            generators: Vec::new(),
            beside: FxHashSet::default(),
        };
        let begun = Cell::new(0);
        Self {
            program,
            module,
            ir,
            names,
            order,
            begun,
            top: Vec::new(),
            tables: Vec::new(),
            caught: Vec::new(),
            registering: Vec::new(),
            moved_bases: FxHashMap::default(),
            seen: FxHashSet::default(),
            found,
        }
    }

    pub(crate) fn run(mut self) -> Found {
        self.top_level();
        self.caught();
        let places = self.ir.strings.iter().any(|&s| names_place(s));
        let compared = if places { self.compared() } else { FxHashSet::default() };
        let asked = self.asked();
        self.registering();
        // The ranges of expressions in top-level functions and classes; they include nested functions.
        let functions = self.ir.functions.iter().filter(|f| f.parent == Some(FuncId(0)));
        let mut inner = functions.map(|f| f.exprs.clone());
        let mut next = || inner.next().unwrap_or(u32::MAX..u32::MAX);
        let mut body = next();
        let asking = self.asking_names();
        // Test each name once; few are relevant.
        let attributes = self.ir.attributes.iter().copied();
        let telling: Vec<Sym> = attributes.filter(|&name| self.says_something(name)).collect();
        let imports = self.program.get(self.module).imports_in_functions();
        for (e, &expr) in (0..).map(ExprId).zip(&self.ir.exprs) {
            self.question(e, expr, &asking);
            while body.end <= e.0 {
                body = next();
            }
            let inside = body.start <= e.0;
            match expr {
                // Not a variable of the file.
                Expr::Var(Var::Local(_))
                    if inside && !(imports && self.program.is_local_import(self.module, e)) => {}
                Expr::Str(s) if places && names_place(s) && !compared.contains(&e) => self.seed(e),
                Expr::Attr { base, name } => {
                    if telling.contains(&name) {
                        self.telling_attribute(e, base, name, asked.contains(&e));
                    }
                    self.attribute(e, base, name);
                }
                Expr::Var(var) => self.variable(e, var),
                // A function's local variable does not refer to anything by name.
                Expr::Call(id) => self.call(e, self.ir.call(id), !inside || imports),
                Expr::Compare { left, right, .. } if self.compares_type(left, right) => self.seed(e),
                Expr::Compare { left, right, .. } if self.takes_for_text(left, right) => self.own(e),
                _ => {}
            }
        }
        self.statements();
        self.parts_of_batches();
        self.enclosing();
        self.found.seeds.sort_unstable_by_key(|&n| key(n));
        self.found.seeds.dedup();
        self.found
    }

    /// Strings that are only compared with something. They state a condition, not a device.
    pub(crate) fn compared(&self) -> FxHashSet<ExprId> {
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

    /// The package expressions in `torch.cuda.is_available()` and `torch.xpu.device_count()`: a query alone decides no device.
    fn asked(&self) -> FxHashSet<ExprId> {
        let mut asked = FxHashSet::default();
        if !self.names.questions.iter().any(|&name| self.ir.has_attribute(name)) {
            return asked;
        }
        for call in self.ir.calls() {
            let Expr::Attr { base, name } = self.ir.expr(call.func) else { continue };
            if self.names.questions.contains(&name)
                && let Some(Resolved::External(path)) = self.program.resolve_expr(self.module, call.func)
                && torch::call(path).and_then(|c| c.accelerator).is_some_and(|a| a.without != Without::Raises)
            {
                asked.insert(base);
            }
        }
        asked
    }

    /// The innermost function around an expression.
    pub(crate) fn owner(&self, e: ExprId) -> FuncId {
        self.owner_at(self.ir.span(e))
    }

    pub(crate) fn owner_at(&self, span: Span) -> FuncId {
        let begins_by = |at: usize| self.order.get(at).is_some_and(|&(start, _)| start <= span.start);
        let mut at = self.begun.get();
        if begins_by(at) || !(at == 0 || begins_by(at - 1)) {
            at = self.order.partition_point(|&(start, _)| start <= span.start);
            self.begun.set(at);
        }
        let Some(&(_, mut f)) = at.checked_sub(1).and_then(|i| self.order.get(i)) else { return FuncId(0) };
        while f != FuncId(0) && !self.ir.function(f).span.contains(span) {
            f = self.ir.function(f).parent.unwrap_or(FuncId(0));
        }
        f
    }

    /// The module-level variables that the statement around this place binds; empty inside functions.
    fn bound_at(&self, owner: FuncId, span: Span) -> &[Slot] {
        if owner != FuncId(0) {
            return &[];
        }
        let at = self.top.partition_point(|(s, _)| s.start <= span.start);
        let statement = at.checked_sub(1).and_then(|i| self.top.get(i)).filter(|(s, _)| s.contains(span));
        statement.map_or(&[], |(_, slots)| slots)
    }

    pub(crate) fn seed(&mut self, e: ExprId) {
        let owner = self.owner(e);
        self.seed_in(owner, self.ir.span(e));
    }

    /// Records that the function around the expression carries information about a device without deciding one.
    pub(crate) fn hint(&mut self, e: ExprId) {
        let mut hints = std::mem::take(&mut self.found.hints);
        hints.extend(self.nodes(self.owner(e), self.ir.span(e)));
        self.found.hints = hints;
    }

    /// Records that the function around the expression is worth interpreting, but gives its callers nothing to report.
    pub(crate) fn own(&mut self, e: ExprId) {
        let owner = self.owner(e);
        self.found.own.push(Node::Function(self.module, owner));
        self.hint(e);
    }

    /// Records that the function around the expression uses an accelerator. If an error is caught there, the use is only a query.
    pub(crate) fn uses(&mut self, e: ExprId) {
        if self.is_caught(self.ir.span(e)) {
            return self.own(e);
        }
        let mut uses = std::mem::take(&mut self.found.uses);
        uses.extend(self.nodes(self.owner(e), self.ir.span(e)));
        self.found.uses = uses;
    }

    /// The nodes that a seed or mention at this place belongs to: the function, and module-level variables that the statement binds.
    fn nodes(&self, owner: FuncId, span: Span) -> impl Iterator<Item = Node> + use<'_, 'a> {
        let variables = self.bound_at(owner, span).iter().map(|&slot| Node::Variable(self.module, slot));
        std::iter::once(Node::Function(self.module, owner)).chain(variables)
    }

    pub(crate) fn seed_in(&mut self, owner: FuncId, span: Span) {
        let mut seeds = std::mem::take(&mut self.found.seeds);
        seeds.extend(self.nodes(owner, span));
        self.found.seeds = seeds;
    }

    pub(crate) fn edge(&mut self, owner: FuncId, span: Span, to: Node) {
        let (mut seen, mut edges) = (std::mem::take(&mut self.seen), std::mem::take(&mut self.found.edges));
        let entry = matches!(to, Node::Function(..)) && self.is_in_table(owner, span);
        for from in self.nodes(owner, span) {
            if from != to && !(entry && matches!(from, Node::Variable(..))) && seen.insert((from, to)) {
                edges.push((from, to));
            }
        }
        (self.seen, self.found.edges) = (seen, edges);
    }

    pub(crate) fn is_module_class(&self, key: ClassKey) -> bool {
        is_module_class(self.program, key)
    }

    /// Records discarded transfers, and containers that a module's constructor keeps.
    pub(crate) fn statements(&mut self) {
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
}

/// Whether the class is an `nn.Module`, or a class that a framework turns into one, according to its known bases.
pub fn is_module_class(program: &Program, key: ClassKey) -> bool {
    let module = |&path: &Sym| torch::base_class(path).is_some_and(|b| b.kind == torch::Base::Module);
    program.class(key).externals.iter().any(module)
}

/// Whether the string names a device, which the caller then cannot choose.
pub(crate) fn names_place(s: Sym) -> bool {
    PLACES.with(|known| known.ask(s, is_place))
}

thread_local! {
    static PLACES: Answers = const { Answers::new() };
}

fn is_place(text: &str) -> bool {
    let kind = text.split_once(':').map_or(text, |(kind, _)| kind);
    kind == "cpu"
        || kind == "cuda"
        || crate::world::Backend::from_name(kind).is_some()
        || text.starts_with("torch.cuda.")
        || text.len() > kind.len() && crate::flow::query::type_names::is_misspelt(kind)
}
