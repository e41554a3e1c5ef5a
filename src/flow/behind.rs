//! Which functions only ever run where CUDA is: everything in the project that leads to them has refused to go on
//! without it.
//!
//! A function refuses if it asserts that CUDA is there, raises or exits without it, or calls at its top level what
//! refuses. A function or class is behind a refusal if the project's other code mentions it, and each mention
//! comes after a refusal in the same function, or is in what is behind one itself. Methods are where their class is: who made
//! the instance has come that far. What nobody mentions is there for others, who may come from anywhere.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::finding::Spot;
use crate::ir::{
    Arg, ArgKind, Block, Call, ClassId, Expr, ExprId, FuncId, FuncKind, Module, Stmt, StmtId, UnaryOp, Var,
};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::span::Span;
use crate::sym::Sym;

/// What other code mentions: a function of a file, or a class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Node {
    Function(ModIdx, FuncId),
    Class(ClassKey),
}

/// How a function refuses to go on without CUDA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Refusal {
    /// Whoever calls it.
    Always,
    /// Unless the caller gives something for this parameter.
    Unless(Sym),
}

/// A refusal within a function: from where on it holds, and whether callers are held up, too.
#[derive(Clone, Copy, Debug)]
struct Point {
    after: u32,
    refusal: Option<Refusal>,
}

/// The functions and classes that are behind a refusal, and the places from where on the others are.
#[derive(Debug, Default)]
pub struct Behind {
    nodes: FxHashSet<Node>,
    points: FxHashMap<(ModIdx, FuncId), Point>,
}

/// The function that asks.
pub const QUESTION: &str = "is_available";
/// The keyword by which a scheduler is asked for GPUs.
pub const GPUS: &str = "num_gpus";
/// How often calls of what refuses are followed.
const MAX_ROUNDS: usize = 4;

impl Behind {
    /// Looks at these files of the program: what they mention, and where they refuse.
    pub fn of(program: &Program, files: &[ModIdx]) -> Self {
        let points = points(program, files);
        let mut graph =
            Graph { program, points, callers: FxHashMap::default(), sheltered: FxHashSet::default() };
        for &m in files {
            graph.mentions(m);
            graph.subclasses(m);
        }
        graph.solve()
    }

    /// Does anything in these files ask whether an accelerator is there?
    pub fn asks(program: &Program, files: &[ModIdx]) -> bool {
        let (question, gpus) = (Sym::new(QUESTION), Sym::new(GPUS));
        files.iter().any(|&m| {
            let ir = &program.get(m).ir;
            let imported = ir.imports.iter().any(|i| i.name == Some(question));
            let given = |k: ArgKind| matches!(k, ArgKind::Keyword(name) if name == gpus);
            let given = ir.calls.iter().any(|call| call.args.iter().any(|a| given(a.kind)));
            imported || given || ir.has_attribute(question)
        })
    }

    /// Is the place only reached where CUDA is?
    pub fn contains(&self, program: &Program, spot: &Spot) -> bool {
        let Some(m) = program.module_of(spot.file) else { return false };
        self.points.get(&(m, spot.entry)).is_some_and(|p| p.after <= spot.at)
            || node_of(&program.get(m).ir, m, spot.entry).is_some_and(|n| self.nodes.contains(&n))
    }
}

/// The outermost function that the function is in, or the class that it is a method of; nothing for a file's body.
pub(super) fn node_of(ir: &Module, module: ModIdx, mut f: FuncId) -> Option<Node> {
    let mut node = None;
    while f != FuncId(0) {
        let function = ir.function(f);
        node = Some(match (function.kind, function.class) {
            (FuncKind::ClassBody, Some(class)) => Node::Class(ClassKey { module, class }),
            _ => Node::Function(module, f),
        });
        f = function.parent?;
    }
    node
}

fn node(resolved: Resolved) -> Option<Node> {
    match resolved {
        Resolved::Function(m, f) => Some(Node::Function(m, f)),
        Resolved::Class(key) => Some(Node::Class(key)),
        Resolved::Module(_) | Resolved::Variable(..) | Resolved::External(_) => None,
    }
}

/// The function or class of the project that an expression of a function names.
pub(super) fn named(program: &Program, m: ModIdx, e: ExprId) -> Option<Node> {
    match program.get(m).ir.expr(e) {
        Expr::Var(_) | Expr::Attr { .. } => node(program.resolve_expr(m, e)?),
        _ => None,
    }
}

