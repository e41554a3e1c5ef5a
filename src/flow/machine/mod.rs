//! The interpreter: its state, and the helpers that everything else here is written with.
//!
//! One [`Interp`] works through one file at a time: the module's body, then every function for itself, with
//! outside things for parameters. Calls into the project are interpreted with the caller's values. Budgets
//! bound every dimension; past one, the answer is "unknown" and nothing more is said.

pub(crate) mod budget;
pub(crate) mod calls;
pub(crate) mod compare;
pub(crate) mod cond;
pub(crate) mod definitions;
pub(crate) mod entry;
pub(crate) mod expr;
pub(crate) mod frame;
pub(crate) mod handlers;
pub(crate) mod import_calls;
pub(crate) mod join;
pub(crate) mod loops;
pub(crate) mod stmt;
pub(crate) mod unbound_locals;
pub(crate) mod undefined_names;
pub(crate) mod with;

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use self::budget::Budget;
pub use self::entry::{Exhausted, Outcome, run_module};
use self::frame::{Frame, ObjKind, Object};
pub(crate) use self::handlers::catches_missing_device;

use super::domain::atom::{AtomId, Atoms};
use super::domain::diagram::{Cond, Dd, Diagrams, FALSE, Literal, TRUE};
use super::domain::dims::Dims;
use super::domain::event::Event;
use super::domain::store::{Cell, Store};
use super::domain::value::{
    Closure, Device, FrameId, Host, NO_ORIGIN, ObjId, Origin, OriginId, Outer, OuterId, OuterKey, Reason,
    Role, Tables, Tensor, Value,
};
use super::query::relevance::Relevance;
use crate::ir::{ClassId, ExprId, FuncId};
use crate::link::{ClassKey, Linked, ModIdx, Program};
use crate::span::Place;
use crate::sym::Sym;

/// Expressions and statements interpreted for one entry point before giving up.
pub(crate) const MAX_STEPS: u32 = 20_000;
/// The same for a function with symbols for parameters: what matters in it comes early, or in what it calls, which
/// is an entry point of its own.
pub(crate) const SYMBOLIC_STEPS: u32 = 2_000;
/// Steps that one call may take in such a function. A callee that needs more is not entered again.
pub(crate) const CALL_STEPS: u32 = 600;
/// The same in what a script calls: a library's loader may go on for ever.
pub(crate) const SCRIPT_CALL_STEPS: u32 = 3_000;
/// A callee with more calls in it, and in what it calls, would take more steps than that.
pub(crate) const MANY_CALLS: u32 = 150;
/// One with fewer is interpreted whatever it does.
pub(crate) const FEW_CALLS: u32 = 6;
/// The same where they are given a tensor.
pub(crate) const SHORT_CALLS: u32 = 16;
/// Deepest chain of interpreted calls.
pub(crate) const MAX_DEPTH: u32 = 16;
/// Longest sequence whose elements are told apart.
pub(crate) const MAX_ELEMENTS: usize = 48;

/// A truth test whose outcome is not known, by what makes it the same test.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Test {
    Truth(Value),
    Compare(u8, Value, Value),
    Expr(ModIdx, ExprId, FrameId, u32),
}

