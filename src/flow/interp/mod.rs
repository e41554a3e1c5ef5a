//! The interpreter: its state, and the helpers that everything else here is written with.
//!
//! One [`Interp`] works through one file at a time: the module's body, then every function for itself, with
//! outside things for parameters. Calls into the project are interpreted with the caller's values. Budgets
//! bound every dimension; past one, the answer is "unknown" and nothing more is said.

mod accelerate;
mod accelerator;
mod addresses;
mod allocation;
mod apart;
mod args;
mod arrays;
mod asked_for;
mod autocast;
mod batches;
mod between;
mod bound;
mod budget;
mod buffers;
mod builtin;
mod by_name;
mod call;
mod callers;
mod captured;
mod class;
mod compare;
mod composed;
mod cond;
mod container;
mod convention;
mod costs;
mod created;
mod current_gpu;
mod decorators;
mod defaults;
mod defined;
mod device;
mod device_types;
mod dims;
mod distributions;
mod double;
mod drawn;
mod driver;
mod each_replaced;
mod entry;
mod evaluated_outside;
mod evaluation;
mod event;
mod expr;
mod external;
mod fake;
mod file_parts;
mod files;
mod fixtures;
mod frame;
mod frequency;
mod gathered;
mod given_makers;
mod gradients;
mod graphless;
mod groups;
mod guard;
mod handing;
mod handlers;
mod held_tensors;
mod hooks;
mod indexing;
mod indexless;
mod instance;
mod into_weights;
mod iteration;
mod join;
mod keepers;
mod kept;
mod keys;
mod lacking;
mod late_layers;
mod late_tensors;
mod left_open;
mod loading;
mod loops;
mod made;
mod managers;
mod meet;
mod method;
mod misplaced;
mod mode;
mod module;
mod module_call;
mod moved_again;
mod moved_empty;
mod moved_later;
mod moving;
mod names;
mod operation;
mod optimizer_state;
mod outside;
mod outside_modules;
mod own;
mod own_collections;
mod own_optimizer;
mod parts;
mod passing;
mod platform;
mod possible;
mod precision;
mod process;
mod ranks;
mod read_back;
mod recalled;
mod records;
mod remade;
mod replaced;
mod returned;
mod reveal;
mod rounds;
mod saved;
mod setting;
mod settled;
mod shown;
mod shuffling;
mod silenced;
mod spelling;
mod stmt;
mod summary;
mod tables;
mod taken_out;
mod templates;
mod tensor;
mod texts;
mod timing;
mod tokens;
mod torch_fn;
mod torch_module;
mod traced;
mod training;
mod transfer;
mod transfers;
mod truths;
mod two_kinds;
mod watch;
mod weightless;
mod with;
mod workers;
mod wrapped;

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use budget::Budget;
pub use entry::{Exhausted, Outcome, run_module};
use frame::{Frame, LoopFrame, ObjKind, Object, TryFrame};
pub(super) use handlers::catches_missing_device;

use super::atom::{AtomId, Atoms};
use super::diagram::{Cond, Dd, Diagrams, FALSE, Literal, TRUE};
use super::dims::Dims;
use super::event::Event;
use super::relevance::Relevance;
use super::store::{Cell, Changes, Mark, Store};
use super::value::{
    Closure, Device, FrameId, Host, NO_ORIGIN, ObjId, Origin, OriginId, Outer, OuterId, OuterKey, Reason,
    Role, Tables, Tensor, Value,
};
use crate::ir::{ClassId, ExprId, FuncId};
use crate::link::{ClassKey, Linked, ModIdx, Program};
use crate::span::Place;
use crate::sym::Sym;

