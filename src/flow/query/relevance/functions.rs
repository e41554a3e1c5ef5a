//! Relevance: which functions can report anything when they are interpreted on their own.
//!
//! An entry point with symbolic parameters reports something only if it, or a callee, decides a device. Code decides a device if it
//! creates a tensor on one, names one, moves a value by hand, or loads a file. All other code follows its inputs and is skipped. One scan
//! of each file finds such seeds.
//!
//! The seeds are then propagated from callees to callers over a few hops: further away, the device of a result is rarely known. Uses of
//! an accelerator that leave no value there are propagated over one hop. What a function only passes on, or creates from a number, is not
//! propagated: callers with more information decide themselves. Callees that the text does not determine are ignored: the interpreter
//! does not know their results either.

use std::hash::{Hash, Hasher};

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
use crate::reads::{self, Shared};
use crate::sym::{Answers, Sym};

/// Facts about each function of a program.
#[derive(Debug, Default)]
pub struct Relevance {
    /// The effects of importing each file on CUDA.
    pub imports: ImportTime,
    /// The files that cannot be imported without a CUDA build.
    pub cuda_only: CudaOnly,
    /// The attributes that methods assign.
    pub assigned: Assigned,
    /// The methods that run once for an object.
    pub set_up: SetUp,
    /// A cache of the results of helpers that many files call.
    pub(crate) helpers: Helpers,
    modules: Vec<Facts>,
    /// For each class that has any: the methods other than the constructor that decide a device and assign attributes of their object.
    late: FxHashMap<ClassKey, Vec<FuncId>>,
}

/// Facts about the functions of one file, by function number.
#[derive(Debug, Default)]
struct Facts {
    /// The function or a callee, within a few hops, holds a seed.
    pub(crate) live: Vec<bool>,
    /// The function, or something that it mentions directly, holds a seed.
    pub(crate) near: Vec<bool>,
    /// The function or a callee, at any distance, holds a seed or a hint.
    pub(crate) telling: Vec<bool>,
    /// The function holds a seed itself, or a method that it calls on its own object does.
    pub(crate) own: Vec<bool>,
    /// The approximate number of calls in the function and its callees; at most `MAX_CALLS`.
    pub(crate) calls: Vec<u32>,
    /// The file's text contains a string for an environment variable about devices.
    pub(crate) environment: bool,
    /// A function that leads to this one, directly or not, queries the machine.
    pub(crate) asked_before: Vec<bool>,
    /// The expressions that mention `torch.Generator`, in order.
    pub(crate) generators: Vec<ExprId>,
    /// The functions that create tensors on the device of another tensor.
    pub(crate) beside: FxHashSet<FuncId>,
    /// The moves in the file, computed on first use.
    moves: Shared<Vec<Move>>,
}

impl Hash for Facts {
    fn hash<H: Hasher>(&self, into: &mut H) {
        let Self { live, near, telling, own, calls, environment, asked_before, generators, beside, moves: _ } =
            self;
        (live, near, telling, own, calls, environment, asked_before, generators).hash(into);
        let mut beside: Vec<FuncId> = beside.iter().copied().collect();
        beside.sort_unstable();
        beside.hash(into);
    }
}

/// The maximum distance, in calls, from a seed to a function that is interpreted on its own.
const ENTRY_HOPS: u32 = 3;