/// The interpreter.
pub struct Interp<'p> {
    pub(crate) program: &'p Program,
    pub(crate) relevance: &'p Relevance,
    pub(crate) d: Diagrams,
    pub(crate) atoms: Atoms,
    pub(crate) t: Tables,
    pub(crate) store: Store,
    pub(crate) objects: Vec<Object>,
    pub(crate) frames: Vec<Frame>,
    /// The activation that is being interpreted.
    pub(crate) frame: FrameId,
    /// When this point is reached.
    pub(crate) path: Cond,
    /// Counts passes of loops, so that one expression's results differ from pass to pass.
    pub(crate) pass: u32,
    pub(crate) budget: Budget,
    /// Modules with a hook that may move them, their inputs or their outputs at every call.
    pub(crate) hooked: FxHashSet<ObjId>,
    /// Methods that return tuples or dicts.
    pub(crate) several: FxHashMap<(ModIdx, FuncId), bool>,
    /// What functions give that are not followed.
    pub(crate) summaries: FxHashMap<(ModIdx, FuncId), super::summary::returns::Gives>,
    /// Callees that took more steps than a call may.
    pub(crate) heavy: FxHashSet<(ModIdx, FuncId)>,
    /// The same, with less than that left: only the entry point that is interpreted does without them.
    pub(crate) heavy_here: FxHashSet<(ModIdx, FuncId)>,
    /// The last call took more steps than it had.
    pub(crate) gave_up: bool,
    pub(crate) depth: u32,
    pub(crate) exhausted: bool,
    /// Is the first GPU the current one all the time, as far as that was asked?
    pub(crate) first_gpu: Option<bool>,
    /// Counts uses of devices that are there, for handlers around them.
    pub(crate) work: u32,
    /// What decides about the device whose use is being looked at.
    pub(crate) deciders: Vec<AtomId>,
    /// Chances by which alternatives are told apart that are looked at one by one just now.
    pub(crate) split: Vec<AtomId>,
    /// What holds where the alternatives are that are looked at one by one just now, be there room for it in the path or not.
    pub(crate) taken: Vec<Literal>,
    /// Classes of modules of which it has been asked whether they have weights.
    pub(crate) weighty: RefCell<FxHashMap<ClassKey, bool>>,
    /// While positive, nothing is reported.
    pub(crate) muted: u32,
    /// While positive, what runs is to raise some error.
    pub(crate) awaiting: u32,
    /// The device of factories without `device=`; a cell, so that branches join it.
    pub(crate) default_device: Cell,
    /// The device of the default tensor type, which `torch.Tensor` follows alone; a cell, too.
    pub(crate) default_type: Cell,
    pub(crate) tests: FxHashMap<Test, AtomId>,
    /// Those of the tests that ask whether something from outside is `None`.
    pub(crate) left_out: FxHashSet<AtomId>,
    /// `hasattr(torch, "npu")` and the like.
    pub(crate) plugin_atoms: FxHashMap<crate::world::Backend, AtomId>,
    /// Which files are plainly written for CUDA alone, as far as that was asked.
    pub(crate) cuda_only: FxHashMap<ModIdx, bool>,
    /// Module-level variables: the first cell of each file that has been looked at.
    pub(crate) globals: FxHashMap<ModIdx, Cell>,
    /// Attributes of classes that are set, or that hold lists and dicts.
    pub(crate) class_cells: FxHashMap<(ClassKey, Sym), Cell>,
    /// Module-level variables that are being evaluated or have been.
    pub(crate) evaluated: FxHashSet<(ModIdx, u16)>,
    /// Which files import a clock.
    pub(crate) clocks: FxHashMap<ModIdx, bool>,
    /// When a `def` is reached, by file and function.
    pub(crate) def_paths: FxHashMap<(ModIdx, FuncId), Cond>,
    /// Outside things that are seen to be tensors.
    pub(crate) tensor_proofs: FxHashSet<OuterId>,
    /// Whose own methods gave a result: `x.reshape(-1)` lives where `x` does, and is a tensor if that is one.
    pub(crate) own_results: FxHashMap<OriginId, OuterId>,
    /// Those of them that arithmetic with a number gave.
    pub(crate) own_numbers: FxHashSet<OriginId>,
    /// Outside things that have been asked for their length.
    pub(crate) sized: FxHashSet<OuterId>,
    /// Values of which each is in a list, by what stands for all of them.
    pub(crate) side_by_side: FxHashMap<Value, Vec<Value>>,
    /// When outside things are known to be no tensors.
    pub(crate) no_tensors: FxHashMap<OuterId, Cond>,
    /// Where these hold the outside things are numbers.
    pub(crate) numbers: FxHashMap<OuterId, Cond>,
    /// When outside things have been asked to be of a class that no tensor has.
    pub(crate) other_kinds: FxHashMap<OuterId, Cond>,
    /// "This is a tensor", asked of something of which nobody here knows what it is, and which is not whatever a caller
    /// gives.
    pub(crate) tensor_or_not: FxHashSet<AtomId>,
    /// Outside things that are used as sizes.
    pub(crate) size_proofs: FxHashSet<OuterId>,
    /// What is asked of an outside thing.
    pub(crate) questions: FxHashMap<AtomId, (OuterId, Test)>,
    /// What was assigned to attributes and items of outside things.
    pub(crate) outer_writes: FxHashMap<OuterId, Cell>,
    /// What `.to()` has made of outside things, which moves those in place that are modules.
    pub(crate) outer_moves: FxHashMap<OuterId, Cell>,
    pub(crate) events: Vec<Pending>,
    /// `torch.load` calls, by their result, that become events when it turns out to be weights.
    pub(crate) loads: FxHashMap<OuterId, Pending>,
    /// Files that have been written with `torch.save`, and when.
    pub(crate) saved: FxHashMap<Sym, Cond>,
    /// Context managers that have been entered and not left.
    pub(crate) suspended: Vec<self::calls::generator_managers::Suspended>,
    /// The file whose functions are the entry points.
    pub(crate) entry: ModIdx,
    /// The class of which the constructor is interpreted for itself.
    pub(crate) constructed: Option<ClassId>,
    /// What has a lower number was made before the entry point began.
    pub(crate) made_before: usize,
    pub(crate) speculative: bool,
    pub(crate) asked_before: bool,
    pub(crate) symbolic: bool,
    /// Functions of the entry's file that its own body has called.
    pub(crate) interpreted: FxHashSet<FuncId>,
    /// What defaults of parameters were where a loop has come to the function.
    pub(crate) captured: FxHashMap<(ModIdx, FuncId, Sym), Value>,
    /// Functions whose wrappers are being interpreted, innermost last.
    pub(crate) wrapped: Vec<self::calls::wrappers::Wrapped>,
    /// Is something that a decorator is given set again further down?
    pub(crate) set_again: FxHashMap<(ModIdx, ExprId), bool>,
    /// The modules whose parts, or what is in place of their `forward`, are being called.
    pub(crate) within: Vec<ObjId>,
    /// When a function is reached through the project's own decorators.
    pub(crate) wrappers: FxHashMap<(ModIdx, FuncId), Cond>,
    /// When the function was called that a decorator was given.
    pub(crate) probed: Cond,
    /// While positive, modules are made without running their constructors.
    pub(crate) shallow: u32,
    /// What those would have been given.
    pub(crate) unbuilt: FxHashMap<ObjId, self::calls::args::Args>,
    /// When values have been asked to be of a class of another library.
    pub(crate) foreign_kinds: FxHashMap<Value, Cond>,
    /// Files of which all names are known that their code may read.
    pub(crate) closed: FxHashMap<ModIdx, bool>,
    /// The file's body ends before its end.
    pub(crate) broken: bool,
    /// When functions are handed to something that calls them.
    pub(crate) handed: FxHashMap<(ModIdx, FuncId), Cond>,
    /// What the calls in sight say of the functions they call.
    pub(crate) callers: self::calls::visible_callers::Callers,
    /// The expression whose value nobody looks at, with its activation.
    pub(crate) unused: Option<(FrameId, ExprId)>,
    /// Where the body of a `try` leads past it, by the atom of its handler.
    pub(crate) unraised: FxHashMap<AtomId, Cond>,
    /// The call that is tried out, if that is all that is interpreted.
    pub(crate) trial: Option<self::import_calls::Trial>,
    /// Facts about objects that are no part of the state.
    pub(crate) watch: super::observers::watch::Watch,
    pub(crate) known: Known,
}