/// Expressions and statements interpreted for one entry point before giving up.
const MAX_STEPS: u32 = 20_000;
/// The same for a function with symbols for parameters: what matters in it comes early, or in what it calls, which
/// is an entry point of its own.
const SYMBOLIC_STEPS: u32 = 2_000;
/// Steps that one call may take in such a function. A callee that needs more is not entered again.
const CALL_STEPS: u32 = 600;
/// The same in what a script calls: a library's loader may go on for ever.
const SCRIPT_CALL_STEPS: u32 = 3_000;
/// A callee with more calls in it, and in what it calls, would take more steps than that.
const MANY_CALLS: u32 = 150;
/// One with fewer is interpreted whatever it does.
const FEW_CALLS: u32 = 6;
/// The same where they are given a tensor.
const SHORT_CALLS: u32 = 16;
/// Deepest chain of interpreted calls.
const MAX_DEPTH: u32 = 16;
/// Longest sequence whose elements are told apart.
const MAX_ELEMENTS: usize = 48;

/// A truth test whose outcome is not known, by what makes it the same test.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Test {
    Truth(Value),
    Compare(u8, Value, Value),
    Expr(ModIdx, ExprId, FrameId, u32),
}

/// The interpreter.
pub struct Interp<'p> {
    program: &'p Program,
    relevance: &'p Relevance,
    d: Diagrams,
    atoms: Atoms,
    t: Tables,
    store: Store,
    objects: Vec<Object>,
    frames: Vec<Frame>,
    /// The activation that is being interpreted.
    frame: FrameId,
    /// When this point is reached.
    path: Cond,
    /// Counts passes of loops, so that one expression's results differ from pass to pass.
    pass: u32,
    budget: Budget,
    /// Modules with a hook that may move them, their inputs or their outputs at every call.
    hooked: FxHashSet<ObjId>,
    /// Methods that return tuples or dicts.
    several: FxHashMap<(ModIdx, FuncId), bool>,
    /// What functions give that are not followed.
    summaries: FxHashMap<(ModIdx, FuncId), summary::Gives>,
    /// Callees that took more steps than a call may.
    heavy: FxHashSet<(ModIdx, FuncId)>,
    /// The same, with less than that left: only the entry point that is interpreted does without them.
    heavy_here: FxHashSet<(ModIdx, FuncId)>,
    /// The last call took more steps than it had.
    gave_up: bool,
    depth: u32,
    exhausted: bool,
    /// Is the first GPU the current one all the time, as far as that was asked?
    first_gpu: Option<bool>,
    /// Counts uses of devices that are there, for handlers around them.
    work: u32,
    /// What decides about the device whose use is being looked at.
    deciders: Vec<AtomId>,
    /// Chances by which alternatives are told apart that are looked at one by one just now.
    split: Vec<AtomId>,
    /// What holds where the alternatives are that are looked at one by one just now, be there room for it in the path or not.
    taken: Vec<Literal>,
    /// Classes of modules of which it has been asked whether they have weights.
    weighty: RefCell<FxHashMap<ClassKey, bool>>,
    /// While positive, nothing is reported.
    muted: u32,
    /// While positive, what runs is to raise some error.
    awaiting: u32,
    /// The device of factories without `device=`; a cell, so that branches join it.
    default_device: Cell,
    /// The device of the default tensor type, which `torch.Tensor` follows alone; a cell, too.
    default_type: Cell,
    tests: FxHashMap<Test, AtomId>,
    /// Those of the tests that ask whether something from outside is `None`.
    left_out: FxHashSet<AtomId>,
    /// `hasattr(torch, "npu")` and the like.
    plugin_atoms: FxHashMap<crate::world::Backend, AtomId>,
    /// Which files are plainly written for CUDA alone, as far as that was asked.
    cuda_only: FxHashMap<ModIdx, bool>,
    /// Module-level variables: the first cell of each file that has been looked at.
    globals: FxHashMap<ModIdx, Cell>,
    /// Attributes of classes that are set, or that hold lists and dicts.
    class_cells: FxHashMap<(ClassKey, Sym), Cell>,
    /// Module-level variables that are being evaluated or have been.
    evaluated: FxHashSet<(ModIdx, u16)>,
    /// Which files import a clock.
    clocks: FxHashMap<ModIdx, bool>,
    /// When a `def` is reached, by file and function.
    def_paths: FxHashMap<(ModIdx, FuncId), Cond>,
    /// Outside things that are seen to be tensors.
    tensor_proofs: FxHashSet<OuterId>,
    /// Whose own methods gave a result: `x.reshape(-1)` lives where `x` does, and is a tensor if that is one.
    own_results: FxHashMap<OriginId, OuterId>,
    /// Those of them that arithmetic with a number gave.
    own_numbers: FxHashSet<OriginId>,
    /// Outside things that have been asked for their length.
    sized: FxHashSet<OuterId>,
    /// Values of which each is in a list, by what stands for all of them.
    side_by_side: FxHashMap<Value, Vec<Value>>,
    /// When outside things are known to be no tensors.
    no_tensors: FxHashMap<OuterId, Cond>,
    /// Where these hold the outside things are numbers.
    numbers: FxHashMap<OuterId, Cond>,
    /// When outside things have been asked to be of a class that no tensor has.
    other_kinds: FxHashMap<OuterId, Cond>,
    /// "This is a tensor", asked of something of which nobody here knows what it is, and which is not whatever a caller
    /// gives.
    tensor_or_not: FxHashSet<AtomId>,
    /// Outside things that are used as sizes.
    size_proofs: FxHashSet<OuterId>,
    /// What is asked of an outside thing.
    questions: FxHashMap<AtomId, (OuterId, Test)>,
    /// What was assigned to attributes and items of outside things.
    outer_writes: FxHashMap<OuterId, Cell>,
    /// What `.to()` has made of outside things, which moves those in place that are modules.
    outer_moves: FxHashMap<OuterId, Cell>,
    events: Vec<Pending>,
    /// `torch.load` calls, by their result, that become events when it turns out to be weights.
    loads: FxHashMap<OuterId, Pending>,
    /// Files that have been written with `torch.save`, and when.
    saved: FxHashMap<Sym, Cond>,
    /// Context managers that have been entered and not left.
    suspended: Vec<managers::Suspended>,
    /// The file whose functions are the entry points.
    entry: ModIdx,
    /// The class of which the constructor is interpreted for itself.
    constructed: Option<ClassId>,
    /// What has a lower number was made before the entry point began.
    made_before: usize,
    speculative: bool,
    asked_before: bool,
    symbolic: bool,
    /// Functions of the entry's file that its own body has called.
    interpreted: FxHashSet<FuncId>,
    /// What defaults of parameters were where a loop has come to the function.
    captured: FxHashMap<(ModIdx, FuncId, Sym), Value>,
    /// Functions whose wrappers are being interpreted, innermost last.
    wrapped: Vec<wrapped::Wrapped>,
    /// Is something that a decorator is given set again further down?
    set_again: FxHashMap<(ModIdx, ExprId), bool>,
    /// The modules whose parts, or what is in place of their `forward`, are being called.
    within: Vec<ObjId>,
    /// When a function is reached through the project's own decorators.
    wrappers: FxHashMap<(ModIdx, FuncId), Cond>,
    /// When the function was called that a decorator was given.
    probed: Cond,
    /// While positive, modules are made without running their constructors.
    shallow: u32,
    /// What those would have been given.
    unbuilt: FxHashMap<ObjId, args::Args>,
    /// When values have been asked to be of a class of another library.
    foreign_kinds: FxHashMap<Value, Cond>,
    /// Files of which all names are known that their code may read.
    closed: FxHashMap<ModIdx, bool>,
    /// The file's body ends before its end.
    broken: bool,
    /// When functions are handed to something that calls them.
    handed: FxHashMap<(ModIdx, FuncId), Cond>,
    /// What the calls in sight say of the functions they call.
    callers: callers::Callers,
    /// The expression whose value nobody looks at, with its activation.
    unused: Option<(FrameId, ExprId)>,
    /// Where the body of a `try` leads past it, by the atom of its handler.
    unraised: FxHashMap<AtomId, Cond>,
    /// The call that is tried out, if that is all that is interpreted.
    trial: Option<recalled::Trial>,
    /// Facts about objects that are no part of the state.
    watch: watch::Watch,
    known: Known,
}

