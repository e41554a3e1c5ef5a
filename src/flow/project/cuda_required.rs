//! Which functions only ever run where CUDA is: everything in the project that leads to them has refused to go on
//! without it.
//!
//! A function refuses if it asserts that CUDA is there, raises or exits without it, or calls at its top level what
//! refuses (`behind/refuses.rs`). A function or class is behind a refusal if the project's other code mentions it, and each
//! mention comes after a refusal in the same function, or is in what is behind one itself (`behind/graph.rs`). Methods are where
//! their class is: who made the instance has come that far, and through its constructor. What nobody mentions is there
//! for others, who may come from anywhere.

mod asks;
mod caught;
mod graph;
mod needs;
mod own;
mod refuses;
mod statements;

use rustc_hash::{FxHashMap, FxHashSet};

use self::graph::{Bit, Graph, Lit, Mention};
use self::own::Own;
use self::refuses::Points;
use crate::finding::Way;
use crate::flow::query::nodes::{Node, node_of};
use crate::ir::{ArgKind, FuncId, FuncKind, Module};
use crate::link::{ModIdx, Program, Target};
use crate::span::Span;
use crate::sym::Sym;

/// What of the program only runs where CUDA is.
#[derive(Debug, Default)]
pub struct Behind {
    held: FxHashSet<Lit>,
    points: Points,
    /// The places of each file on the way that come after something that needs CUDA.
    there: FxHashMap<ModIdx, Vec<Span>>,
    /// The same with branches of which each does.
    branches: FxHashMap<ModIdx, Vec<Span>>,
    uses: Uses,
}

/// What refuses besides checks, since it needs CUDA.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Uses {
    /// Nothing.
    #[default]
    None,
    /// A constructor that does, and the body of a class or file: what cannot be made without it is not there either.
    Making,
    /// Any function that does.
    All,
    /// The same, and branches of which each does.
    OnTheWay,
}

impl Uses {
    /// Does it matter what functions of any kind need?
    fn anywhere(self) -> bool {
        matches!(self, Self::All | Self::OnTheWay)
    }
}

/// The function that asks.
pub const QUESTION: &str = "is_available";
/// The keyword by which a scheduler is asked for GPUs.
pub const GPUS: &str = "num_gpus";
/// The method that needs CUDA.
pub const MOVE: &str = "cuda";

/// More files than these are not looked at for one that imports them.
const MAX_IMPORTS: usize = 300;

/// What each of some files mentions.
#[derive(Debug)]
pub struct Mentions(Vec<Vec<Mention>>);

impl Mentions {
    /// Those of these files, in their order.
    pub fn of(program: &Program, files: &[ModIdx]) -> Self {
        Self(files.iter().map(|&m| graph::mentions(program, m)).collect())
    }
}

impl Behind {
    /// Looks at these files of the program, which have these `mentions`, for where they refuse.
    pub fn of(program: &Program, files: &[ModIdx], uses: Uses, mentions: &Mentions) -> Self {
        let own = Own::of(program, files);
        let known = refuses::points(program, files, uses, &own);
        let there = |&m: &ModIdx| (m, refuses::there(program, m, &known, uses, &own));
        let there: FxHashMap<ModIdx, Vec<Span>> = files.iter().map(there).collect();
        let graph = Graph::of(program, files, &mentions.0, &known.points, &there);
        let reachable = uses.anywhere().then(|| graph.reachable());
        let mut held = graph.solve();
        // A method is where its class is.
        let mentioned = |node: Node| match node {
            Node::Function(m, f) => node_of(&program.get(m).ir, m, f).unwrap_or(node),
            class => class,
        };
        held.retain(|&(node, _)| reachable.as_ref().is_none_or(|known| known.contains(&mentioned(node))));
        Self { held, points: known.points, uses, there, ..Self::default() }
    }

    /// Looks only at what these ways come past, in their own files and in what these import; of one that imports a large library
    /// in the file alone.
    pub fn on_ways<'w>(program: &Program, ways: impl Iterator<Item = &'w Way>) -> Self {
        let places = ways.flat_map(|way| way.places.iter());
        let on: FxHashSet<ModIdx> = places.filter_map(|place| program.module_of(place.file)).collect();
        let mut behind = Self::default();
        // What is known of a file must not hang on what else is linted: all of its imports are there, or none.
        let (mut together, mut small) = (FxHashSet::default(), Vec::new());
        for &m in &on {
            match imports(program, m) {
                Some(files) => {
                    together.extend(files);
                    small.push(m);
                }
                None => behind.pass(program, &[m], &[m]),
            }
        }
        let mut files: Vec<ModIdx> = together.into_iter().collect();
        files.sort_unstable();
        behind.pass(program, &files, &small);
        behind
    }

    /// Adds what is come past in the files `on`, as far as `files` tell. A call of what needs CUDA in each of its branches is not come
    /// past without it, wherever these stand.
    fn pass(&mut self, program: &Program, files: &[ModIdx], on: &[ModIdx]) {
        program.note(files);
        let own = Own { near: true, ..Own::of(program, files) };
        let known = refuses::points(program, files, Uses::OnTheWay, &own);
        for (uses, spans) in [(Uses::All, &mut self.there), (Uses::OnTheWay, &mut self.branches)] {
            spans.extend(on.iter().map(|&m| (m, refuses::there(program, m, &known, uses, &own))));
        }
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
    pub fn contains(&self, program: &Program, way: &Way) -> bool {
        let spot = &way.spot;
        let Some(m) = program.module_of(spot.file) else { return false };
        let ir = &program.get(m).ir;
        // What comes after a use in the same function is told with that, or not at all.
        let passed = |f: FuncId| {
            self.uses == Uses::None && self.points.get(&(m, f)).is_some_and(|p| p.after <= spot.at)
        };
        let file = || {
            !self.uses.anywhere()
                && spot.entry != FuncId(0)
                && refuses::after_import(program, &self.points, m, spot.entry)
        };
        passed(spot.entry) || file() || literal(ir, m, spot.entry).is_some_and(|l| self.held.contains(&l))
    }

    /// Does the way come past something that needs CUDA, in one of the functions that it goes through?
    pub fn is_passed(&self, program: &Program, way: &Way) -> bool {
        way.places.iter().any(|place| {
            // Who reads a function sees the branches in the same file, and each of them may be mended for itself.
            let far = way.places.last().is_none_or(|last| last.file != place.file);
            let spans = if far { &self.branches } else { &self.there };
            let there = program.module_of(place.file).and_then(|m| spans.get(&m));
            there.is_some_and(|there| refuses::is_within(there, place.span))
        })
    }
}

/// The file and what it imports, directly or not; nothing if that is much.
fn imports(program: &Program, m: ModIdx) -> Option<FxHashSet<ModIdx>> {
    let (mut seen, mut open) = (FxHashSet::from_iter([m]), vec![m]);
    while let Some(m) = open.pop() {
        for target in program.get(m).targets.values() {
            if let Target::Module(m) | Target::Member(m, _) = *target
                && seen.insert(m)
            {
                open.push(m);
            }
        }
        if seen.len() > MAX_IMPORTS {
            return None;
        }
    }
    Some(seen)
}

/// When a function of the file runs: when it is called, or its instance is. Nothing for a file's body.
fn literal(ir: &Module, m: ModIdx, f: FuncId) -> Option<Lit> {
    let node = node_of(ir, m, f)?;
    match node {
        Node::Class(_) if runs_on_instance(ir, f) => Some((node, Bit::Used)),
        node => Some((node, Bit::Begun)),
    }
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
