//! Relevance: which functions can possibly say anything when they are interpreted for themselves.
//!
//! An entry point with symbols for parameters tells of something only if it, or what it calls, decides a device:
//! makes a tensor on one, names one, moves something by hand, loads. Everything else follows its inputs, and is
//! skipped. One look at each file finds such seeds; they are then carried from callees to callers, over a few hops: what
//! is far away gives a value whose place is rarely known by then. What uses an accelerator and leaves nothing there is carried
//! over one, and what a function only hands on, or makes of a number, over none: who knows more decides for itself. A callee that cannot be told from the text adds
//! nothing: what it gives is not known to the interpreter either.

use std::sync::OnceLock;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::query::cuda_imports::CudaOnly;
use crate::flow::query::relevance::assigned_attributes;
use crate::flow::query::relevance::assigned_attributes::Assigned;
use crate::flow::query::relevance::file_scan::{Names, Scan};
use crate::flow::query::relevance::graph::{Found, Node, number};
use crate::flow::query::relevance::import_effects;
use crate::flow::query::relevance::import_effects::ImportTime;
use crate::flow::query::relevance::import_helpers::Helpers;
use crate::flow::query::relevance::layout::{Layout, index};
use crate::flow::query::relevance::moved_by_others::{Move, moves_in};
use crate::flow::query::relevance::setup_methods::SetUp;
use crate::ir::{ClassId, ExprId, FuncId, Module};
use crate::link::{ClassKey, ModIdx, Program};
use crate::sym::{Answers, Sym};

/// What is known of each function of a program.
#[derive(Debug, Default)]
pub struct Relevance {
    /// What importing a file does to CUDA.
    pub imports: ImportTime,
    /// Which files cannot be imported without what only a CUDA build has.
    pub cuda_only: CudaOnly,
    /// Which attributes methods assign.
    pub assigned: Assigned,
    /// Which methods run once for an object.
    pub set_up: SetUp,
    /// What helpers give that many files call.
    pub(crate) helpers: Helpers,
    modules: Vec<Facts>,
    /// Of each class that has any, the methods besides the constructor that decide a device and assign attributes of their object.
    late: FxHashMap<ClassKey, Vec<FuncId>>,
}

/// What is known of the functions of one file, by number.
#[derive(Debug, Default)]
struct Facts {
    /// It, or what it calls, holds a seed.
    pub(crate) live: Vec<bool>,
    /// It, or what it mentions itself, holds a seed.
    pub(crate) near: Vec<bool>,
    /// It, or what it calls, holds a seed or a hint.
    pub(crate) telling: Vec<bool>,
    /// It holds a seed itself, or a method that it calls on its own object does.
    pub(crate) own: Vec<bool>,
    /// Calls in it and in what it calls, as far as can be told; never more than `MAX_CALLS`.
    pub(crate) calls: Vec<u32>,
    /// Its text names a variable of the environment that is about devices.
    pub(crate) environment: bool,
    /// Something that mentions it, or mentions what does, asks about the machine.
    pub(crate) asked_before: Vec<bool>,
    /// The expressions that speak of `torch.Generator`, in order.
    pub(crate) generators: Vec<ExprId>,
    /// Those that make tensors where another one is.
    pub(crate) beside: FxHashSet<FuncId>,
    /// What the file moves, once somebody has asked.
    moves: OnceLock<Vec<Move>>,
}

/// How far from what decides a device a function may be, to be interpreted for itself.
const ENTRY_HOPS: u32 = 3;