/// An event that holds if these outside things are tensors.
struct Pending {
    event: Event,
    needs: Vec<OuterId>,
    /// The outside things on which its devices depend.
    about: Vec<OuterId>,
    /// The function that is interpreted for itself.
    function: Option<FuncId>,
}

/// Symbols that are asked for all the time.
struct Known {
    forward: Sym,
    builtins: Sym,
    init: Sym,
    device: Sym,
    training: Sym,
    /// Methods by which things move.
    device_count: OuterId,
}

impl<'p> Interp<'p> {
    fn new(program: &'p Program, relevance: &'p Relevance, entry: ModIdx) -> Self {
        let mut t = Tables::default();
        let nowhere = Place { file: crate::span::FileId(0), span: crate::span::Span::default() };
        t.origins.add(Origin { place: nowhere, reason: Reason::None, from: NO_ORIGIN });
        let key = OuterKey::External(Sym::new("torch.cuda.device_count()"));
        let device_count = t.outer(key.clone(), || Outer {
            key,
            text: "torch.cuda.device_count()".into(),
            tensor: false,
            device: false,
            varies: false,
            with: None,
            default: None,
        });
        let mut store = Store::default();
        let default_device = store.alloc(1);
        // Nobody has set one.
        store.set(default_device, Value::None);
        let default_type = store.alloc(1);
        store.set(default_type, Value::None);
        let watch = watch::Watch::new(Self::process_cells(&mut store));
        let known = Known {
            forward: Sym::new("forward"),
            builtins: Sym::new("builtins"),
            init: Sym::new("__init__"),
            device: Sym::new("device"),
            training: Sym::new("training"),
            device_count,
        };
        Self {
            program,
            relevance,
            d: Diagrams::default(),
            atoms: Atoms::default(),
            t,
            store,
            objects: Vec::new(),
            frames: Vec::new(),
            frame: FrameId(0),
            path: TRUE,
            pass: 0,
            budget: Budget::of(MAX_STEPS),
            hooked: FxHashSet::default(),
            several: FxHashMap::default(),
            summaries: FxHashMap::default(),
            heavy: FxHashSet::default(),
            heavy_here: FxHashSet::default(),
            gave_up: false,
            depth: 0,
            exhausted: false,
            work: 0,
            deciders: Vec::new(),
            split: Vec::new(),
            taken: Vec::new(),
            weighty: RefCell::default(),
            muted: 0,
            awaiting: 0,
            default_device,
            default_type,
            first_gpu: None,
            tests: FxHashMap::default(),
            left_out: FxHashSet::default(),
            plugin_atoms: FxHashMap::default(),
            cuda_only: FxHashMap::default(),
            globals: FxHashMap::default(),
            class_cells: FxHashMap::default(),
            evaluated: FxHashSet::default(),
            clocks: FxHashMap::default(),
            def_paths: FxHashMap::default(),
            tensor_proofs: FxHashSet::default(),
            own_results: FxHashMap::default(),
            own_numbers: FxHashSet::default(),
            sized: FxHashSet::default(),
            side_by_side: FxHashMap::default(),
            no_tensors: FxHashMap::default(),
            numbers: FxHashMap::default(),
            other_kinds: FxHashMap::default(),
            tensor_or_not: FxHashSet::default(),
            size_proofs: FxHashSet::default(),
            questions: FxHashMap::default(),
            outer_writes: FxHashMap::default(),
            outer_moves: FxHashMap::default(),
            events: Vec::new(),
            loads: FxHashMap::default(),
            saved: FxHashMap::default(),
            suspended: Vec::new(),
            entry,
            constructed: None,
            made_before: 0,
            speculative: false,
            asked_before: false,
            symbolic: false,
            interpreted: FxHashSet::default(),
            captured: FxHashMap::default(),
            wrapped: Vec::new(),
            set_again: FxHashMap::default(),
            within: Vec::new(),
            wrappers: FxHashMap::default(),
            probed: FALSE,
            shallow: 0,
            unbuilt: FxHashMap::default(),
            foreign_kinds: FxHashMap::default(),
            closed: FxHashMap::default(),
            broken: false,
            handed: FxHashMap::default(),
            callers: callers::Callers::default(),
            unused: None,
            unraised: FxHashMap::default(),
            trial: None,
            watch,
            known,
        }
    }

