//! The interpreter: its state, and the helpers for all other code here.
//!
//! One [`Interp`] interprets one file: the module's body, then each function symbolically, with outside values for
//! parameters. Calls into the project are interpreted with the caller's values. Budgets limit every dimension. Past a
//! limit the result is "unknown", and no further events are reported.

pub(crate) mod alternatives;
pub(crate) mod arguments;
pub(crate) mod blend;
pub(crate) mod branches;
pub(crate) mod calls;
pub(crate) mod classes;
pub(crate) mod each;
pub(crate) mod entry;
pub(crate) mod expressions;
pub(crate) mod frame;
pub(crate) mod join;
pub(crate) mod state;
pub(crate) mod statements;

use crate::flow::machine::entry::budget::Budget;
pub use crate::flow::machine::entry::run::{Exhausted, Outcome, run_module};
use crate::flow::machine::frame::{Frame, ObjKind, Object};
pub(crate) use crate::flow::machine::statements::handlers::catches_missing_device;

use crate::flow::domain::atom::{AtomId, Atoms};
use crate::flow::domain::diagram::{Cond, Dd, Diagrams, FALSE, TRUE};
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::Event;
use crate::flow::domain::store::Store;
use crate::flow::domain::value::{
    Closure, Device, FrameId, Host, NO_ORIGIN, ObjId, Origin, OriginId, Outer, OuterId, OuterKey, Reason,
    Role, Tables, Tensor, Value,
};
use crate::flow::query::relevance::functions::Relevance;
use crate::ir::{ExprId, FuncId};
use crate::link::{ClassKey, Linked, ModIdx, Program};
use crate::span::Place;
use crate::sym::Sym;

/// The maximum number of expressions and statements interpreted for one entry point.
pub(crate) const MAX_STEPS: u32 = 20_000;
/// The same for a symbolic function. Its important parts come early, or in its callees, which are entry points of their
/// own.
pub(crate) const SYMBOLIC_STEPS: u32 = 2_000;
/// The maximum number of steps of one call in such a function. A callee that needs more is not interpreted again.
pub(crate) const CALL_STEPS: u32 = 600;
/// The same for a call in a script: a library's loader may be arbitrarily long.
pub(crate) const SCRIPT_CALL_STEPS: u32 = 3_000;
/// The maximum number of calls in a callee and its own callees. A callee with more would exceed that limit.
pub(crate) const MANY_CALLS: u32 = 150;
/// A callee with at most this many calls is always interpreted.
pub(crate) const FEW_CALLS: u32 = 6;
/// The same for a callee that gets a tensor.
pub(crate) const SHORT_CALLS: u32 = 16;
/// The maximum depth of interpreted calls.
pub(crate) const MAX_DEPTH: u32 = 16;
/// The maximum length of a sequence whose elements are kept separately.
pub(crate) const MAX_ELEMENTS: usize = 48;

/// A truth test with an unknown outcome. Equal keys are the same test.
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
    /// The current activation.
    pub(crate) frame: FrameId,
    /// The path condition of the current point.
    pub(crate) path: Cond,
    pub(crate) budget: Budget,
    pub(crate) events: Vec<Pending>,
    /// The file whose functions are the entry points.
    pub(crate) entry: ModIdx,
    pub(crate) known: Known,
    /// The current entry point and its progress.
    pub(crate) run: crate::flow::machine::state::Run,
    /// Variables of files and attributes of classes.
    pub(crate) names: crate::flow::machine::state::Names,
    /// Truth tests with unknown outcomes, and the assumptions about them.
    pub(crate) tests: crate::flow::machine::state::Tests,
    /// The state of calls: which callees are interpreted, and what surrounds the current one.
    pub(crate) calls: crate::flow::machine::calls::Calls,
    /// What is known of collections, apart from their elements.
    pub(crate) heap: crate::flow::heap::Heap,
    /// Evidence about unknown values.
    pub(crate) evidence: crate::flow::evidence::Evidence,
    /// State of processes, their groups and their GPUs.
    pub(crate) devices: crate::flow::models::devices::Devices,
    /// State of modules and optimizers.
    pub(crate) modules: crate::flow::models::modules::Modules,
    /// Default devices, autocast, and results whose device depends on other values.
    pub(crate) tensors: crate::flow::models::tensors::Tensors,
    /// State of objects of other libraries, and of files.
    pub(crate) libraries: crate::flow::models::libraries::Libraries,
    /// What observers store until they can decide whether to report an event.
    pub(crate) observed: crate::flow::observers::Observed,
}

/// An event that is reported if these outside values are tensors.
pub(crate) struct Pending {
    pub(crate) event: Event,
    pub(crate) needs: Vec<OuterId>,
    /// The outside values on which its devices depend.
    pub(crate) about: Vec<OuterId>,
    /// The symbolic function.
    pub(crate) function: Option<FuncId>,
}

/// Frequently used symbols.
pub(crate) struct Known {
    pub(crate) forward: Sym,
    pub(crate) builtins: Sym,
    pub(crate) init: Sym,
    pub(crate) device: Sym,
    pub(crate) training: Sym,
    /// The outside value for `torch.cuda.device_count()`.
    pub(crate) device_count: OuterId,
}

