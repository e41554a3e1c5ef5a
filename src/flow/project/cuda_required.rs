//! Which functions only ever run where CUDA is: everything in the project that leads to them has refused to go on
//! without it.
//!
//! A function refuses if it asserts that CUDA is there, raises or exits without it, or calls at its top level what
//! refuses (`cuda_required/refuses.rs`). What comes after a refusal in the same function has CUDA, and so has what is only mentioned there
//! (`project/context.rs`). Methods are where their class is: who made the instance has come that far, and through its constructor.

mod asks;
mod branches;
mod caught;
mod needs;
mod own;
mod places;
mod refuses;
mod statements;

use rustc_hash::{FxHashMap, FxHashSet};

use self::own::Own;
use self::places::outermost;
use self::refuses::{Points, Refusal};
use super::CallGraph;
use super::call_graph::{Node, Route, made_at};
use super::context::{Context, Fact, Verdict};
use crate::finding::Way;
use crate::ir::{ArgKind, FuncId};
use crate::link::{ModIdx, Program, Target};
use crate::span::Span;
use crate::sym::Sym;

/// What of the program only runs where CUDA is.
#[derive(Debug)]
pub struct Behind {
    context: Context,
    points: Points,
    uses: Uses,
}

/// The places of files on the way that come after something that needs CUDA.
#[derive(Debug, Default)]
pub struct Passed {
    there: FxHashMap<ModIdx, Vec<Span>>,
    /// The same with branches of which each does.
    branches: FxHashMap<ModIdx, Vec<Span>>,
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

impl Behind {
    /// Looks at the files of the call graph for where they refuse, as far as these ways need it.
    pub fn of<'w>(
        program: &Program,
        graph: &CallGraph,
        uses: Uses,
        ways: impl Iterator<Item = &'w Way>,
    ) -> Self {
        let files = graph.files();
        let own = Own::of(program, files);
        let known = refuses::points(program, files, uses, &own);
        let there = |&m: &ModIdx| {
            let there = places::there(program, m, &known, uses, &own);
            (m, outermost([there, caught::given_gpus(program, m), caught::tried(program, m)].concat()))
        };
        let there: FxHashMap<ModIdx, Vec<Span>> = files.iter().map(there).collect();
        let init = Sym::new("__init__");
        let fact = Fact {
            route: Route::Made,
            at: &|_, mention| {
                let there = there.get(&mention.module);
                there.is_some_and(|there| places::is_within(there, mention.span(program))).into()
            },
            of: &|node| match node {
                // Who has made an instance has come through its constructor.
                Node::Instance(key) => {
                    let point = program.find_method(key, init).and_then(|at| known.points.get(&at));
                    point.is_some_and(|p| p.refusal == Some(Refusal::Always)).into()
                }
                _ => Verdict::Inherited,
            },
        };
        let asked = ways.filter_map(|way| entered(program, way));
        Self { context: Context::of(program, graph, asked, &fact), points: known.points, uses }
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
        // What comes after a use in the same function is told with that, or not at all.
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

/// What the way begins in.
fn entered(program: &Program, way: &Way) -> Option<Node> {
    let m = program.module_of(way.spot.file)?;
    made_at(&program.get(m).ir, m, way.spot.entry)
}

impl Passed {
    /// Looks only at what these ways come past, in their own files and in what these import; of one that imports a large library
    /// in the file alone.
    pub fn on_ways<'w>(program: &Program, ways: impl Iterator<Item = &'w Way>) -> Self {
        let places = ways.flat_map(|way| way.places.iter());
        let on: FxHashSet<ModIdx> = places.filter_map(|place| program.module_of(place.file)).collect();
        let mut passed = Self::default();
        // What is known of a file must not hang on what else is linted: all of its imports are there, or none.
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

    /// Adds what is come past in the files `on`, as far as `files` tell. A call of what needs CUDA in each of its branches is not come
    /// past without it, wherever these stand.
    fn pass(&mut self, program: &Program, files: &[ModIdx], on: &[ModIdx]) {
        program.note(files);
        let own = Own { near: true, ..Own::of(program, files) };
        let known = refuses::points(program, files, Uses::OnTheWay, &own);
        for (uses, spans) in [(Uses::All, &mut self.there), (Uses::OnTheWay, &mut self.branches)] {
            spans.extend(on.iter().map(|&m| (m, places::there(program, m, &known, uses, &own))));
        }
    }

    /// Does the way come past something that needs CUDA, in one of the functions that it goes through?
    pub fn is_passed(&self, program: &Program, way: &Way) -> bool {
        way.places.iter().any(|place| {
            // Who reads a function sees the branches in the same file, and each of them may be mended for itself.
            let far = way.places.last().is_none_or(|last| last.file != place.file);
            let spans = if far { &self.branches } else { &self.there };
            let there = program.module_of(place.file).and_then(|m| spans.get(&m));
            there.is_some_and(|there| places::is_within(there, place.span))
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
