//! PyTorch's semantics as data: which callables make tensors and where, move them, demand one device,
//! leave their arguments alone, or fail without an accelerator.
//!
//! The facts are in `data/*.txt`, compiled in; each is read when it is first asked for. A malformed line is skipped
//! (and fails a test). Nothing here looks at code; `flow` asks by canonical dotted path.

mod calls;
mod names;
mod operators;
mod read;
mod table;

use std::cell::RefCell;
use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

pub use calls::{Accelerator, AcceleratorCall, Arg, CallFact, Decorator, Numpy, Returns, Without};
pub use names::{Base, BaseFact, Reach, TestGuard};
pub use operators::{
    Accepts, ArgRule, ConstructorParameter, Distribution, Elsewhere, Kind, ModuleOp, Op, ResultRule, Share,
    State,
};

use crate::sym::Sym;
use calls::Calls;
use names::{Aliases, Classes, Marks};
use read::Entry;
use table::Table;

const GENERATED: &str = include_str!("../../data/operators.txt");
const WRITTEN: &str = include_str!("../../data/operators-written.txt");
const CALLS: &str = include_str!("../../data/calls.txt");
const CLASSES: &str = include_str!("../../data/classes.txt");
const MARKS: &str = include_str!("../../data/marks.txt");
const ALIASES: &str = include_str!("../../data/aliases.txt");

static CALL_FACTS: LazyLock<Calls> = LazyLock::new(|| Calls::read(CALLS));
static FOR_CUDA: LazyLock<Vec<&str>> = LazyLock::new(|| CALL_FACTS.libraries_for_cuda());
static BASES: LazyLock<Classes> = LazyLock::new(|| Classes::read(CLASSES));
static MARKED: LazyLock<Marks> = LazyLock::new(|| Marks::read(MARKS));
static PUBLIC: LazyLock<Aliases> = LazyLock::new(|| Aliases::read(ALIASES));

/// What of `torch.multiprocessing` starts processes, each with the function that it is given first.
pub const STARTERS: [&str; 2] = ["spawn", "start_processes"];

/// The packages that the facts are about.
static LIBRARIES: LazyLock<FxHashSet<&str>> = LazyLock::new(|| {
    let facts = [GENERATED, WRITTEN, CALLS, CLASSES].into_iter().flat_map(read::lines);
    let mut all: Vec<&str> =
        facts.filter_map(|fact| Some(fact.split(' ').next()?.split_once('.')?.0)).collect();
    // Most lines follow one of the same package.
    all.dedup();
    all.into_iter().collect()
});

/// Is it the name of a package whose functions or classes are known here: `transformers`?
pub fn is_library(package: &str) -> bool {
    LIBRARIES.contains(package)
}

/// The lines about operators. Of two about one name the later one holds.
#[derive(Default)]
struct Operators {
    functions: Table<Op>,
    methods: Table<Op>,
    modules: Table<ModuleOp>,
}

static OPERATORS: LazyLock<Operators> = LazyLock::new(|| {
    let mut table = Operators::default();
    for line in read::lines(GENERATED).chain(read::lines(WRITTEN)) {
        let Some((name, facts)) = line.split_once(' ') else { continue };
        if read::is_module(facts) {
            table.modules.add(name, line);
        } else if let Some(method) = name.strip_prefix("torch.Tensor.") {
            table.methods.add(method, line);
        } else {
            table.functions.add(name, line);
        }
    }
    table
});

impl Operators {
    fn op<'a>(table: &'a Table<Op>, name: &str) -> Option<&'a Op> {
        table.get(name, |lines| {
            let read = |line| match read::entry(line) {
                Some(Entry::Op(op)) => Some(op),
                _ => None,
            };
            lines.filter_map(read).last()
        })
    }

    fn function(&self, name: Sym) -> Option<&Op> {
        Self::op(&self.functions, name.as_str())
    }

    fn method(&self, name: Sym) -> Option<&Op> {
        Self::op(&self.methods, name.as_str())
    }

    fn module(&self, name: Sym) -> Option<&ModuleOp> {
        self.modules.get(name.as_str(), |lines| {
            let read = |line| match read::entry(line) {
                Some(Entry::Module(module)) => Some(module),
                _ => None,
            };
            lines.filter_map(read).last()
        })
    }
}

/// What is known of one path.
#[derive(Clone, Copy)]
struct Known {
    function: Option<&'static Op>,
    module: Option<&'static ModuleOp>,
    call: Option<&'static CallFact>,
    base: Option<BaseFact>,
}

thread_local! {
    /// Paths this thread has asked about.
    static KNOWN: RefCell<FxHashMap<Sym, Known>> = RefCell::default();
    /// Their public names.
    static CANONICAL: RefCell<FxHashMap<Sym, Sym>> = RefCell::default();
    /// Methods of tensors this thread has asked about.
    static METHODS: RefCell<FxHashMap<Sym, Option<&'static Op>>> = RefCell::default();
    /// Modules whose import says whether a file is for CUDA alone.
    static CUDA_ONLY: RefCell<FxHashMap<Sym, Option<Reach>>> = RefCell::default();
    /// Decorators' names.
    static GUARDS: RefCell<FxHashMap<Sym, Option<TestGuard>>> = RefCell::default();
}

fn known(path: Sym) -> Known {
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&path).copied()) {
        return known;
    }
    let found = Known {
        function: find_function(path),
        module: find_module(path),
        call: find_call(path),
        base: find_base_class(path),
    };
    KNOWN.with_borrow_mut(|known| known.insert(path, found));
    found
}

