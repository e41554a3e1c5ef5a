//! Selects a file's functions and classes as entry points, and interprets each.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::Outer;
use crate::flow::domain::value::{FrameId, ObjId, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::entry::run::{BRINGS, Found, STEPS};
use crate::ir::{ClassId, Expr, FuncId, FuncKind, Module};
use crate::link::{ClassKey, ModIdx};
use crate::sym::Sym;
use crate::words::Words;

static PREPARE: Words = Words::of("prepare an object");
use rustc_hash::FxHashSet;

impl Interp<'_> {
    /// Interprets module-level functions symbolically: if `handed`, those that are only passed as arguments, else the
    /// others.
    pub(crate) fn run_functions(&mut self, out: &mut Found, last: &FxHashSet<FuncId>, handed: bool) {
        let module = self.entry;
        let ir = &self.program.get(module).ir;
        for (n, f) in ir.functions.iter().enumerate() {
            let func = FuncId(u32::try_from(n).unwrap_or(u32::MAX));
            // This test is last, because it scans all calls of the file.
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

    /// Interprets the methods of each class, on an instance from an interpreted constructor.
    pub(crate) fn run_classes(&mut self, out: &mut Found) {
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
            // The constructor's tests and requirements also hold in the methods.
            let instance = self.symbolic_instance(key, out);
            let late = self.kept_late(key, instance);
            // Without device code of their own, only those methods are interpreted that read what the constructor stores
            // on a definite device.
            let settled = self.settled_names(key, instance);
            let (first, rest): (Vec<_>, Vec<_>) = wanted
                .into_iter()
                .filter(|&(_, f)| self.relevance.is_live(module, f) || mentions(ir, f, &settled))
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

    /// The names by which methods reach the values on definite devices that the constructor has stored: attributes, and the
    /// methods that read them.
    fn settled_names(&self, key: ClassKey, instance: ObjId) -> FxHashSet<Sym> {
        let mut names = self.settled_attributes(instance);
        loop {
            let before = names.len();
            for k in self.program.class(key).mro.iter().filter(|_| before > 0) {
                let ir = &self.program.get(k.module).ir;
                let methods = ir.class(k.class).methods.iter().filter(|(name, _)| *name != self.known.init);
                for &(name, f) in methods {
                    if !names.contains(&name) && mentions(ir, f, &names) {
                        names.insert(name);
                    }
                }
            }
            if names.len() == before {
                return names;
            }
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

    /// Whether the name is private by Python's name mangling, such as `__rows`, and no code in the file uses it as an
    /// attribute.
    fn is_hidden(&self, key: ClassKey, name: Sym) -> bool {
        let text = name.as_str();
        if !text.starts_with("__") || text.ends_with("__") {
            return false;
        }
        let ir = &self.program.get(key.module).ir;
        !ir.has_attribute(name)
    }

    /// The methods of a class that may produce events. `None` if there are none, so that no instance is needed.
    fn wanted_methods(&self, key: ClassKey) -> Option<Vec<(Sym, FuncId)>> {
        let methods = &self.program.get(key.module).ir.class(key.class).methods;
        // Values from the constructor, or from the set-up of a test, may matter in any method.
        let all = PREPARE.all().iter().any(|name| self.decides_in(key, Sym::new(name)))
            || !self.late_setters(key).is_empty();
        let live = |f: FuncId| all || self.relevance.is_live(key.module, f);
        let wanted: Vec<(Sym, FuncId)> = methods.iter().copied().filter(|&(_, f)| live(f)).collect();
        // A constructor that only calls other constructors produces no events of its own.
        let says =
            |&(name, f): &(Sym, FuncId)| name != self.known.init || self.relevance.is_near(key.module, f);
        wanted.iter().any(says).then_some(wanted)
    }

    /// An instance of a class as its methods see it: constructed, and then moved to the module's device.
    fn symbolic_instance(&mut self, key: ClassKey, out: &mut Found) -> ObjId {
        let before = self.path;
        let outer = self.receiver_symbol(key);
        let id = if self.is_module_class(key) {
            let device = self.unknown_device();
            self.object(crate::flow::machine::frame::ObjKind::Module, Some(key), Value::Device(device))
        } else {
            self.object(crate::flow::machine::frame::ObjKind::Instance, Some(key), Value::Absent)
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
            // Submodules are constructed at their first use: each class is an entry point of its own.
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
            // A program that moves the module only to MPS, or never, does not have it on CUDA.
            let device = if self.observed.accelerated.get(&key) == Some(&false) {
                self.unknown_device()
            } else {
                self.at(crate::flow::domain::value::Device::Of(outer), crate::flow::domain::value::NO_ORIGIN)
            };
            self.move_module(id, device);
        }
        id
    }

    pub(crate) fn receiver_symbol(&mut self, class: ClassKey) -> crate::flow::domain::value::OuterId {
        let key = OuterKey::Receiver { class };
        self.t.outer(key.clone(), || Outer { varies: true, ..Outer::new(key, "self") })
    }

    /// Interprets a function with symbols for the parameters that are not given, and restores the state afterwards.
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
                    crate::flow::machine::classes::define::MethodKind::Static => None,
                    crate::flow::machine::classes::define::MethodKind::Class => Some(Value::Class(key)),
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

    /// Runs `setUp`, which precedes each test.
    fn set_up(&mut self, key: ClassKey, receiver: Option<Value>) {
        for name in ["setUp", "setup_method"] {
            if let Some((m, f)) = self.program.find_method(key, Sym::new(name)) {
                self.run.muted += 1;
                self.run(m, f, None, receiver, Some(key), None, None, false);
                self.run.muted -= 1;
            }
        }
    }

    /// The class of a module whose framework moves the method's first argument to the module's device. `None` if the
    /// class overrides that move.
    fn batch_of_step(&self, name: Sym, receiver: Option<Value>) -> Option<ClassKey> {
        let Some(Value::Object(id)) = receiver else { return None };
        let key = self.obj(id).class.filter(|_| STEPS.has(name.as_str()) && self.is_module_object(id))?;
        let own = self.program.find_method(key, Sym::new(BRINGS)).is_some();
        (self.is_moved_for_user(key) && !own).then_some(key)
    }

    /// Binds symbols to the parameters of a symbolic function.
    pub(crate) fn bind_symbols(&mut self, module: ModIdx, func: FuncId, base: Cell, receiver: Option<Value>) {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        // Arguments of a module's `forward` are on the module's device.
        let with = match receiver {
            Some(Value::Object(id)) if function.name == self.known.forward && self.is_module_object(id) => {
                self.obj(id).class
            }
            _ => None,
        };
        let with = with.map(|class| self.receiver_symbol(class));
        // So is the batch that a framework moves for the module.
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

/// Whether the function mentions one of the attributes, also as a text: `getattr(self, "mask")`.
fn mentions(ir: &Module, f: FuncId, names: &FxHashSet<Sym>) -> bool {
    !names.is_empty()
        && ir.exprs[ir.exprs_of(ir.function(f))].iter().any(|e| match e {
            Expr::Attr { name, .. } | Expr::Str(name) => names.contains(name),
            _ => false,
        })
}