/// The first refusal of each function.
fn points(program: &Program, files: &[ModIdx]) -> FxHashMap<(ModIdx, FuncId), Point> {
    let mut points: FxHashMap<(ModIdx, FuncId), Point> = FxHashMap::default();
    for _ in 0..MAX_ROUNDS {
        let before = points.len();
        for &m in files {
            let ir = &program.get(m).ir;
            for n in 0..ir.functions.len() {
                let f = FuncId(u32::try_from(n).unwrap_or(u32::MAX));
                if points.contains_key(&(m, f)) {
                    continue;
                }
                let refuses = Refuses { program, module: m, func: f, known: &points };
                if let Some(point) = refuses.block(ir.function(f).body) {
                    points.insert((m, f), point);
                }
            }
        }
        if points.len() == before {
            break;
        }
    }
    points
}

/// The look for a refusal in one function.
struct Refuses<'a> {
    program: &'a Program,
    module: ModIdx,
    func: FuncId,
    known: &'a FxHashMap<(ModIdx, FuncId), Point>,
}

impl Refuses<'_> {
    fn ir(&self) -> &Module {
        &self.program.get(self.module).ir
    }

    /// The first statement of the block that is not passed without CUDA.
    fn block(&self, block: Block) -> Option<Point> {
        self.ir().block(block).iter().find_map(|&s| self.stmt(s))
    }

    fn stmt(&self, s: StmtId) -> Option<Point> {
        let after = self.ir().stmt_span(s).end;
        let point = |refusal| Some(Point { after, refusal });
        match *self.ir().stmt(s) {
            Stmt::Assert { test, .. } if self.asks(test) => point(Some(Refusal::Always)),
            Stmt::Expr(e) | Stmt::Assign { value: e, .. } | Stmt::Return(Some(e))
                if self.calls_refusal(e) =>
            {
                point(Some(Refusal::Always))
            }
            Stmt::With { ref items, body } => {
                let entered = items.iter().any(|&(e, _)| self.calls_refusal(e));
                if entered { point(Some(Refusal::Always)) } else { self.block(body) }
            }
            Stmt::If { test, then, orelse } => {
                let left = match self.ir().expr(test) {
                    Expr::Unary { op: UnaryOp::Not, operand } if self.asks(operand) => self.leaves(then),
                    _ if self.asks(test) => self.leaves(orelse),
                    _ if self.is_script(test) => return self.block(then),
                    _ => None,
                };
                match left {
                    Some(for_callers) => point(for_callers.then_some(Refusal::Always)),
                    None => self.by_default(test).and_then(|param| {
                        let inner = self.block(then)?;
                        (inner.refusal == Some(Refusal::Always))
                            .then_some(Point { after, refusal: Some(Refusal::Unless(param)) })
                    }),
                }
            }
            _ => None,
        }
    }

    /// Does the block leave the function? With `true`, its caller does not go on either.
    fn leaves(&self, block: Block) -> Option<bool> {
        let &last = self.ir().block(block).last()?;
        match *self.ir().stmt(last) {
            Stmt::Raise { .. } => Some(true),
            Stmt::Return(_) => Some(false),
            Stmt::Expr(e) => self.exits(e).then_some(true),
            _ => None,
        }
    }

    fn exits(&self, e: ExprId) -> bool {
        let Expr::Call(call) = self.ir().expr(e) else { return false };
        matches!(self.program.resolve_expr(self.module, self.ir().call(call).func),
            Some(Resolved::External(path)) if matches!(path.as_str(), "sys.exit" | "os._exit" | "builtins.exit" | "builtins.quit"))
    }

    /// `__name__ == "__main__"`
    fn is_script(&self, e: ExprId) -> bool {
        matches!(self.ir().expr(e), Expr::Compare { left, .. }
            if matches!(self.ir().expr(left), Expr::Var(Var::Unbound(name)) if name.as_str() == "__name__"))
    }

    /// Is it true only where CUDA is?
    fn asks(&self, e: ExprId) -> bool {
        match self.ir().expr(e) {
            Expr::And(list) => self.ir().list(list).iter().any(|&part| self.asks(part)),
            Expr::Call(call) => matches!(self.program.resolve_expr(self.module, self.ir().call(call).func),
                Some(Resolved::External(path)) if path.as_str() == "torch.cuda.is_available"),
            _ => false,
        }
    }

    /// Is it a parameter, or not one, so that the branch is taken unless the caller says otherwise?
    fn by_default(&self, test: ExprId) -> Option<Sym> {
        let (e, wanted) = match self.ir().expr(test) {
            Expr::Unary { op: UnaryOp::Not, operand } => (operand, false),
            _ => (test, true),
        };
        let Expr::Var(Var::Local(slot)) = self.ir().expr(e) else { return None };
        let param = self.ir().function(self.func).params.iter().find(|p| p.slot == slot)?;
        let default = self.ir().expr(param.default?);
        (default == if wanted { Expr::True } else { Expr::False }).then_some(param.name)
    }

    /// A call of something that does not come back without CUDA.
    fn calls_refusal(&self, e: ExprId) -> bool {
        let Expr::Call(id) = self.ir().expr(e) else { return false };
        let call = self.ir().call(id);
        let callee = match named(self.program, self.module, call.func) {
            Some(Node::Function(m, f)) => Some((m, f)),
            Some(Node::Class(key)) => self.program.find_method(key, Sym::new("__init__")),
            None => None,
        };
        let Some((m, f)) = callee else { return false };
        match self.known.get(&(m, f)).and_then(|p| p.refusal) {
            Some(Refusal::Always) => true,
            Some(Refusal::Unless(param)) => !gives(&self.program.get(m).ir, f, call, param),
            None => false,
        }
    }
}