impl<'p> Interp<'p> {
    pub(crate) fn new(program: &'p Program, relevance: &'p Relevance, entry: ModIdx) -> Self {
        let mut t = Tables::default();
        let nowhere = Place { file: crate::span::FileId(0), span: crate::span::Span::default() };
        t.origins.add(Origin { place: nowhere, reason: Reason::None, from: NO_ORIGIN });
        let key = OuterKey::External(Sym::new("torch.cuda.device_count()"));
        let device_count = t.outer(key.clone(), || Outer::new(key, "torch.cuda.device_count()"));
        let mut store = Store::default();
        let default_device = store.alloc(1);
        // No default device is set.
        store.set(default_device, Value::None);
        let default_type = store.alloc(1);
        store.set(default_type, Value::None);
        let [ready, visible, nccl, environment, gradless] = Self::process_cells(&mut store);
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
            budget: Budget::of(MAX_STEPS),
            events: Vec::new(),
            entry,
            known,
            run: crate::flow::machine::state::Run::default(),
            names: crate::flow::machine::state::Names::default(),
            tests: crate::flow::machine::state::Tests::default(),
            calls: crate::flow::machine::calls::Calls::default(),
            heap: crate::flow::heap::Heap::default(),
            evidence: crate::flow::evidence::Evidence::default(),
            devices: crate::flow::models::devices::Devices {
                ready,
                visible,
                environment,
                nccl,
                ..Default::default()
            },
            modules: crate::flow::models::modules::Modules::default(),
            tensors: crate::flow::models::tensors::Tensors {
                default_device,
                default_type,
                ..Default::default()
            },
            libraries: crate::flow::models::libraries::Libraries::default(),
            observed: crate::flow::observers::Observed { gradless, ..Default::default() },
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

    /// Stores the atom of a test.
    pub(crate) fn note_test(&mut self, test: Test, atom: AtomId) {
        if matches!(test, Test::Compare(0, Value::Outer(_), Value::None)) {
            self.tests.left_out.insert(atom);
        }
        self.tests.atoms.insert(test, atom);
    }

    /// The place of an expression in the current function.
    pub(crate) fn place(&self, expr: ExprId) -> Place {
        let ir = &self.linked().ir;
        Place { file: ir.file, span: ir.span(expr) }
    }

    pub(crate) fn live(&self) -> bool {
        self.path != FALSE && !self.run.exhausted
    }

    /// Counts a step. Whether budget is left.
    pub(crate) fn step(&mut self) -> bool {
        self.budget.step();
        self.budget.take(self.d.taken());
        self.run.exhausted |= self.budget.is_spent();
        !self.run.exhausted
    }

    pub(crate) fn origin(&mut self, place: Place, reason: Reason, from: OriginId) -> OriginId {
        // Chains stay short: the first decision and the last steps.
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

    /// A value on this device that may be a tensor, a collection of tensors or a module. Nothing else is known of it.
    pub(crate) fn possible_tensor(&mut self, device: Dd) -> Value {
        let (dims, role) = (Dims::ANY, Role::Plain);
        self.tensor(Tensor { device, dims, role, certain: false, bytes: None, double: FALSE })
    }

    pub(crate) fn tensor(&mut self, tensor: Tensor) -> Value {
        Value::Tensor(crate::flow::domain::value::TensorId(self.t.tensors.add(tensor)))
    }

    pub(crate) fn get_tensor(&self, id: crate::flow::domain::value::TensorId) -> Tensor {
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

    pub(crate) fn seq_items(&self, id: crate::flow::domain::value::SeqId) -> Box<[Value]> {
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

    /// A list that is certainly no set.
    pub(crate) fn true_list(&mut self, content: Value) -> Value {
        let id = self.object(ObjKind::List { module: false }, None, content);
        self.heap.true_lists.insert(id);
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

    /// The unknown result of an expression, as a symbol of its own.
    pub(crate) fn result_of(&mut self, expr: ExprId) -> Value {
        self.result_called(expr, |i| i.callee_text(expr))
    }

    /// The same with another text than the callee's name.
    pub(crate) fn result_called(&mut self, expr: ExprId, text: impl FnOnce(&Self) -> String) -> Value {
        let key =
            OuterKey::Result { module: self.here().module, expr, frame: self.frame, pass: self.run.pass };
        if let Some(&id) = self.t.outer_ids.get(&key) {
            return Value::Outer(id);
        }
        let text = text(self);
        let id = self.t.outer(key.clone(), || Outer::new(key, text));
        Value::Outer(id)
    }

    /// The text of a result, such as `is_available()` for a call by name, or an attribute's name: the name may matter
    /// as a flag.
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
        Value::Closure(crate::flow::domain::value::ClosureId(self.t.closures.add(Closure {
            module,
            func,
            frame,
        })))
    }

    pub(crate) const NUMBER: Value = Value::Host(Host::Number);
    pub(crate) const TEXT: Value = Value::Host(Host::Text);
    pub(crate) const ARRAY: Value = Value::Host(Host::Array);
    pub(crate) const DOUBLES: Value = Value::Host(Host::Doubles);
    pub(crate) const NUMBERS: Value = Value::Host(Host::Numbers);
}
