//! Which functions only run on machines with CUDA, because all paths in the project to them refuse to continue without it.
//!
//! A function refuses if it asserts that CUDA is available, raises or exits otherwise, or calls such a function at its top level
//! (`cuda_required/refuses.rs`). Code after a refusal in the same function has CUDA, and so has code that is only mentioned there
//! (`project/context.rs`). Methods are reached where their class is instantiated: the constructor has run by then.

mod asks;
mod branches;
mod caught;
mod needs;
mod own;
mod places;
mod refuses;
mod statements;

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use self::own::Own;
use self::places::outermost;
use self::refuses::{Finder, Points};
use super::CallGraph;
use super::call_graph::{Node, Route, made_at};
use super::context::{Context, Fact, Verdict};
use crate::finding::Way;
use crate::ir::{ArgKind, FuncId};
use crate::link::{ModIdx, Program, Target};
use crate::span::Span;
use crate::sym::Sym;

/// The parts of the program that only run on machines with CUDA.
#[derive(Debug)]
pub struct Behind {
    context: Context,
    points: Points,
    uses: Uses,
}

/// The places in the files on a path that come after code that needs CUDA.
#[derive(Debug, Default)]
pub struct Passed {
    there: FxHashMap<ModIdx, Vec<Span>>,
    /// The same, where an `if` also counts if each of its branches needs CUDA.
    branches: FxHashMap<ModIdx, Vec<Span>>,
}

/// Which uses of CUDA count as refusals, in addition to checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Uses {
    /// None.
    #[default]
    None,
    /// Uses in a constructor, and in the body of a class or file. Without CUDA, the object, class or file does not exist.
    Making,
    /// Uses in any function.
    All,
    /// The same, and an `if` each of whose branches uses CUDA.
    OnTheWay,
}

impl Uses {
    /// Whether uses in all kinds of functions count.
    fn anywhere(self) -> bool {
        matches!(self, Self::All | Self::OnTheWay)
    }
}

/// The function that tests for an accelerator.
pub const QUESTION: &str = "is_available";
/// The keyword argument that requests GPUs from a scheduler.
pub const GPUS: &str = "num_gpus";
/// The method that needs CUDA.
pub const MOVE: &str = "cuda";

/// The maximum number of files that are analyzed for the imports of one file.
const MAX_IMPORTS: usize = 300;

impl Behind {
    /// Finds the refusals in the files of the call graph, as far as these paths need them.
    pub fn of<'w>(
        program: &Program,
        graph: &CallGraph,
        uses: Uses,
        ways: impl Iterator<Item = &'w Way>,
    ) -> Self {
        let own = Own::of(program, graph.files());
        let finder = Finder { program, uses, own: &own, files: graph.files().iter().copied().collect() };
        let known = RefCell::default();
        let there: RefCell<FxHashMap<ModIdx, Vec<Span>>> = RefCell::default();
        let is_there = |m: ModIdx, at: Span| {
            let mut there = there.borrow_mut();
            let there = there.entry(m).or_insert_with(|| {
                let there = finder.answer(&known, |known| places::there(program, m, known, uses, &own));
                outermost([there, caught::given_gpus(program, m), caught::tried(program, m)].concat())
            });
            places::is_within(there, at)
        };
        let init = Sym::new("__init__");
        let fact = Fact {
            route: Route::Made,
            at: &|_, mention| {
                let inside = finder.files.contains(&mention.module);
                (inside && is_there(mention.module, mention.span(program))).into()
            },
            of: &|node| match node {
                // An instance's constructor has run.
                Node::Instance(key) => {
                    let always = program
                        .find_method(key, init)
                        .is_some_and(|at| finder.answer(&known, |known| refuses::always(known.get(&at))));
                    always.into()
                }
                _ => Verdict::Inherited,
            },
        };
        let mut asked = Vec::new();
        for way in ways {
            asked.extend(entered(program, way));
            // `contains` asks for these.
            if let Some(m) = program.module_of(way.spot.file) {
                let functions = [(m, way.spot.entry), (m, FuncId(0))];
                finder.answer(&known, |known| functions.iter().for_each(|f| _ = known.get(f)));
            }
        }
        let context = Context::of(program, graph, asked, &fact);
        Self { context, points: known.into_inner().points, uses }
    }

    /// Whether any code in these files tests for an accelerator.
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

    /// Whether the place is only reached on machines with CUDA.
    pub fn contains(&self, program: &Program, way: &Way) -> bool {
        let spot = &way.spot;
        let Some(m) = program.module_of(spot.file) else { return false };
        // Code after a use in the same function is reported with that use, or not at all.
        let passed = |f: FuncId| {
            self.uses == Uses::None && self.points.get(&(m, f)).is_some_and(|p| p.after <= spot.at)
        };
        let file = || {
            !self.uses.anywhere()
                && spot.entry != FuncId(0)
                && places::after_import(program, &self.points, m, spot.entry)
        };
        passed(spot.entry) || file() || entered(program, way).is_some_and(|node| self.context.holds(node))
    }
}

/// The node that the path begins in.
fn entered(program: &Program, way: &Way) -> Option<Node> {
    let m = program.module_of(way.spot.file)?;
    made_at(&program.get(m).ir, m, way.spot.entry)
}

impl Passed {
    /// Analyzes only what these paths pass, in their own files and in the imports of these files. For a file that imports a large
    /// library, only the file itself is analyzed.
    pub fn on_ways<'w>(program: &Program, ways: impl Iterator<Item = &'w Way>) -> Self {
        let places = ways.flat_map(|way| way.places.iter());
        let on: FxHashSet<ModIdx> = places.filter_map(|place| program.module_of(place.file)).collect();
        let mut passed = Self::default();
        // The facts about a file must not depend on which other files are linted. So either all of its imports are analyzed, or none.
        let (mut together, mut small) = (FxHashSet::default(), Vec::new());
        for &m in &on {
            match imports(program, m) {
                Some(files) => {
                    together.extend(files);
                    small.push(m);
                }
                None => passed.pass(program, &[m], &[m]),
            }
        }
        let mut files: Vec<ModIdx> = together.into_iter().collect();
        files.sort_unstable();
        passed.pass(program, &files, &small);
        passed
    }

    /// Adds the passed places in the files `on`, according to `files`. A call of a function each of whose branches needs CUDA needs CUDA
    /// itself, in any file.
    fn pass(&mut self, program: &Program, files: &[ModIdx], on: &[ModIdx]) {
        program.note(files);
        let own = Own { near: true, ..Own::of(program, files) };
        let files = files.iter().copied().collect();
        let finder = Finder { program, uses: Uses::OnTheWay, own: &own, files };
        let known = RefCell::default();
        for (uses, spans) in [(Uses::All, &mut self.there), (Uses::OnTheWay, &mut self.branches)] {
            let there = |m| finder.answer(&known, |known| places::there(program, m, known, uses, &own));
            spans.extend(on.iter().map(|&m| (m, there(m))));
        }
    }

    /// Whether the path passes code that needs CUDA, in one of the functions on it.
    pub fn is_passed(&self, program: &Program, way: &Way) -> bool {
        way.places.iter().any(|place| {
            // A reader of the function sees branches in the same file, and can fix each of them separately.
            let far = way.places.last().is_none_or(|last| last.file != place.file);
            let spans = if far { &self.branches } else { &self.there };
            let there = program.module_of(place.file).and_then(|m| spans.get(&m));
            there.is_some_and(|there| places::is_within(there, place.span))
        })
    }
}

/// The file and its direct and indirect imports; `None` if there are too many.
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