impl Relevance {
    /// Looks at every file of the program, on the current thread pool.
    pub fn of(program: &Program) -> Self {
        let names = Names::new();
        // Together, as long as the file is at hand in the processor's cache.
        let look = |m: usize| {
            let module = index(m);
            let scanned = Scan::new(program, module, &names).run();
            (
                scanned,
                (import_effects::body(program, module), assigned_attributes::of_file(&program.modules[m].ir)),
            )
        };
        let (found, (at_import, assigned)): (Vec<Found>, (Vec<_>, Vec<_>)) =
            (0..program.modules.len()).into_par_iter().map(look).unzip();
        let layout = Layout::new(program);
        let mut modules: Vec<Facts> = program
            .modules
            .iter()
            .map(|m| Facts {
                live: Vec::new(),
                near: Vec::new(),
                telling: Vec::new(),
                own: vec![false; m.ir.functions.len()],
                environment: m.ir.strings.iter().any(|&s| is_environment(s)),
                calls: Vec::new(),
                asked_before: Vec::new(),
                generators: Vec::new(),
                beside: FxHashSet::default(),
                moves: OnceLock::new(),
            })
            .collect();
        for seed in found.iter().flat_map(|f| f.seeds.iter().chain(&f.own)) {
            if let Node::Function(m, f) = *seed {
                modules[m.0 as usize].own[f.0 as usize] = true;
            }
        }
        // A constructor that leaves it to a helper decides all the same, and so does one whose helper has a helper.
        for _ in 0..2 {
            let decides = |(n, g): (ModIdx, FuncId)| modules[n.0 as usize].own[g.0 as usize];
            let same = found.iter().flat_map(|f| f.same.iter().chain(&f.helpers));
            let too: Vec<_> =
                same.filter(|(_, callee)| decides(*callee)).map(|&(caller, _)| caller).collect();
            for (m, f) in too {
                modules[m.0 as usize].own[f.0 as usize] = true;
            }
        }
        let callers = layout.callers(&found);
        let decided = || found.iter().flat_map(|f| f.seeds.iter().chain(&f.uses));
        let mut live = layout.reach(&mut found.iter().flat_map(|f| &f.seeds), &callers, ENTRY_HOPS);
        let mut near = layout.reach(&mut decided(), &callers, 1);
        for (live, near) in live.iter_mut().zip(&near) {
            *live |= near;
        }
        for &node in found.iter().flat_map(|f| &f.own) {
            let at = layout.number(node) as usize;
            (live[at], near[at]) = (true, true);
        }
        let mut all = decided().chain(found.iter().flat_map(|f| &f.hints));
        let telling = layout.reach(&mut all, &callers, u32::MAX);
        let calls = layout.calls(&found);
        let callees = layout.callees_in_files(&found);
        let asked_before = layout.asked_before(&found, &callees);
        for (m, facts) in modules.iter_mut().enumerate() {
            let start = layout.starts[m] as usize;
            facts.calls = calls[start..start + facts.own.len()].to_vec();
            facts.live = live[start..start + facts.own.len()].to_vec();
            facts.near = near[start..start + facts.own.len()].to_vec();
            facts.telling = telling[start..start + facts.own.len()].to_vec();
            facts.asked_before = asked_before[start..start + facts.own.len()].to_vec();
            facts.generators.clone_from(&found[m].generators);
            facts.beside.clone_from(&found[m].beside);
        }
        let assigned = Assigned::of(assigned);
        let decides = |m: ModIdx, f: FuncId| modules[m.0 as usize].own[f.0 as usize];
        Self {
            late: late_setters(program, &assigned, &decides),
            modules,
            imports: ImportTime::of(&at_import),
            cuda_only: CudaOnly::of(program),
            set_up: SetUp::of(program, &found),
            assigned,
            helpers: Helpers::default(),
        }
    }

    /// Has the file nothing in it that decides a device, or that the environment of the process depends on?
    pub fn is_idle(&self, module: ModIdx) -> bool {
        let Some(facts) = self.modules.get(module.0 as usize) else { return false };
        let body = facts.telling.first().copied().unwrap_or(true);
        !body && !facts.environment && !facts.live.iter().any(|&live| live)
    }

    /// Can interpreting the function for itself say anything?
    pub fn is_live(&self, module: ModIdx, func: FuncId) -> bool {
        self.modules.get(module.0 as usize).and_then(|m| m.live.get(func.0 as usize)).copied().unwrap_or(true)
    }