impl Relevance {
    /// Examines every file of the program, on the current thread pool.
    pub fn of(program: &Program) -> Self {
        let names = Names::new();
        // All scans of a file run together, while it is in the processor's cache.
        let look = |m: usize| {
            let module = index(m);
            let scanned = Scan::new(program, module, &names).run();
            (
                scanned,
                (
                    import_effects::body(program, module),
                    assigned_attributes::of_file(&program.get(index(m)).ir),
                ),
            )
        };
        let (found, (at_import, assigned)): (Vec<Found>, (Vec<_>, Vec<_>)) =
            (0..program.len()).into_par_iter().map(look).unzip();
        let layout = Layout::new(program);
        let mut modules: Vec<Facts> = program
            .all()
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
                moves: Shared::default(),
            })
            .collect();
        for seed in found.iter().flat_map(|f| f.seeds.iter().chain(&f.own)) {
            if let Node::Function(m, f) = *seed {
                modules[m.0 as usize].own[f.0 as usize] = true;
            }
        }
        // A constructor also decides a device if a helper does so for it, or a helper of that helper.
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

    fn facts(&self, module: ModIdx) -> Option<&Facts> {
        reads::note(module.0);
        self.modules.get(module.0 as usize)
    }

    /// Adds what is known about the functions of a file to a fingerprint. The file's text and its links are not part of it.
    pub fn fingerprint(&self, program: &Program, module: ModIdx, into: &mut impl Hasher) {
        self.modules.get(module.0 as usize).hash(into);
        self.imports.touches_cuda(module).hash(into);
        self.cuda_only.fingerprint(module, into);
        self.cuda_only.may_hold_kernels(program).hash(into);
        let functions = self.modules.get(module.0 as usize).map_or(0, |facts| facts.own.len());
        self.set_up.fingerprint(module, functions, into);
    }

    /// Whether nothing in the file decides a device, or depends on the environment of the process.
    pub fn is_idle(&self, module: ModIdx) -> bool {
        let Some(facts) = self.facts(module) else { return false };
        let body = facts.telling.first().copied().unwrap_or(true);
        !body && !facts.environment && !facts.live.iter().any(|&live| live)
    }

    /// Whether interpreting the function on its own can report anything.
    pub fn is_live(&self, module: ModIdx, func: FuncId) -> bool {
        self.facts(module).and_then(|m| m.live.get(func.0 as usize)).copied().unwrap_or(true)
    }

    /// Whether the function decides a device, or mentions a function that does.
    pub fn is_near(&self, module: ModIdx, func: FuncId) -> bool {
        self.facts(module).and_then(|m| m.near.get(func.0 as usize)).copied().unwrap_or(true)
    }

    /// Whether the result or the effects of a call of the function can depend on the machine or on a known device.
    pub fn is_telling(&self, module: ModIdx, func: FuncId) -> bool {
        let facts = self.facts(module);
        facts.and_then(|m| m.telling.get(func.0 as usize)).copied().unwrap_or(true)
    }

    /// The moves in the file of values that it has not created.
    pub(crate) fn moves(&self, program: &Program, module: ModIdx) -> &[Move] {
        let facts = self.facts(module);
        facts.map_or(&[], |m| m.moves.get_or_init(|| moves_in(program, module)))
    }

    /// Whether the function creates tensors on the device of another tensor, which may be an argument.
    pub fn makes_beside(&self, module: ModIdx, func: FuncId) -> bool {
        self.facts(module).is_some_and(|m| m.beside.contains(&func))
    }

    /// Whether the function in this file mentions `torch.Generator`.
    pub fn mentions_generators(&self, module: ModIdx, ir: &Module, func: FuncId) -> bool {
        let all = self.facts(module).map_or(&[][..], |m| &m.generators);
        // A quick test: most files never mention it.
        if all.is_empty() {
            return false;
        }
        let range = ir.exprs_of(ir.function(func));
        all.iter().any(|e| range.contains(&(e.0 as usize)))
    }

    /// Whether callers of the function may have tested if an accelerator is available.
    pub fn asked_before(&self, module: ModIdx, func: FuncId) -> bool {
        let facts = self.facts(module);
        facts.and_then(|m| m.asked_before.get(func.0 as usize)).copied().unwrap_or(true)
    }

    /// The approximate number of calls that interpreting the function takes.
    pub fn calls(&self, module: ModIdx, func: FuncId) -> u32 {
        self.facts(module).and_then(|m| m.calls.get(func.0 as usize)).copied().unwrap_or(0)
    }

    /// The methods of the class itself, except its constructor, that decide a device and assign attributes of their object.
    pub fn late_setters(&self, class: ClassKey) -> &[FuncId] {
        reads::note(class.module.0);
        self.late.get(&class).map_or(&[], |methods| methods)
    }

    /// Whether the function itself decides a device.
    pub fn decides(&self, module: ModIdx, func: FuncId) -> bool {
        self.facts(module).and_then(|m| m.own.get(func.0 as usize)).copied().unwrap_or(true)
    }
}

/// Computes [`Relevance::late_setters`] for every class. Callers combine the results of a class and its bases.
fn late_setters(
    program: &Program,
    assigned: &Assigned,
    decides: &dyn Fn(ModIdx, FuncId) -> bool,
) -> FxHashMap<ClassKey, Vec<FuncId>> {
    let init = Sym::new("__init__");
    let mut late: FxHashMap<ClassKey, Vec<FuncId>> = FxHashMap::default();
    for (m, linked) in program.all().iter().enumerate() {
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