/// The function, class or unbound method (`torch.Tensor.add`) at a dotted path, public aliases included.
/// Modules of `torch.nn` are not functions: see [`module`].
pub fn function(path: Sym) -> Option<&'static Op> {
    known(path).function
}

/// The module class at a dotted path, `torch.nn.modules.linear.Linear` included.
pub fn module(path: Sym) -> Option<&'static ModuleOp> {
    known(path).module
}

/// What is known of calling `path`: back ends without their hardware, host conversions, wrappers, decorators.
pub fn call(path: Sym) -> Option<&'static CallFact> {
    known(path).call
}

/// The libraries that have something which is there for CUDA alone.
pub fn libraries_for_cuda() -> &'static [&'static str] {
    &FOR_CUDA
}

/// What a class is whose base is `path`.
pub fn base_class(path: Sym) -> Option<BaseFact> {
    known(path).base
}

fn find_function(path: Sym) -> Option<&'static Op> {
    if let Some(op) = OPERATORS.function(path) {
        return Some(op);
    }
    let text = path.as_str();
    text.starts_with("torch.").then_some(())?;
    if let Some(method) = text.strip_prefix("torch.Tensor.") {
        return self::method(Sym::new(method));
    }
    let path = canonical(path);
    OPERATORS.function(path).or_else(|| {
        // torch.nn.functional re-exports torch's own functions.
        let name = path.as_str().strip_prefix("torch.nn.functional.")?;
        OPERATORS.function(Sym::new(&format!("torch.{name}")))
    })
}

/// The method or attribute of `torch.Tensor` of this bare name; the receiver is position 0.
pub fn method(name: Sym) -> Option<&'static Op> {
    METHODS.with_borrow_mut(|known| *known.entry(name).or_insert_with(|| OPERATORS.method(name)))
}

fn find_module(path: Sym) -> Option<&'static ModuleOp> {
    OPERATORS
        .module(path)
        .or_else(|| path.as_str().starts_with("torch.").then(|| OPERATORS.module(canonical(path)))?)
}

/// The path under which PyTorch documents what `path` names: private homes and doubled names folded. Paths outside
/// the packages of `data/aliases.txt` are given back as they are.
pub fn canonical(path: Sym) -> Sym {
    CANONICAL.with_borrow_mut(|canonical| {
        *canonical
            .entry(path)
            .or_insert_with(|| PUBLIC.canonical(path.as_str()).map_or(path, |public| Sym::new(&public)))
    })
}

fn find_call(path: Sym) -> Option<&'static CallFact> {
    CALL_FACTS.get(path).or_else(|| {
        let public = canonical(path);
        (public != path).then(|| CALL_FACTS.get(public))?
    })
}

fn find_base_class(path: Sym) -> Option<BaseFact> {
    BASES.get(path).or_else(|| {
        let public = canonical(path);
        if let Some(base) = BASES.get(public) {
            return Some(base);
        }
        // Every class of torch.nn may be subclassed.
        find_module(public).map(|_| BaseFact {
            kind: Base::Module,
            moves_for_user: false,
            accelerators: false,
            offloads: false,
        })
    })
}

/// What a test needs that carries a decorator of this last name (`require_torch_gpu`), by convention.
pub fn test_guard(name: Sym) -> Option<TestGuard> {
    GUARDS.with_borrow_mut(|known| *known.entry(name).or_insert_with(|| MARKED.guard(name.as_str())))
}

/// Whether a file that imports this dotted path is plainly written for CUDA alone.
pub fn cuda_only_import(path: Sym) -> bool {
    cuda_only_reach(path).is_some()
}

/// Which files an import of this dotted path says to be written for CUDA alone, if any.
pub fn cuda_only_reach(path: Sym) -> Option<Reach> {
    CUDA_ONLY
        .with_borrow_mut(|known| *known.entry(path).or_insert_with(|| MARKED.cuda_only_import(path.as_str())))
}

/// The back end that importing this module brings: `torch_npu` makes `torch.npu`.
pub fn plugin(path: Sym) -> Option<crate::world::Backend> {
    MARKED.plugin(path.as_str())
}

/// What starts a group of processes (`torch.distributed`).
pub const GROUP_MAKER: &str = "init_process_group";

/// Functions of other libraries that make a group in which each process takes a GPU, by the name under which they are
/// called: without one they raise (mmcv/runner/dist_utils.py, `_init_dist_pytorch`).
pub const GPU_GROUPS: &[&str] = &["mmcv.runner.init_dist", "mmcv.runner.dist_utils.init_dist"];

/// How such functions are called.
pub const GPU_GROUP_MAKER: &str = "init_dist";

/// Is it the name of NCCL's back end? PyTorch takes it in any case (torch/distributed/distributed_c10d.py, `Backend.__new__`).
pub fn is_nccl(name: &str) -> bool {
    name.eq_ignore_ascii_case("nccl")
}

/// Does a group with these back ends have one of NCCL? `"nccl"`, or a list of them by the type of device: `"cpu:gloo,cuda:nccl"`.
pub fn starts_nccl(names: &str) -> bool {
    names.split(',').any(|name| is_nccl(name.rsplit(':').next().unwrap_or(name)))
}

/// Does the state of the class's objects hold no tensors?
pub fn is_tensorless(class: Sym) -> bool {
    MARKED.tensorless(class.as_str())
}

#[cfg(test)]
mod tests;