/// May the call give something for this parameter?
fn gives(ir: &Module, f: FuncId, call: &Call, param: Sym) -> bool {
    let at = ir.function(f).params.iter().position(|p| p.name == param).unwrap_or(0);
    let positional = call.args.iter().filter(|a| a.kind == ArgKind::Positional).count();
    positional > at
        || call.args.iter().any(|a: &Arg| match a.kind {
            ArgKind::Keyword(name) => name == param,
            ArgKind::Star | ArgKind::DoubleStar => true,
            ArgKind::Positional => false,
        })
}

struct Graph<'a> {
    program: &'a Program,
    points: FxHashMap<(ModIdx, FuncId), Point>,
    /// Who mentions it; `None` stands for a place that anybody may come to.
    callers: FxHashMap<Node, Vec<Option<Node>>>,
    /// Mentioned after a refusal.
    sheltered: FxHashSet<Node>,
}

impl Graph<'_> {
    fn mentions(&mut self, m: ModIdx) {
        let program = self.program;
        let ir = &program.get(m).ir;
        let skipped = silent(ir);
        let asked = self.asked(m);
        for n in 0..ir.exprs.len() {
            let e = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
            // Nothing else names a function.
            if !matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. }) || skipped.contains(&e) {
                continue;
            }
            let owner = ir.function_around(e);
            if let Some(target) = named(program, m, e) {
                self.mentioned(m, owner, ir.span(e), target, &asked);
            }
        }
    }

    /// Something is mentioned in a function of the file, perhaps in one of the branches where CUDA is, or where somebody else
    /// gives the GPUs.
    fn mentioned(&mut self, m: ModIdx, owner: FuncId, at: Span, target: Node, asked: &[Span]) {
        if asked.iter().any(|span| span.contains(at)) || is_given_gpus(&self.program.get(m).ir, at) {
            self.shelter(target);
        } else {
            self.mention(m, owner, at.start, target);
        }
    }

    /// The branches of a file for machines with CUDA.
    fn asked(&self, m: ModIdx) -> Vec<Span> {
        let ir = &self.program.get(m).ir;
        let refuses = Refuses { program: self.program, module: m, func: FuncId(0), known: &self.points };
        let ifs = ir.stmts.iter().filter_map(|stmt| {
            let Stmt::If { test, then, orelse } = *stmt else { return None };
            let there = match ir.expr(test) {
                Expr::Unary { op: UnaryOp::Not, operand } => refuses.asks(operand).then_some(orelse),
                _ => refuses.asks(test).then_some(then),
            }?;
            let (first, last) = (ir.block(there).first()?, ir.block(there).last()?);
            Some(Span { start: ir.stmt_span(*first).start, end: ir.stmt_span(*last).end })
        });
        ifs.collect()
    }

    /// Notes that something is mentioned where CUDA is.
    fn shelter(&mut self, target: Node) {
        self.sheltered.insert(target);
        self.callers.entry(target).or_default();
    }

    fn mention(&mut self, m: ModIdx, owner: FuncId, at: u32, target: Node) {
        let ir = &self.program.get(m).ir;
        let from = node_of(ir, m, owner);
        if from == Some(target) {
            return;
        }
        let mut f = owner;
        loop {
            if self.points.get(&(m, f)).is_some_and(|p| p.after <= at) {
                self.shelter(target);
                return;
            }
            match ir.function(f).parent {
                Some(parent) if parent != FuncId(0) || from.is_none() => f = parent,
                _ => break,
            }
        }
        self.callers.entry(target).or_default().push(from);
    }

    /// The methods of a class run on instances of its subclasses.
    fn subclasses(&mut self, m: ModIdx) {
        for (n, info) in self.program.get(m).classes.iter().enumerate() {
            let class = ClassKey { module: m, class: ClassId(u32::try_from(n).unwrap_or(u32::MAX)) };
            for &base in info.mro.iter().filter(|&&k| k != class) {
                self.callers.entry(Node::Class(base)).or_default().push(Some(Node::Class(class)));
            }
        }
    }

    fn solve(self) -> Behind {
        let program = self.program;
        let refuses = |n: &Node| match *n {
            Node::Function(..) => false,
            Node::Class(key) => program
                .find_method(key, Sym::new("__init__"))
                .is_some_and(|at| self.points.get(&at).is_some_and(|p| p.refusal == Some(Refusal::Always))),
        };
        let mut nodes: FxHashSet<Node> = self.callers.keys().copied().collect();
        loop {
            let open: Vec<Node> = nodes
                .iter()
                .filter(|n| {
                    !refuses(n) && self.callers[n].iter().any(|c| c.is_none_or(|c| !nodes.contains(&c)))
                })
                .copied()
                .collect();
            if open.is_empty() {
                break;
            }
            open.iter().for_each(|n| {
                nodes.remove(n);
            });
        }
        // What only mentions itself, in a circle, is not behind anything.
        let mut behind: FxHashSet<Node> =
            nodes.iter().filter(|n| self.sheltered.contains(n) || refuses(n)).copied().collect();
        loop {
            let more: Vec<Node> = nodes
                .iter()
                .filter(|n| {
                    !behind.contains(n) && self.callers[n].iter().flatten().any(|c| behind.contains(c))
                })
                .copied()
                .collect();
            if more.is_empty() {
                break;
            }
            behind.extend(more);
        }
        Behind { nodes: behind, points: self.points }
    }
}

