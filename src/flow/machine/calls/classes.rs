//! Classes of the project: what they are, and making instances.

use super::args::Args;
use crate::flow::domain::diagram::Dd;
use crate::flow::domain::value::{Closure, Device, NO_ORIGIN, ObjId, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{ClassId, Expr, ExprId, Stmt};
use crate::link::{ClassKey, Resolved};
use crate::sym::Sym;
use crate::torch::{Base, Decorator};

/// The maps by which a model is spread over all GPUs.
const SPREAD: &[&str] = &["auto", "balanced", "balanced_low_0", "sequential"];

/// How a function in a class body takes its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MethodKind {
    Normal,
    Static,
    Class,
    Property,
}

impl Interp<'_> {
    /// `class` reached. Bodies are not run: methods and plain variables are looked up when asked for.
    pub(crate) fn define_class(&mut self, class: ClassId) -> Value {
        let module = self.here().module;
        let key = ClassKey { module, class };
        for &(_, f) in &self.program.get(module).ir.class(class).methods {
            self.names.def_paths.insert((module, f), self.path);
            self.check_tests_of_defaults(f);
        }
        self.check_tests_of_class(class);
        self.runs_at_definition_of_class(class);
        Value::Class(key)
    }

    /// Is it an `nn.Module`, as far as bases in sight tell?
    pub(crate) fn is_module_class(&self, key: ClassKey) -> bool {
        let info = self.program.class(key);
        info.externals
            .iter()
            .any(|&path| crate::torch::base_class(path).is_some_and(|b| b.kind == Base::Module))
            || (info.unknown_base || info.externals.iter().any(|&path| may_be_module(path)))
                && (self.has_forward_of_module(key)
                    || info.externals.iter().all(|&path| crate::torch::base_class(path).is_none())
                        && self.program.registers_state(key))
    }

    /// Has the class a `forward` like a module's? One that is given nothing says little, unless the class has layers.
    fn has_forward_of_module(&self, key: ClassKey) -> bool {
        let Some((m, f)) = self.program.find_method(key, self.known.forward) else { return false };
        self.program.get(m).ir.function(f).params.len() > 1
            || self.program.registers_state(key)
            || self.program.class(key).mro.iter().any(|k| {
                let ir = &self.program.get(k.module).ir;
                let span = ir.class(k.class).span;
                ir.calls().any(|call| {
                    span.contains(ir.span(call.func))
                        && matches!(self.program.resolve_expr(k.module, call.func),
                            Some(Resolved::External(path)) if crate::torch::module(path).is_some())
                })
            })
    }

    /// Is it a `torch.autograd.Function`?
    pub(crate) fn is_autograd_function(&self, key: ClassKey) -> bool {
        let function = |b: crate::torch::BaseFact| b.kind == Base::Function;
        self.program
            .class(key)
            .externals
            .iter()
            .any(|&path| crate::torch::base_class(path).is_some_and(function))
    }

    /// Does a framework move such modules, or their inputs, for the user?
    pub(crate) fn is_moved_for_user(&self, key: ClassKey) -> bool {
        let info = self.program.class(key);
        info.externals.iter().any(|&path| crate::torch::base_class(path).is_some_and(|b| b.moves_for_user))
    }

    /// A variable of the class body: `device = "cuda"`.
    pub(crate) fn class_variable(&mut self, key: ClassKey, name: Sym) -> Option<Value> {
        let known = self.names.class_cells.get(&(key, name)).map(|&cell| self.store.get(cell));
        if let Some(v) = known.filter(|&v| v != Value::Absent) {
            return Some(v);
        }
        let v = self.class_variable_as_written(key, name)?;
        // A list or dict is one for all that ask for it.
        if let Value::Object(_) = v {
            self.set_class_variable(key, name, v);
        }
        Some(v)
    }

    /// `Config.device = "cpu"`
    pub(crate) fn set_class_variable(&mut self, key: ClassKey, name: Sym, v: Value) {
        let cell = match self.names.class_cells.get(&(key, name)) {
            Some(&cell) => cell,
            None => {
                let cell = self.store.alloc(1);
                self.names.class_cells.insert((key, name), cell);
                cell
            }
        };
        self.store.set(cell, v);
    }

    fn class_variable_as_written(&mut self, key: ClassKey, name: Sym) -> Option<Value> {
        let ir = &self.program.get(key.module).ir;
        let scope = ir.function(ir.class(key.class).body);
        if !scope.slots.contains(&name) {
            return None;
        }
        let body = scope.body;
        let found = ir.block(body).iter().rev().find_map(|&s| match ir.stmt(s) {
            Stmt::Assign { targets, value } => {
                let named =
                    |&t: &ExprId| matches!(ir.expr(t), Expr::Var(v) if self.slot_name(key, v) == Some(name));
                ir.list(*targets).iter().any(named).then_some(*value)
            }
            Stmt::AnnAssign { target, value: Some(value), .. } => {
                matches!(ir.expr(*target), Expr::Var(v) if self.slot_name(key, v) == Some(name))
                    .then_some(*value)
            }
            _ => None,
        })?;
        Some(self.eval_in(key.module, self.program.get(key.module).ir.class(key.class).body, found))
    }

    pub(crate) fn slot_name(&self, key: ClassKey, var: crate::ir::Var) -> Option<Sym> {
        let ir = &self.program.get(key.module).ir;
        match var {
            crate::ir::Var::Local(slot) => {
                ir.function(ir.class(key.class).body).slots.get(slot as usize).copied()
            }
            _ => None,
        }
    }

    /// How a method takes its receiver, by its decorators.
    pub(crate) fn method_kind(&self, c: Closure) -> MethodKind {
        let ir = &self.program.get(c.module).ir;
        let function = ir.function(c.func);
        for &d in ir.list(function.decorators) {
            let fact = match self.program.resolve_expr(c.module, d) {
                Some(Resolved::External(path)) => {
                    crate::torch::call(path).and_then(|f| f.decorator).or_else(|| builtin_decorator(path))
                }
                _ => None,
            };
            match fact {
                Some(Decorator::Static) => return MethodKind::Static,
                Some(Decorator::Class) => return MethodKind::Class,
                Some(Decorator::Property) => return MethodKind::Property,
                _ => {}
            }
        }
        MethodKind::Normal
    }

    /// `Class(args)`
    pub(crate) fn instantiate(&mut self, key: ClassKey, args: &Args, e: ExprId) -> Value {
        if self.is_remade(key) {
            return self.unknown_call(Value::Unknown, args, e);
        }
        let id = self.new_instance(key, e);
        // Whatever it makes of them, it brings its inputs along.
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

    /// A module that was given a device and shows nothing that it owns has put it there, or not.
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

    /// Runs the constructor of a submodule that was made without, now that somebody asks for a part of it.
    /// True if it may have that part now.
    pub(crate) fn build_now(&mut self, id: ObjId, e: ExprId) -> bool {
        let built = Sym::new("__init__");
        let (true, Some(key)) = (self.calls.unbuilt.contains_key(&id), self.obj(id).class) else {
            return false;
        };
        // Its own methods are interpreted for themselves.
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
        // Where it has not gone since it was made, its constructor says where it is.
        if let Value::Device(d) = device
            && !self.is_as_made(d)
        {
            self.move_module(id, d);
        }
        true
    }

    /// Is it where a module was made, and where nobody has moved it?
    pub(crate) fn is_as_made(&self, d: crate::flow::domain::diagram::Dd) -> bool {
        let origin = self.d.as_leaf(d).map(|leaf| self.t.places.get(leaf).1);
        origin.is_some_and(|o| self.t.origins.get(o.0).reason == Reason::Module)
    }

    /// An instance before its `__init__`.
    pub(crate) fn new_instance(&mut self, key: ClassKey, e: ExprId) -> ObjId {
        if !self.is_module_class(key) {
            return self.object(ObjKind::Instance, Some(key), Value::Absent);
        }
        // A wrapper is where its module is.
        let device = if self.is_moved_for_user(key) || self.wraps_module(key) {
            self.unknown_device()
        } else {
            self.default_device_at(e, Reason::Module)
        };
        self.object(ObjKind::Module, Some(key), Value::Device(device))
    }

    /// `class Parallel(nn.DataParallel)`
    fn wraps_module(&self, key: ClassKey) -> bool {
        self.program
            .class(key)
            .externals
            .iter()
            .any(|&path| crate::flow::evidence::isinstance::is_wrapper_class(path))
    }

    /// Is a module's constructor being interpreted?
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

    /// A value that a module's constructor keeps: tensors in it that are not registered say so. In a container a
    /// buffer is only an alias, which goes stale when the module moves; a parameter moves in place.
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
            // `self.shift = nn.Parameter(shift) if trainable else shift`: where it is the plain one.
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
            // An object of the project that is no module: `.to()` of the module passes it by.
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

    /// An instance of a class that another library defines, or restored from somewhere: a module on the CPU.
    pub(crate) fn foreign_instance(&mut self, class: Option<ClassKey>, args: &Args, e: ExprId) -> Value {
        let device = self.restored_to(args, e);
        let id = self.object(ObjKind::ForeignModule(None), class, Value::Device(device));
        self.made_in_half(id, args, e);
        Value::Object(id)
    }

    /// Where a module is that another library has made, or that was restored from somewhere with such arguments.
    pub(crate) fn restored_to(&mut self, args: &Args, e: ExprId) -> Dd {
        let placed = args.open
            || ["device", "low_cpu_mem_usage", "quantization_config", "load_in_8bit", "load_in_4bit"]
                .iter()
                .any(|k| args.keyword(k).is_some());
        match args.keyword("device_map") {
            _ if placed => self.unknown_device(),
            Some((Value::None, _)) | None => self.default_device_at(e, Reason::Module),
            Some((map, at)) => {
                let device = self.mapped_device(map, at);
                self.because(device, e, Reason::Made)
            }
        }
    }

    /// `device_map="auto"`: one GPU has all of the model, and several share it, with hooks that bring each part its
    /// inputs (accelerate/big_modeling.py, `dispatch_model`).
    fn mapped_device(&mut self, map: Value, at: ExprId) -> Dd {
        let spread = match map {
            Value::Str(s, _) => SPREAD.contains(&s.as_str()),
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

fn builtin_decorator(path: Sym) -> Option<Decorator> {
    match path.as_str() {
        "builtins.staticmethod" => Some(Decorator::Static),
        "builtins.classmethod" => Some(Decorator::Class),
        "builtins.property" => Some(Decorator::Property),
        _ => None,
    }
}

/// May what is derived from this class be a module? These are given to any class.
fn may_be_module(base: Sym) -> bool {
    let text = base.as_str();
    let name = text
        .strip_prefix("abc.")
        .or_else(|| text.strip_prefix("typing.").or_else(|| text.strip_prefix("typing_extensions.")));
    !matches!(name, Some("ABC" | "Generic" | "Protocol"))
}