    /// Does the function decide a device, or have another one that it mentions decide it?
    pub fn is_near(&self, module: ModIdx, func: FuncId) -> bool {
        self.modules.get(module.0 as usize).and_then(|m| m.near.get(func.0 as usize)).copied().unwrap_or(true)
    }

    /// Can what a call of the function gives, or does, depend on the machine or on a device that is known?
    pub fn is_telling(&self, module: ModIdx, func: FuncId) -> bool {
        let facts = self.modules.get(module.0 as usize);
        facts.and_then(|m| m.telling.get(func.0 as usize)).copied().unwrap_or(true)
    }

    /// What the file moves that it has not made there.
    pub(crate) fn moves(&self, program: &Program, module: ModIdx) -> &[Move] {
        let facts = self.modules.get(module.0 as usize);
        facts.map_or(&[], |m| m.moves.get_or_init(|| moves_in(program, module)))
    }

    /// Does the function make tensors where another one is, which may be where an argument is?
    pub fn makes_beside(&self, module: ModIdx, func: FuncId) -> bool {
        self.modules.get(module.0 as usize).is_some_and(|m| m.beside.contains(&func))
    }

    /// Does the function, which is in this file, speak of `torch.Generator`?
    pub fn mentions_generators(&self, module: ModIdx, ir: &Module, func: FuncId) -> bool {
        let all = self.modules.get(module.0 as usize).map_or(&[][..], |m| &m.generators);
        // Most files never do.
        if all.is_empty() {
            return false;
        }
        let range = ir.exprs_of(ir.function(func));
        all.iter().any(|e| range.contains(&(e.0 as usize)))
    }

    /// May whoever calls the function have asked whether an accelerator is there?
    pub fn asked_before(&self, module: ModIdx, func: FuncId) -> bool {
        let facts = self.modules.get(module.0 as usize);
        facts.and_then(|m| m.asked_before.get(func.0 as usize)).copied().unwrap_or(true)
    }

    /// How many calls interpreting the function takes, roughly.
    pub fn calls(&self, module: ModIdx, func: FuncId) -> u32 {
        self.modules.get(module.0 as usize).and_then(|m| m.calls.get(func.0 as usize)).copied().unwrap_or(0)
    }

    /// The methods of the class itself, without its constructor, that decide a device and assign attributes of their object.
    pub fn late_setters(&self, class: ClassKey) -> &[FuncId] {
        self.late.get(&class).map_or(&[], |methods| methods)
    }

    /// Does the function itself decide a device somewhere?
    pub fn decides(&self, module: ModIdx, func: FuncId) -> bool {
        self.modules.get(module.0 as usize).and_then(|m| m.own.get(func.0 as usize)).copied().unwrap_or(true)
    }
}

/// See [`Relevance::late_setters`]: of every class, as each class is asked for those of all of its bases.
fn late_setters(
    program: &Program,
    assigned: &Assigned,
    decides: &dyn Fn(ModIdx, FuncId) -> bool,
) -> FxHashMap<ClassKey, Vec<FuncId>> {
    let init = Sym::new("__init__");
    let mut late: FxHashMap<ClassKey, Vec<FuncId>> = FxHashMap::default();
    for (m, linked) in program.modules.iter().enumerate() {
        let module = index(m);
        for (n, class) in linked.ir.classes.iter().enumerate() {
            let sets = |f: FuncId| decides(module, f) && !assigned.to_self(module, f).is_empty();
            for &(_, f) in class.methods.iter().filter(|&&(name, f)| name != init && sets(f)) {
                late.entry(ClassKey { module, class: ClassId(number(n)) }).or_default().push(f);
            }
        }
    }
    late
}

thread_local! {
    static ENVIRONMENT: Answers = const { Answers::new() };
}

fn is_environment(text: Sym) -> bool {
    let says = |text: &str| ["CUDA", "VISIBLE_DEVICES"].iter().any(|part| text.contains(part));
    ENVIRONMENT.with(|known| known.ask(text, says))
}