/// An event that holds if these outside things are tensors.
pub(crate) struct Pending {
    pub(crate) event: Event,
    pub(crate) needs: Vec<OuterId>,
    /// The outside things on which its devices depend.
    pub(crate) about: Vec<OuterId>,
    /// The function that is interpreted for itself.
    pub(crate) function: Option<FuncId>,
}

/// Symbols that are asked for all the time.
pub(crate) struct Known {
    pub(crate) forward: Sym,
    pub(crate) builtins: Sym,
    pub(crate) init: Sym,
    pub(crate) device: Sym,
    pub(crate) training: Sym,
    /// Methods by which things move.
    pub(crate) device_count: OuterId,
}

impl<'p> Interp<'p> {
    pub(crate) fn new(program: &'p Program, relevance: &'p Relevance, entry: ModIdx) -> Self {
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
        let watch = super::observers::watch::Watch::new(Self::process_cells(&mut store));
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
            callers: self::calls::visible_callers::Callers::default(),
            unused: None,
            unraised: FxHashMap::default(),
            trial: None,
            watch,
            known,
        }
    }

    pub(crate) fn linked(&self) -> &'p Linked {
        self.program.get(self.here().module)
    }

    pub(crate) fn here(&self) -> &Frame {
        &self.frames[self.frame.0 as usize]
    }

    pub(crate) fn here_mut(&mut self) -> &mut Frame {
        &mut self.frames[self.frame.0 as usize]
    }

    /// The test has this outcome from now on.
    pub(crate) fn note_test(&mut self, test: Test, atom: AtomId) {
        if matches!(test, Test::Compare(0, Value::Outer(_), Value::None)) {
            self.left_out.insert(atom);
        }
        self.tests.insert(test, atom);
    }

    /// The place of an expression of the function that is being interpreted.
    pub(crate) fn place(&self, expr: ExprId) -> Place {
        let ir = &self.linked().ir;
        Place { file: ir.file, span: ir.span(expr) }
    }

    pub(crate) fn live(&self) -> bool {
        self.path != FALSE && !self.exhausted
    }

    /// Counts a step; past the budget everything ends quickly.
    pub(crate) fn step(&mut self) -> bool {
        self.budget.step();
        self.budget.take(self.d.taken());
        self.exhausted |= self.budget.is_spent();
        !self.exhausted
    }

    pub(crate) fn origin(&mut self, place: Place, reason: Reason, from: OriginId) -> OriginId {
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
    pub(crate) fn at(&mut self, device: Device, origin: OriginId) -> Dd {
        let payload = self.t.places.add((device, origin));
        self.d.leaf(payload)
    }

    pub(crate) fn unknown_device(&mut self) -> Dd {
        self.at(Device::Unknown, NO_ORIGIN)
    }

    pub(crate) fn plain_tensor(&mut self, device: Dd, dims: Dims) -> Value {
        self.tensor(Tensor { device, dims, role: Role::Plain, certain: true, bytes: None, double: FALSE })
    }

    /// Something on this device that may be a tensor, a collection of them or a module: nothing else is known of it.
    pub(crate) fn possible_tensor(&mut self, device: Dd) -> Value {
        let (dims, role) = (Dims::ANY, Role::Plain);
        self.tensor(Tensor { device, dims, role, certain: false, bytes: None, double: FALSE })
    }

    pub(crate) fn tensor(&mut self, tensor: Tensor) -> Value {
        Value::Tensor(super::domain::value::TensorId(self.t.tensors.add(tensor)))
    }

    pub(crate) fn get_tensor(&self, id: super::domain::value::TensorId) -> Tensor {
        *self.t.tensors.get(id.0)
    }

    pub(crate) fn seq(&mut self, items: &[Value]) -> Value {
        if items.len() > MAX_ELEMENTS {
            return self.many_of(items);
        }
        Value::Seq(self.t.seq(items))
    }

    pub(crate) fn many(&mut self, item: Value) -> Value {
        Value::Many(self.t.values.add(item))
    }

    /// Any number of values like these.
    pub(crate) fn many_of(&mut self, items: &[Value]) -> Value {
        let mut joined = Value::Absent;
        for &v in items.iter().take(MAX_ELEMENTS) {
            joined = self.blend(joined, v);
        }
        self.many(joined)
    }

    pub(crate) fn seq_items(&self, id: super::domain::value::SeqId) -> Box<[Value]> {
        self.t.seqs.get(id.0).clone()
    }

    pub(crate) fn object(&mut self, kind: ObjKind, class: Option<ClassKey>, own: Value) -> ObjId {
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

    pub(crate) fn obj(&self, id: ObjId) -> &Object {
        &self.objects[id.0 as usize]
    }

    pub(crate) fn own(&self, id: ObjId) -> Value {
        self.store.get(self.obj(id).own)
    }

    pub(crate) fn set_own(&mut self, id: ObjId, value: Value) {
        let cell = self.obj(id).own;
        self.keys_change(id);
        self.store.set(cell, value);
    }

    pub(crate) fn list(&mut self, items: &[Value]) -> Value {
        let content = self.seq(items);
        Value::Object(self.object(ObjKind::List { module: false }, None, content))
    }

    /// A list, and no set.
    pub(crate) fn true_list(&mut self, content: Value) -> Value {
        let id = self.object(ObjKind::List { module: false }, None, content);
        self.watch.true_lists.insert(id);
        Value::Object(id)
    }

    pub(crate) fn get_field(&self, id: ObjId, name: Sym) -> Value {
        self.obj(id)
            .attrs
            .iter()
            .find(|(n, _)| *n == name)
            .map_or(Value::Absent, |&(_, cell)| self.store.get(cell))
    }

    pub(crate) fn set_field(&mut self, id: ObjId, name: Sym, value: Value) {
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
    pub(crate) fn result_of(&mut self, expr: ExprId) -> Value {
        self.result_called(expr, |i| i.callee_text(expr))
    }

    /// The same under another text than the callee's name.
    pub(crate) fn result_called(&mut self, expr: ExprId, text: impl FnOnce(&Self) -> String) -> Value {
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
    pub(crate) fn callee_text(&self, expr: ExprId) -> String {
        let ir = &self.linked().ir;
        match ir.expr(expr) {
            crate::ir::Expr::Call(id) => {
                ir.last_name(ir.call(id).func).map_or_else(String::new, |name| [name.as_str(), "()"].concat())
            }
            crate::ir::Expr::Attr { name, .. } => ["….", name.as_str()].concat(),
            _ => String::new(),
        }
    }

    pub(crate) fn closure(&mut self, module: ModIdx, func: FuncId, frame: Option<FrameId>) -> Value {
        Value::Closure(super::domain::value::ClosureId(self.t.closures.add(Closure { module, func, frame })))
    }

    pub(crate) const NUMBER: Value = Value::Host(Host::Number);
    pub(crate) const TEXT: Value = Value::Host(Host::Text);
    pub(crate) const ARRAY: Value = Value::Host(Host::Array);
    pub(crate) const DOUBLES: Value = Value::Host(Host::Doubles);
    pub(crate) const NUMBERS: Value = Value::Host(Host::Numbers);
}