/// Is the place where a scheduler gives GPUs: in a class or function with `@ray.remote(num_gpus=1)`, or the one that is handed over in
/// `ray.remote(Actor).options(num_gpus=n)`?
fn is_given_gpus(ir: &Module, at: Span) -> bool {
    let asks = |call: &Call| {
        call.args.iter().any(|a| {
            let some = !matches!(ir.expr(a.value), Expr::Int(0) | Expr::None);
            matches!(a.kind, ArgKind::Keyword(name) if name.as_str() == GPUS) && some
        })
    };
    if !ir.calls.iter().any(asks) {
        return false;
    }
    let decorated = |decorators: crate::ir::ExprList| {
        ir.list(decorators).iter().any(|&d| matches!(ir.expr(d), Expr::Call(id) if asks(ir.call(id))))
    };
    let handed = |call: &Call| {
        // The class is an argument further in: what the options themselves mention runs here.
        let within = ir.span(call.func).contains(at);
        within
            && asks(call)
            && matches!(ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "options")
    };
    ir.functions.iter().any(|f| f.span.contains(at) && decorated(f.decorators))
        || ir.classes.iter().any(|c| c.span.contains(at) && decorated(c.decorators))
        || ir.calls.iter().any(handed)
}

/// Mentions by which nothing runs: annotations, bases, `isinstance`.
pub(super) fn silent(ir: &Module) -> FxHashSet<ExprId> {
    let mut skipped = FxHashSet::default();
    let mut skip = |e: ExprId| {
        let range = ir.exprs_in(e);
        skipped.extend(range.map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX))));
    };
    for f in &ir.functions {
        f.params.iter().filter_map(|p| p.annotation).chain(f.returns).for_each(&mut skip);
    }
    for class in &ir.classes {
        class.bases.iter().for_each(|a| skip(a.value));
    }
    for stmt in &ir.stmts {
        if let Stmt::AnnAssign { annotation, .. } = stmt {
            skip(*annotation);
        }
    }
    for call in &ir.calls {
        let asks = matches!(ir.expr(call.func), Expr::Var(Var::Unbound(name)) if matches!(name.as_str(), "isinstance" | "issubclass"));
        if asks && let Some(class) = call.args.get(1) {
            skip(class.value);
        }
    }
    skipped
}
