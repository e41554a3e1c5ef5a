//! Entry points: a file's body, then each of its functions for itself.

use rustc_hash::FxHashSet;

use super::Interp;
use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::event::{Compared, Event, Kind, Later};
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::Outer;
use crate::flow::domain::value::{FrameId, ObjId, OuterKey, Value};
use crate::flow::evidence::file_facts::Files;
use crate::flow::query::relevance::Relevance;
use crate::ir::{ClassId, FuncId, FuncKind};
use crate::link::{ClassKey, ModIdx, Program};
use crate::span::Place;
use crate::sym::Sym;

/// The methods of a module that Lightning gives a batch, which it has moved before (lightning/pytorch/strategies/strategy.py).
const STEPS: &[&str] = &["training_step", "validation_step", "test_step", "predict_step"];
/// The method that moves it.
const BRINGS: &str = "transfer_batch_to_device";

/// What came out of interpreting a file.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What may be worth a finding, in the order in which it was met.
    pub events: Vec<Event>,
    /// The file is plainly written for CUDA alone.
    pub cuda_only: bool,
    /// A function of the file refuses to go on without CUDA.
    pub refuses: bool,
    /// Entry points that ran out of budget, each once, in the order of the source.
    pub exhausted: Vec<Exhausted>,
}

/// A function, a file's body or a class's constructor that takes more to interpret than it may: nothing more is said of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exhausted {
    /// Its name; `<module>` for the body of a file, the class's name for a constructor that another file gives.
    pub name: Sym,
    /// Its name in the source, behind `def` or `class`; the start of the file for its body.
    pub place: Place,
}

/// What has come out so far: events, each with the function that was interpreted for itself.
#[derive(Default)]
pub(crate) struct Found {
    events: Vec<(Event, Option<FuncId>, Option<super::calls::visible_callers::Parameter>)>,
    exhausted: Vec<Exhausted>,
}

/// Interprets a file of the program.
pub fn run_module(program: &Program, relevance: &Relevance, module: ModIdx) -> Outcome {
    let files = Files(program);
    let (cuda_only, refuses) = (files.cuda_only_file(relevance, module), files.refuses_without_cuda(module));
    if relevance.is_idle(module) {
        return Outcome { cuda_only, refuses, ..Outcome::default() };
    }
    let mut i = Interp::new(program, relevance, module);
    let mut out = Found::default();
    i.run_body(&mut out);
    // What is only handed over comes last: then it is known where, and under which guards.
    let last = i.only_handed(module);
    if !i.run.ends_early {
        i.run_functions(&mut out, &last, false);
        i.run_classes(&mut out);
        i.run_functions(&mut out, &last, true);
    }
    let (texts, needed) = (&i.observed.texts, &i.observed.needed);
    out.events.retain(|(e, ..)| match e.kind {
        Kind::DeviceCompared { how: Compared::Text, .. } => !texts.contains(&e.place),
        Kind::AlreadyThere => !needed.contains(&e.place),
        _ => true,
    });
    let events = i.mark_decided(out.events);
    // One that was interpreted several times is one.
    out.exhausted.sort_by_key(|e| e.place.span.start);
    out.exhausted.dedup();
    Outcome {
        events: with_shadows(crate::flow::observers::reveal::joined(events)),
        cuda_only,
        refuses,
        exhausted: out.exhausted,
    }
}

/// Uses that an earlier one comes before become places of that one.
fn with_shadows(events: Vec<Event>) -> Vec<Event> {
    let (shadows, mut events): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|e| matches!(e.kind, Kind::Shadowed { .. }));
    for shadow in shadows {
        let Kind::Shadowed { first, origin } = shadow.kind else { continue };
        let later =
            || Later { place: shadow.place, through: shadow.stack.iter().copied().chain(origin).collect() };
        let first_kind = |kind: &Kind| {
            matches!(kind, Kind::Use { .. } | Kind::GlobalRank | Kind::Nccl | Kind::DoubleOnMps { .. })
        };
        let of_first = events.iter_mut().filter(|e| e.place == first && first_kind(&e.kind));
        for e in of_first {
            if e.place != shadow.place && !e.also.iter().any(|known| known.place == shadow.place) {
                e.also.push(later());
            }
        }
    }
    events
}

