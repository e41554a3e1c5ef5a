//! Which functions only ever run where CUDA is: everything in the project that leads to them has refused to go on
//! without it.
//!
//! A function refuses if it asserts that CUDA is there, raises or exits without it, or calls at its top level what
//! refuses (`behind/refuses.rs`). A function or class is behind a refusal if the project's other code mentions it, and each
//! mention comes after a refusal in the same function, or is in what is behind one itself (`behind/graph.rs`). Methods are where
//! their class is: who made the instance has come that far, and through its constructor. What nobody mentions is there
//! for others, who may come from anywhere.

mod graph;
mod late;
mod refuses;

use rustc_hash::FxHashSet;

use self::graph::{Bit, Graph, Lit};
use self::late::Late;
use self::refuses::Points;
use crate::finding::Spot;
use crate::ir::{ArgKind, Expr, ExprId, FuncId, FuncKind, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::sym::Sym;

/// What other code mentions: a function of a file, or a class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Node {
    Function(ModIdx, FuncId),
    Class(ClassKey),
}

/// What of the program only runs where CUDA is.
#[derive(Debug, Default)]
pub struct Behind {
    held: FxHashSet<Lit>,
    points: Points,
    late: Late,
    /// Constructors and files that need CUDA count.
    uses: bool,
}

/// The function that asks.
pub const QUESTION: &str = "is_available";
/// The keyword by which a scheduler is asked for GPUs.
pub const GPUS: &str = "num_gpus";
/// The method that needs CUDA.
pub const MOVE: &str = "cuda";

impl Behind {
    /// Looks at these files of the program: what they mention, and where they refuse. With `uses`, so does a constructor
    /// or a file's body that needs CUDA: what cannot be made without it is not there either.
    pub fn of(program: &Program, files: &[ModIdx], uses: bool) -> Self {
        let points = refuses::points(program, files, uses);
        let late = Late::of(program, files, &points);
        let held = Graph::of(program, files, &points, &late, uses).solve();
        Self { held, points, late, uses }
    }

    /// Does anything in these files ask whether an accelerator is there?
    pub fn asks(program: &Program, files: &[ModIdx]) -> bool {
        let (question, gpus) = (Sym::new(QUESTION), Sym::new(GPUS));
        files.iter().any(|&m| {
            let ir = &program.get(m).ir;
            let imported = ir.imports.iter().any(|i| i.name == Some(question));
            let given = |k: ArgKind| matches!(k, ArgKind::Keyword(name) if name == gpus);
            let given = ir.calls().any(|call| call.args.iter().any(|a| given(a.kind)));
            imported || given || ir.has_attribute(question)
        })
    }

    /// Is the place only reached where CUDA is?
    pub fn contains(&self, program: &Program, spot: &Spot) -> bool {
        let Some(m) = program.module_of(spot.file) else { return false };
        let ir = &program.get(m).ir;
        // What comes after a use in the same function is told with that, or not at all.
        let passed = |f: FuncId| !self.uses && self.points.get(&(m, f)).is_some_and(|p| p.after <= spot.at);
        let file = || spot.entry != FuncId(0) && refuses::at_import(&self.points, m);
        passed(spot.entry)
            || file()
            || literal(ir, m, spot.entry, &self.late).is_some_and(|l| self.held.contains(&l))
    }
}

/// When a function of the file runs: when it is called, or its instance is. Nothing for a file's body.
fn literal(ir: &Module, m: ModIdx, f: FuncId, late: &Late) -> Option<Lit> {
    let node = node_of(ir, m, f)?;
    match node {
        Node::Class(class) if runs_on_instance(ir, f) => {
            let method = method_around(ir, f).filter(|_| late.holds(class));
            Some((method.map_or(node, |method| Node::Function(m, method)), Bit::Used))
        }
        node => Some((node, Bit::Begun)),
    }
}

/// The method of an outermost class that the function is, or is in.
pub(super) fn method_around(ir: &Module, mut f: FuncId) -> Option<FuncId> {
    let mut method = None;
    while f != FuncId(0) {
        let function = ir.function(f);
        if function.kind == FuncKind::Function && function.class.is_some() {
            method = Some(f);
        }
        f = function.parent?;
    }
    method
}

/// Is it a method, or in one, that needs an instance which has been made?
fn runs_on_instance(ir: &Module, mut f: FuncId) -> bool {
    let mut method = None;
    while f != FuncId(0) {
        let function = ir.function(f);
        if function.kind == FuncKind::Function && function.class.is_some() {
            method = Some(function);
        }
        let Some(parent) = function.parent else { break };
        f = parent;
    }
    method.is_some_and(|function| {
        let of_class = ir
            .list(function.decorators)
            .iter()
            .any(|&d| ir.last_name(d).is_some_and(|n| matches!(n.as_str(), "classmethod" | "staticmethod")));
        !of_class && !matches!(function.name.as_str(), "__init__" | "__new__" | "__post_init__")
    })
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
        ir.args(class.bases).iter().for_each(|a| skip(a.value));
    }
    for stmt in &ir.stmts {
        if let Stmt::AnnAssign { annotation, .. } = stmt {
            skip(*annotation);
        }
    }
    for call in ir.calls() {
        let asks = matches!(ir.expr(call.func), Expr::Var(Var::Unbound(name)) if matches!(name.as_str(), "isinstance" | "issubclass"));
        if asks && let Some(class) = call.args.get(1) {
            skip(class.value);
        }
    }
    skipped
}
