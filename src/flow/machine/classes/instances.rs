//! Instances of project classes: construction, wrappers, loading.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::value::{Device, NO_ORIGIN, ObjId, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::link::ClassKey;
use crate::sym::Sym;
use crate::words::Words;

/// Values of `device_map` that spread a model over all GPUs.
static SPREAD: Words = Words::of("device maps over all GPUs");
static PLACE: Words = Words::of("options of a loaded model");
static OF_ANY_CLASS: Words = Words::of("bases of any class");

impl Interp<'_> {
    /// Makes an instance: `Class(args)`.
    pub(crate) fn instantiate(&mut self, key: ClassKey, args: &Args, e: ExprId) -> Value {
        if self.is_remade(key) {
            return self.unknown_call(Value::Unknown, args, e);
        }
        let id = self.new_instance(key, e);
        // A subclass of a wrapper moves its inputs, whatever else it does.
        if self.wraps_module(key) {
            self.scatters_here(id);
        }
        if self.calls.shallow > 0 && self.obj(id).kind == ObjKind::Module {
            self.calls.unbuilt.insert(id, args.clone());
            return Value::Object(id);
        }
        match self.program.find_method(key, self.known.init) {
            Some((m, f)) => {
                self.call_function(m, f, None, Some(Value::Object(id)), args, e);
                self.check_registered(id);
                if self.obj(id).kind == ObjKind::Module && args.keyword("device").is_some() {
                    self.follows_its_argument(id);
                }
            }
            None => {
                if let Some(made) = self.make_own_collection(key, args, e) {
                    return made;
                }
                self.fill_fields(id, key, args, e);
                if args.keyword("accelerator").is_some() {
                    for base in self.program.class(key).externals.clone() {
                        self.refuses_without(base, args);
                    }
                }
            }
        }
        Value::Object(id)
    }

    /// Makes the device of a module unknown if the module got a device argument and its attributes do not show a
    /// device.
    fn follows_its_argument(&mut self, id: ObjId) {
        let fields: Vec<Value> = self.obj(id).attrs.iter().map(|&(_, cell)| self.store.get(cell)).collect();
        let shown = fields.into_iter().any(|v| match v {
            Value::Choice(_) | Value::Unknown => false,
            v => self.owned_device(v, 0).is_some(),
        });
        if !shown {
            let unknown = self.unknown_device();
            self.set_own(id, Value::Device(unknown));
        }
    }

    /// Interprets the delayed constructor of a submodule when the program reads a part of it. Whether the module may
    /// have that part now.
    pub(crate) fn build_now(&mut self, id: ObjId, e: ExprId) -> bool {
        let built = Sym::new("__init__");
        let (true, Some(key)) = (self.calls.unbuilt.contains_key(&id), self.obj(id).class) else {
            return false;
        };
        // While one of the module's own methods runs, the constructor stays delayed. The methods are entry points of
        // their own.
        if self.get_field(id, built) != Value::Absent || self.here().receiver == Value::Object(id) {
            return false;
        }
        self.set_field(id, built, Value::None);
        let (Some((m, f)), Some(args)) =
            (self.program.find_method(key, built), self.calls.unbuilt.get(&id).cloned())
        else {
            return false;
        };
        let (path, device) = (self.path, self.own(id));
        self.run.muted += 1;
        self.calls.shallow += 1;
        self.call_function(m, f, None, Some(Value::Object(id)), &args, e);
        self.calls.shallow -= 1;
        self.run.muted -= 1;
        self.path = path;
        // If the program has moved the module since, it stays on that device. Otherwise the constructor decides.
        if let Value::Device(d) = device
            && !self.is_as_made(d)
        {
            self.move_module(id, d);
        }
        true
    }

    /// Whether the device is the one where the module was made, without a move since.
    pub(crate) fn is_as_made(&self, d: crate::flow::domain::diagram::Dd) -> bool {
        let origin = self.d.as_leaf(d).map(|leaf| self.t.places.get(leaf).1);
        origin.is_some_and(|o| self.t.origins.get(o.0).reason == Reason::Module)
    }

    /// Makes an instance, without running its `__init__`.
    pub(crate) fn new_instance(&mut self, key: ClassKey, e: ExprId) -> ObjId {
        if !self.is_module_class(key) {
            return self.object(ObjKind::Instance, Some(key), Value::Absent);
        }
        // A wrapper is on its module's device.
        let device = if self.is_moved_for_user(key) || self.wraps_module(key) {
            self.unknown_device()
        } else {
            self.default_device_at(e, Reason::Module)
        };
        self.object(ObjKind::Module, Some(key), Value::Device(device))
    }

    /// Whether the class is a subclass of a wrapper: `class Parallel(nn.DataParallel)`.
    fn wraps_module(&self, key: ClassKey) -> bool {
        self.program
            .class(key)
            .externals
            .iter()
            .any(|&path| crate::flow::evidence::isinstance::is_wrapper_class(path))
    }

    /// Whether a module's constructor is being interpreted.
    pub(crate) fn constructing(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            let function = self.program.get(frame.module).ir.function(frame.func);
            if function.name == self.known.init && frame.class.is_some_and(|k| self.is_module_class(k)) {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// Marks the tensors in a value that a module's constructor stores without registering them. In a container, a
    /// buffer is an alias that becomes stale when the module moves. A parameter moves in place.
    pub(crate) fn kept(&mut self, v: Value, at: ExprId, depth: u32) -> Value {
        match v {
            Value::Tensor(id) => {
                let t = self.get_tensor(id);
                if !t.role.registered() || t.role == Role::Buffer && depth > 0 {
                    let device = self.because(t.device, at, Reason::Kept);
                    let role = match t.role {
                        Role::Constant | Role::Whole => t.role,
                        _ => Role::Plain,
                    };
                    return self.tensor(Tensor { device, role, ..t });
                }
                v
            }
            // `self.shift = nn.Parameter(shift) if trainable else shift`: only the plain alternative is marked.
            Value::Choice(_) => self.each(v, &mut |i, v| i.kept(v, at, depth)),
            Value::Seq(s) if depth < 4 => {
                let items: Vec<Value> =
                    self.seq_items(s).iter().map(|&v| self.kept(v, at, depth + 1)).collect();
                self.seq(&items)
            }
            Value::Many(m) if depth < 4 => {
                let item = *self.t.values.get(m);
                let item = self.kept(item, at, depth + 1);
                self.many(item)
            }
            Value::Object(id)
                if matches!(
                    self.obj(id).kind,
                    ObjKind::List { module: false } | ObjKind::Dict { module: false }
                ) =>
            {
                let content = self.own(id);
                let content = self.kept(content, at, depth);
                self.set_own(id, content);
                v
            }
            // An object of the project that is no module: `.to()` of the module does not move it.
            Value::Object(id)
                if depth < 2 && self.obj(id).kind == ObjKind::Instance && self.obj(id).outer.is_none() =>
            {
                for (_, cell) in self.obj(id).attrs.clone() {
                    let held = self.store.get(cell);
                    if let Value::Tensor(_) = held {
                        let held = self.kept(held, at, depth + 1);
                        self.store.set(cell, held);
                    }
                }
                v
            }
            v => v,
        }
    }

    /// An instance of a class of another library, or a loaded instance: a module on the CPU.
    pub(crate) fn foreign_instance(&mut self, class: Option<ClassKey>, args: &Args, e: ExprId) -> Value {
        let device = self.restored_to(args, e);
        let id = self.object(ObjKind::ForeignModule(None), class, Value::Device(device));
        self.made_in_half(id, args, e);
        Value::Object(id)
    }

    /// The device of a module that another library makes or loads with these arguments.
    pub(crate) fn restored_to(&mut self, args: &Args, e: ExprId) -> Dd {
        let placed = args.open || PLACE.all().iter().any(|k| args.keyword(k).is_some());
        match args.keyword("device_map") {
            _ if placed => self.unknown_device(),
            Some((Value::None, _)) | None => self.default_device_at(e, Reason::Module),
            Some((map, at)) => {
                let device = self.mapped_device(map, at);
                self.because(device, e, Reason::Made)
            }
        }
    }

    /// The device for `device_map="auto"`: one GPU holds the whole model. Several GPUs share it, with hooks that move
    /// the inputs of each part (accelerate/big_modeling.py, `dispatch_model`).
    fn mapped_device(&mut self, map: Value, at: ExprId) -> Dd {
        let spread = match map {
            Value::Str(s, _) => SPREAD.has(s.as_str()),
            Value::Device(_) => false,
            _ => return self.unknown_device(),
        };
        let unknown = self.unknown_device();
        let device = match self.as_device(map, at) {
            Some(d) if !spread => d,
            _ => self.at(Device::CudaSome, NO_ORIGIN),
        };
        let there = self.available(None);
        let device = self.ite_device(there, device, unknown);
        if !spread {
            return device;
        }
        let several = self.at_least(2);
        self.ite_device(several, unknown, device)
    }

    /// A tensor that a module owns, on its device.
    pub(crate) fn owned_tensor(&mut self, id: ObjId, e: ExprId) -> Value {
        let device = match self.own(id) {
            Value::Device(d) => d,
            _ => self.unknown_device(),
        };
        let device = if self.d.as_leaf(device).is_some_and(|p| self.t.places.get(p).1 == NO_ORIGIN) {
            self.because(device, e, Reason::Module)
        } else {
            device
        };
        self.parameter(device)
    }
}

/// Whether a subclass of this class may be a module. Any class may have these bases.
pub(crate) fn may_be_module(base: Sym) -> bool {
    let text = base.as_str();
    let name = text
        .strip_prefix("abc.")
        .or_else(|| text.strip_prefix("typing.").or_else(|| text.strip_prefix("typing_extensions.")));
    !name.is_some_and(|name| OF_ANY_CLASS.has(name))
}