impl Interp<'_> {
    /// The module's body as a script.
    fn run_body(&mut self, out: &mut Found) {
        let module = self.entry;
        let base = self.global_cell(module, 0);
        self.push_frame(module, FuncId(0), base, None);
        self.path = self.plugins_at_top(module);
        let body = self.program.get(module).ir.function(FuncId(0)).body;
        self.block(body);
        self.collect(out);
        self.body_ended();
        self.open_empty(base);
        // Functions are called after the body has run: what it has checked holds in them.
        if self.path == FALSE {
            self.path = TRUE;
        }
        self.path = self.settled(self.path);
        let marks = self.module_marks(module);
        self.path = self.d.and(self.path, marks);
        self.run.symbolic = true;
        self.budget.limit = super::SYMBOLIC_STEPS;
    }

    /// A list or dict that is empty when the module has been loaded is there to be filled: by functions, in any order.
    fn open_empty(&mut self, base: Cell) {
        let slots = self.program.get(self.entry).ir.function(FuncId(0)).slots.len();
        for n in 0..u32::try_from(slots).unwrap_or(0) {
            let Value::Object(id) = self.store.get(Cell(base.0 + n)) else { continue };
            let container = matches!(
                self.obj(id).kind,
                super::frame::ObjKind::List { module: false } | super::frame::ObjKind::Dict { module: false }
            );
            if container && self.exact_elements(Value::Object(id)).is_some_and(|items| items.is_empty()) {
                let content = self.many(Value::Absent);
                self.set_own(id, content);
            }
        }
    }

    /// What a condition says of the machine.
    pub(crate) fn settled(
        &mut self,
        c: crate::flow::domain::diagram::Cond,
    ) -> crate::flow::domain::diagram::Cond {
        let c = self.gone_well(c);
        self.d.forget(c, &crate::flow::domain::atom::AtomId::is_hardware)
    }

    /// A condition where nothing has been used that raises: that would not have gone well. An import in a function says no more
    /// than one at the top.
    pub(crate) fn gone_well(
        &mut self,
        c: crate::flow::domain::diagram::Cond,
    ) -> crate::flow::domain::diagram::Cond {
        let (atoms, imported) = (&self.atoms, &self.tests.kernels_imported);
        let c = self.d.forget(c, &|a| !imported.contains(&a));
        let gone = |a| matches!(atoms.get(a), Atom::Shadow { .. });
        self.d.without(c, &gone)
    }

    /// `pytestmark = pytest.mark.skipif(…)`, alone or in a list, marks all tests of the file.
    fn module_marks(&mut self, module: ModIdx) -> crate::flow::domain::diagram::Cond {
        let linked = self.program.get(module);
        let Some(&slot) = linked.names.get(&Sym::new("pytestmark")) else { return TRUE };
        let Some(&crate::link::Binding::Value(e)) = linked.bindings.get(usize::from(slot)) else {
            return TRUE;
        };
        match linked.ir.expr(e) {
            crate::ir::Expr::List(list) | crate::ir::Expr::Tuple(list) => {
                self.decorator_guard(module, FuncId(0), list)
            }
            _ => self.one_guard(module, FuncId(0), e),
        }
    }

    pub(crate) fn collect(&mut self, out: &mut Found) {
        if self.run.exhausted {
            out.exhausted.push(self.exhausted_entry());
        }
        self.end_group();
        self.end_transfers();
        for mut pending in std::mem::take(&mut self.events) {
            // What has a field of its own is a batch or the like, which knows how to move.
            if matches!(pending.event.kind, crate::flow::domain::event::Kind::Discarded { .. })
                && pending.needs.iter().chain(&pending.about).any(|&o| self.has_fields(o))
            {
                continue;
            }
            let number = pending.about.iter().any(|o| self.evidence.size_proofs.contains(o));
            if pending.needs.iter().all(|&o| self.is_proven(o))
                && !number
                && !self.any_on_host(&pending.about)
            {
                let parameter = self.parameter_of(&pending.about);
                pending.event.followed = self.any_followed(&pending.about);
                self.with_what_met(&mut pending.event);
                out.events.push((pending.event, pending.function, parameter));
            }
        }
        self.forget_host();
        self.forget_file_parts();
        self.calls.suspended.clear();
        self.libraries.saved.clear();
        self.calls.heavy_here.clear();
        self.devices.ranks_used.clear();
        self.devices.gpus_chosen.clear();
        self.devices.module_met.clear();
        self.budget.renew();
        self.run.exhausted = false;
    }

    /// What is interpreted for itself just now, as somebody reads of it that there is too much of it.
    fn exhausted_entry(&self) -> Exhausted {
        let ir = &self.program.get(self.entry).ir;
        let (name, span) = match (self.calls.callers.entry, self.run.constructed) {
            (Some(f), _) => (ir.function(f).name, ir.function(f).name_span),
            (None, Some(class)) => (ir.class(class).name, ir.class(class).name_span),
            (None, None) => (ir.function(FuncId(0)).name, ir.function(FuncId(0)).name_span),
        };
        Exhausted { name, place: Place { file: ir.file, span } }
    }

    /// The end of something that was interpreted for what it leaves alone.
    pub(crate) fn collect_nothing(&mut self) {
        self.collect(&mut Found::default());
    }

    /// Has something been read of the outside thing that no tensor has?
    pub(crate) fn has_fields(&self, o: crate::flow::domain::value::OuterId) -> bool {
        self.t.outers.iter().any(|outer| match outer.key {
            OuterKey::Attr { base, name } => {
                base == o && !crate::flow::evidence::tensor_evidence::is_tensor_attribute(name)
            }
            _ => false,
        })
    }

    /// Has it turned out to be a tensor, or a part of one?
    fn is_proven(&self, o: crate::flow::domain::value::OuterId) -> bool {
        self.is_tensorish(o)
            || match self.t.get_outer(o).key {
                OuterKey::Item { key: Some(Value::Str(..)), .. } => false,
                OuterKey::Item { base, .. } => self.is_proven(base),
                _ => false,
            }
    }

    /// Module-level functions, each with symbols for parameters: those that are only handed over, or the others.
    fn run_functions(&mut self, out: &mut Found, last: &FxHashSet<FuncId>, handed: bool) {
        let module = self.entry;
        let ir = &self.program.get(module).ir;
        for (n, f) in ir.functions.iter().enumerate() {
            let func = FuncId(u32::try_from(n).unwrap_or(u32::MAX));
            // Who calls it is asked last: that takes a look at all calls of the file.
            if f.kind == FuncKind::Function
                && f.class.is_none()
                && f.parent == Some(FuncId(0))
                && !self.run.interpreted.contains(&func)
                && last.contains(&func) == handed
                && self.relevance.is_live(module, func)
            {
                let before = self.path;
                if handed {
                    let when = self.handed_over(module, func);
                    self.path = self.d.and(before, when);
                }
                self.run_entry(module, func, None, None, out);
                self.path = before;
            }
        }
    }

    /// The methods of each class, on an instance made by interpreting its constructor.
    fn run_classes(&mut self, out: &mut Found) {
        let module = self.entry;
        let ir = &self.program.get(module).ir;
        for n in 0..ir.classes.len() {
            let class = ClassId(u32::try_from(n).unwrap_or(u32::MAX));
            let key = ClassKey { module, class };
            let Some(wanted) = self.wanted_methods(key) else { continue };
            let (mark, cells, objects) = (self.store.mark(), self.store.len(), self.objects.len());
            let before = self.path;
            let guard = self.decorator_guard(module, FuncId(0), ir.class(class).decorators);
            self.path = self.d.and(self.path, guard);
            if self.is_for_cuda_alone(key) {
                let there = self.at_least(1);
                self.path = self.d.and(self.path, there);
            }
            // What the constructor has asked, or could not do without, holds in the methods.
            let instance = self.symbolic_instance(key, out);
            let late = self.kept_late(key, instance);
            // Of what the constructor keeps nowhere for certain, methods know no more than it says of itself.
            let all = self.keeps_settled(instance);
            let (first, rest): (Vec<_>, Vec<_>) = wanted
                .into_iter()
                .filter(|&(_, f)| all || self.relevance.is_live(module, f))
                .partition(|(name, _)| *name == self.known.forward);
            self.run_methods(key, instance, &first, out);
            if self.is_module_class(key) && !rest.is_empty() {
                self.between_calls(key, instance);
                late.into_iter().for_each(|(name, v)| self.set_field(instance, name, v));
            }
            self.run_methods(key, instance, &rest, out);
            self.path = before;
            self.rewind(mark, cells, objects);
        }
    }

    fn run_methods(&mut self, key: ClassKey, instance: ObjId, methods: &[(Sym, FuncId)], out: &mut Found) {
        for &(name, func) in methods {
            let done = self.run.interpreted.contains(&func) && !self.is_module_class(key);
            if name != self.known.init && !done && !self.is_hidden(key, name) {
                self.run_entry(key.module, func, Some(key), Some(instance), out);
            }
        }
    }

    /// `__rows` of a class in which nothing says that name: Python mangles it, so nobody else can.
    fn is_hidden(&self, key: ClassKey, name: Sym) -> bool {
        let text = name.as_str();
        if !text.starts_with("__") || text.ends_with("__") {
            return false;
        }
        let ir = &self.program.get(key.module).ir;
        !ir.has_attribute(name)
    }

    /// The methods of a class that may have something to say; none, and there is no need for an instance.
    fn wanted_methods(&self, key: ClassKey) -> Option<Vec<(Sym, FuncId)>> {
        let methods = &self.program.get(key.module).ir.class(key.class).methods;
        // What the constructor makes, and what runs before each test, may bite in any method.
        let all = ["__init__", "setUp", "setup_method", "__post_init__"]
            .into_iter()
            .any(|name| self.decides_in(key, Sym::new(name)))
            || !self.late_setters(key).is_empty();
        let live = |f: FuncId| all || self.relevance.is_live(key.module, f);
        let wanted: Vec<(Sym, FuncId)> = methods.iter().copied().filter(|&(_, f)| live(f)).collect();
        // A constructor that has others have something made says no more than they say themselves.
        let says =
            |&(name, f): &(Sym, FuncId)| name != self.known.init || self.relevance.is_near(key.module, f);
        wanted.iter().any(says).then_some(wanted)
    }

    /// Takes the state back to a point before an entry point.
    pub(crate) fn rewind(&mut self, mark: crate::flow::domain::store::Mark, cells: usize, objects: usize) {
        self.store.reset(mark, cells);
        self.objects.truncate(objects);
        self.calls.rewind(objects);
        self.heap.rewind(objects);
        self.devices.rewind(objects);
        self.modules.rewind(objects);
        self.libraries.rewind(objects);
        self.observed.rewind(objects);
        self.tensors.doubles.clear();
        self.names.bound.retain(|cell, _| (cell.0 as usize) < cells);
        for o in &mut self.objects {
            o.attrs.retain(|(_, c)| (c.0 as usize) < cells);
        }
        self.names.globals.retain(|_, c| (c.0 as usize) < cells);
        self.evidence.outer_writes.retain(|_, c| (c.0 as usize) < cells);
        self.evidence.outer_moves.retain(|_, c| (c.0 as usize) < cells);
        self.names.class_cells.retain(|_, c| (c.0 as usize) < cells);
        self.names.evaluated.clear();
    }

    /// An instance of a class as its methods find it: constructed, and then moved wherever the module lives.
    fn symbolic_instance(&mut self, key: ClassKey, out: &mut Found) -> ObjId {
        let before = self.path;
        let outer = self.receiver_symbol(key);
        let id = if self.is_module_class(key) {
            let device = self.unknown_device();
            self.object(super::frame::ObjKind::Module, Some(key), Value::Device(device))
        } else {
            self.object(super::frame::ObjKind::Instance, Some(key), Value::Absent)
        };
        if self.is_module_class(key) {
            let cpu = self.at(crate::flow::domain::value::Device::Cpu, crate::flow::domain::value::NO_ORIGIN);
            let device = self.default_device_or(cpu);
            self.set_own(id, Value::Device(device));
        }
        if let Some((m, f)) = self.program.find_method(key, self.known.init) {
            let own = m == key.module
                && self.program.get(m).ir.class(key.class).methods.iter().any(|&(_, g)| g == f);
            let muted = u32::from(!own);
            self.run.muted += muted;
            let class = self.program.get(m).ir.function(f).class.map(|class| ClassKey { module: m, class });
            self.run.speculative = self.program.sites(m).call(f);
            self.run.asked_before = self.relevance.asked_before(m, f);
            // Submodules are built when something asks for them: each is an entry point of its own.
            self.calls.shallow += 1;
            self.calls.callers.entry = own.then_some(f);
            self.run.constructed = Some(key.class);
            self.after_definition(m, f);
            self.run(m, f, None, Some(Value::Object(id)), class, None, None, false);
            self.check_registered(id);
            self.calls.shallow -= 1;
            if self.path == FALSE {
                self.path = before;
            }
            self.run.muted -= muted;
            self.collect(out);
            self.run.constructed = None;
        }
        self.objects[id.0 as usize].outer = Some(outer);
        if !self.is_module_class(key) {
            self.between_calls(key, id);
        }
        if self.is_module_class(key) {
            // A program that moves it to MPS or to nothing never has it on CUDA.
            let device = if self.observed.accelerated.get(&key) == Some(&false) {
                self.unknown_device()
            } else {
                self.at(crate::flow::domain::value::Device::Of(outer), crate::flow::domain::value::NO_ORIGIN)
            };
            let left = self.added_after_move(id);
            self.move_module(id, device);
            for (layer, place) in left {
                self.set_own(layer, place);
            }
        }
        id
    }

    pub(crate) fn receiver_symbol(&mut self, class: ClassKey) -> crate::flow::domain::value::OuterId {
        let key = OuterKey::Receiver { class };
        self.t.outer(key.clone(), || Outer {
            key,
            text: "self".into(),
            tensor: false,
            device: false,
            varies: true,
            with: None,
            default: None,
        })
    }

    /// One function with symbols for what it is not given. The state is as before afterwards.
    fn run_entry(
        &mut self,
        module: ModIdx,
        func: FuncId,
        class: Option<ClassKey>,
        instance: Option<ObjId>,
        out: &mut Found,
    ) {
        let linked = self.program.get(module);
        let function = linked.ir.function(func);
        let (mark, cells, objects, frames) =
            (self.store.mark(), self.store.len(), self.objects.len(), self.frames.len());
        let before = self.path;
        let guard = self.decorator_guard(module, function.parent.unwrap_or(FuncId(0)), function.decorators);
        let wrappers = self.wrapper_guard(module, func);
        let guard = self.d.and(guard, wrappers);
        let def = self.names.def_paths.get(&(module, func)).copied().unwrap_or(TRUE);
        let def = self.settled(def);
        let start = self.d.and(before, guard);
        self.path = self.d.and(start, def);
        let receiver = match (instance, class) {
            (Some(id), Some(key)) => {
                match self.method_kind(crate::flow::domain::value::Closure { module, func, frame: None }) {
                    super::calls::classes::MethodKind::Static => None,
                    super::calls::classes::MethodKind::Class => Some(Value::Class(key)),
                    _ => Some(Value::Object(id)),
                }
            }
            _ => None,
        };
        let fixtures = self.fixture_guard(module, func, class, receiver);
        self.path = self.d.and(self.path, fixtures);
        if self.path != FALSE {
            if let (Some(key), Some(_)) = (class, instance) {
                self.set_up(key, receiver);
            }
            self.forget_moved(module, func, class.zip(instance));
            self.run.speculative = self.program.sites(module).call(func);
            self.run.asked_before = self.relevance.asked_before(module, func);
            let parent = None::<FrameId>;
            self.calls.callers.entry = Some(func);
            self.run.made_before = objects;
            let entered = self.path;
            let given = self.run(module, func, parent, receiver, class, None, None, false);
            self.path = entered;
            if let Some(key) = class.filter(|_| function.name == self.known.forward) {
                self.leaves_for_numpy(key, given);
            }
            self.check_step((module, func), class, given);
            self.collect(out);
            self.run_returned(given, start, frames, out);
        }
        self.collect(out);
        self.calls.callers.entry = None;
        self.path = before;
        self.rewind(mark, cells, objects);
        self.frames.truncate(frames);
        self.frame = FrameId(0);
    }

    /// `setUp` runs before each test.
    fn set_up(&mut self, key: ClassKey, receiver: Option<Value>) {
        for name in ["setUp", "setup_method"] {
            if let Some((m, f)) = self.program.find_method(key, Sym::new(name)) {
                self.run.muted += 1;
                self.run(m, f, None, receiver, Some(key), None, None, false);
                self.run.muted -= 1;
            }
        }
    }

    /// The class of a module whose framework brings what this method is given first to where the module is; nothing where the
    /// class does that in a way of its own.
    fn batch_of_step(&self, name: Sym, receiver: Option<Value>) -> Option<ClassKey> {
        let Some(Value::Object(id)) = receiver else { return None };
        let key =
            self.obj(id).class.filter(|_| STEPS.contains(&name.as_str()) && self.is_module_object(id))?;
        let own = self.program.find_method(key, Sym::new(BRINGS)).is_some();
        (self.is_moved_for_user(key) && !own).then_some(key)
    }

    /// Symbols for the parameters of a function that is interpreted for itself.
    pub(crate) fn bind_symbols(&mut self, module: ModIdx, func: FuncId, base: Cell, receiver: Option<Value>) {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        // What a module's `forward` is given lives where the module lives.
        let with = match receiver {
            Some(Value::Object(id)) if function.name == self.known.forward && self.is_module_object(id) => {
                self.obj(id).class
            }
            _ => None,
        };
        let with = with.map(|class| self.receiver_symbol(class));
        // So does the batch that a framework moves for the module.
        let batch = self.batch_of_step(function.name, receiver).map(|class| self.receiver_symbol(class));
        for (index, param) in function.params.iter().enumerate() {
            let v = match (index, receiver) {
                (0, Some(r)) => r,
                _ => match param.kind {
                    crate::ir::ParamKind::Star => {
                        let v = self.symbolic_param(module, func, index, with);
                        self.many(v)
                    }
                    _ => match self.left_by_all(module, func, index) {
                        Some(default) => self.eval_in(module, function.parent.unwrap_or(FuncId(0)), default),
                        None if index == 1 => self.symbolic_param(module, func, index, with.or(batch)),
                        None => self.symbolic_param(module, func, index, with),
                    },
                },
            };
            self.store.set(Cell(base.0 + u32::from(param.slot)), v);
        }
    }
}