    fn linked(&self) -> &'p Linked {
        self.program.get(self.here().module)
    }

    fn here(&self) -> &Frame {
        &self.frames[self.frame.0 as usize]
    }

    fn here_mut(&mut self) -> &mut Frame {
        &mut self.frames[self.frame.0 as usize]
    }

    /// The test has this outcome from now on.
    fn note_test(&mut self, test: Test, atom: AtomId) {
        if matches!(test, Test::Compare(0, Value::Outer(_), Value::None)) {
            self.left_out.insert(atom);
        }
        self.tests.insert(test, atom);
    }

    /// The place of an expression of the function that is being interpreted.
    fn place(&self, expr: ExprId) -> Place {
        let ir = &self.linked().ir;
        Place { file: ir.file, span: ir.span(expr) }
    }

    fn live(&self) -> bool {
        self.path != FALSE && !self.exhausted
    }

    /// Counts a step; past the budget everything ends quickly.
    fn step(&mut self) -> bool {
        self.budget.step();
        self.budget.take(self.d.taken());
        self.exhausted |= self.budget.is_spent();
        !self.exhausted
    }

    fn origin(&mut self, place: Place, reason: Reason, from: OriginId) -> OriginId {
        // Chains stay short: what was decided first, and the last steps.
        let mut depth = 0;
        let mut at = from;
        while at != NO_ORIGIN {
            depth += 1;
            at = self.t.origins.get(at.0).from;
        }
        let from = if depth > 4 { self.t.origins.get(from.0).from } else { from };
        OriginId(self.t.origins.add(Origin { place, reason, from }))
    }

    /// A device that is the same in every world.
    fn at(&mut self, device: Device, origin: OriginId) -> Dd {
        let payload = self.t.places.add((device, origin));
        self.d.leaf(payload)
    }

    fn unknown_device(&mut self) -> Dd {
        self.at(Device::Unknown, NO_ORIGIN)
    }

    fn plain_tensor(&mut self, device: Dd, dims: Dims) -> Value {
        self.tensor(Tensor { device, dims, role: Role::Plain, certain: true, bytes: None, double: FALSE })
    }

    /// Something on this device that may be a tensor, a collection of them or a module: nothing else is known of it.
    fn possible_tensor(&mut self, device: Dd) -> Value {
        let (dims, role) = (Dims::ANY, Role::Plain);
        self.tensor(Tensor { device, dims, role, certain: false, bytes: None, double: FALSE })
    }

    fn tensor(&mut self, tensor: Tensor) -> Value {
        Value::Tensor(super::value::TensorId(self.t.tensors.add(tensor)))
    }

    fn get_tensor(&self, id: super::value::TensorId) -> Tensor {
        *self.t.tensors.get(id.0)
    }

    fn seq(&mut self, items: &[Value]) -> Value {
        if items.len() > MAX_ELEMENTS {
            return self.many_of(items);
        }
        Value::Seq(self.t.seq(items))
    }

    fn many(&mut self, item: Value) -> Value {
        Value::Many(self.t.values.add(item))
    }

    /// Any number of values like these.
    fn many_of(&mut self, items: &[Value]) -> Value {
        let mut joined = Value::Absent;
        for &v in items.iter().take(MAX_ELEMENTS) {
            joined = self.blend(joined, v);
        }
        self.many(joined)
    }

    fn seq_items(&self, id: super::value::SeqId) -> Box<[Value]> {
        self.t.seqs.get(id.0).clone()
    }

    fn object(&mut self, kind: ObjKind, class: Option<ClassKey>, own: Value) -> ObjId {
        let cell = self.store.alloc(1);
        self.store.set(cell, own);
        self.objects.push(Object {
            kind,
            class,
            own: cell,
            attrs: Vec::new(),
            reserved: Vec::new(),
            outer: None,
        });
        ObjId(u32::try_from(self.objects.len() - 1).unwrap_or(u32::MAX))
    }

    fn obj(&self, id: ObjId) -> &Object {
        &self.objects[id.0 as usize]
    }

    fn own(&self, id: ObjId) -> Value {
        self.store.get(self.obj(id).own)
    }

    fn set_own(&mut self, id: ObjId, value: Value) {
        let cell = self.obj(id).own;
        self.keys_change(id);
        self.store.set(cell, value);
    }

    fn list(&mut self, items: &[Value]) -> Value {
        let content = self.seq(items);
        Value::Object(self.object(ObjKind::List { module: false }, None, content))
    }

    /// A list, and no set.
    fn true_list(&mut self, content: Value) -> Value {
        let id = self.object(ObjKind::List { module: false }, None, content);
        self.watch.true_lists.insert(id);
        Value::Object(id)
    }

    fn get_field(&self, id: ObjId, name: Sym) -> Value {
        self.obj(id)
            .attrs
            .iter()
            .find(|(n, _)| *n == name)
            .map_or(Value::Absent, |&(_, cell)| self.store.get(cell))
    }

    fn set_field(&mut self, id: ObjId, name: Sym, value: Value) {
        let cell = match self.obj(id).attrs.iter().find(|(n, _)| *n == name) {
            Some(&(_, cell)) => cell,
            None => {
                let cell = self.store.alloc(1);
                self.objects[id.0 as usize].attrs.push((name, cell));
                cell
            }
        };
        self.store.set(cell, value);
    }

    /// The result of something that is not known, with an identity of its own.
    fn result_of(&mut self, expr: ExprId) -> Value {
        self.result_called(expr, |i| i.callee_text(expr))
    }

    /// The same under another text than the callee's name.
    fn result_called(&mut self, expr: ExprId, text: impl FnOnce(&Self) -> String) -> Value {
        let key = OuterKey::Result { module: self.here().module, expr, frame: self.frame, pass: self.pass };
        if let Some(&id) = self.t.outer_ids.get(&key) {
            return Value::Outer(id);
        }
        let text = text(self);
        let id = self.t.outer(key.clone(), || Outer {
            key,
            text,
            tensor: false,
            device: false,
            varies: false,
            with: None,
            default: None,
        });
        Value::Outer(id)
    }

    /// `is_available()`, for the result of a call by name, or of an attribute: what the name says may matter as a flag.
    fn callee_text(&self, expr: ExprId) -> String {
        let ir = &self.linked().ir;
        match ir.expr(expr) {
            crate::ir::Expr::Call(id) => {
                ir.last_name(ir.call(id).func).map_or_else(String::new, |name| [name.as_str(), "()"].concat())
            }
            crate::ir::Expr::Attr { name, .. } => ["….", name.as_str()].concat(),
            _ => String::new(),
        }
    }

    fn closure(&mut self, module: ModIdx, func: FuncId, frame: Option<FrameId>) -> Value {
        Value::Closure(super::value::ClosureId(self.t.closures.add(Closure { module, func, frame })))
    }

    const NUMBER: Value = Value::Host(Host::Number);
    const TEXT: Value = Value::Host(Host::Text);
    const ARRAY: Value = Value::Host(Host::Array);
    const DOUBLES: Value = Value::Host(Host::Doubles);
    const NUMBERS: Value = Value::Host(Host::Numbers);
}
