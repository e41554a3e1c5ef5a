//! Method calls, by the kind of receiver.

use crate::flow::domain::value::{BoundId, ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::link::ClassKey;
use crate::sym::Sym;
use crate::words::Words;

static MOVES: Words = Words::of("move to a device");
static OF_MODULE_LISTS: Words = Words::of("methods of module lists");
static OF_MODULE_DICTS: Words = Words::of("methods of module dicts");

impl Interp<'_> {
    pub(crate) fn super_attr(&mut self, receiver: Value, name: Sym, e: ExprId) -> Value {
        let Some(v) = self.super_function(receiver, name) else { return self.result_of(e) };
        match v {
            Value::Closure(c) => self.bound(receiver, Some(c), name),
            v => v,
        }
    }

    /// The next definition of a method in the method resolution order, after the class whose method is running.
    fn super_function(&mut self, receiver: Value, name: Sym) -> Option<Value> {
        let mut at = self.frame;
        let class = loop {
            let frame = &self.frames[at.0 as usize];
            if let Some(c) = frame.class {
                break c;
            }
            at = frame.parent?;
        };
        let start = match receiver {
            Value::Object(id) => self.obj(id).class?,
            Value::Class(key) => key,
            _ => class,
        };
        let program = self.program;
        let mro = &program.class(start).mro;
        let after = mro.iter().position(|&k| k == class).map_or(0, |i| i + 1);
        for &k in &mro[after..] {
            let methods = &program.get(k.module).ir.class(k.class).methods;
            if let Some(&(_, f)) = methods.iter().rev().find(|(n, _)| *n == name) {
                return Some(self.closure(k.module, f, None));
            }
        }
        None
    }

    /// Calls `receiver.name(args)`. `base` is the receiver's expression.
    pub(crate) fn call_method(
        &mut self,
        receiver: Value,
        name: Sym,
        args: &Args,
        e: ExprId,
        base: ExprId,
    ) -> Value {
        self.may_wait(name);
        // `torch.jit.script(net).save(file)`
        if name.as_str() == "save" && !matches!(receiver, Value::External(_)) {
            self.remember_saved(0, args);
        }
        // `stack.enter_context(torch.device("cuda"))` holds until the stack is closed, which the engine does not
        // follow.
        if let ("enter_context", Some(&(manager @ (Value::Device(_) | Value::Choice(_)), at))) =
            (name.as_str(), args.positional.first())
            && self.enter(manager, at)
        {
            let (cell, unknown) = (self.tensors.default_device, self.unknown_device());
            self.store.set(cell, Value::Device(unknown));
        }
        if matches!(receiver, Value::Unknown | Value::Outer(_)) && MOVES.has(name.as_str()) {
            self.is_needed(e);
        }
        // `if isinstance(layer, other.Linear): layer.cuda(device)`: the method belongs to the other library's class.
        if !self.evidence.foreign_kinds.is_empty()
            && MOVES.has(name.as_str())
            && self.is_foreign_here(receiver)
        {
            return self.result_of(e);
        }
        match receiver {
            Value::Choice(_) => self.each(receiver, &mut |i, r| i.call_method(r, name, args, e, base)),
            Value::Tensor(t) => {
                // Tensors have no modes: the value is a module, known only by its last move.
                if !self.get_tensor(t).certain && args.positional.len() < 2 {
                    self.module_mode(receiver, name.as_str(), args, e);
                }
                self.tensor_method(receiver, name, args, e, base)
            }
            Value::Outer(o) => match self.environment_method(o, name, e) {
                Some(v) => v,
                None => self.outer_method(o, name, args, e, base),
            },
            Value::Object(id) => self.object_method(id, name, args, e, base),
            Value::External(path) => {
                let path = path.dotted(name);
                self.call_external(path, args, e)
            }
            Value::Device(_) | Value::Str(..) | Value::Host(_) => self.host_method(receiver, name, args, e),
            // `self.__dict__.items()`
            Value::Bound(id) if self.t.bounds.get(id.0).name.as_str() == "__dict__" => {
                self.fields_method(receiver, id, name, args, e, base)
            }
            Value::Bound(id) if self.t.bounds.get(id.0).name.as_str() == "super" => {
                self.super_method(id, name, args, e, base)
            }
            Value::Class(key) => self.class_call(key, name, args, e),
            Value::Seq(_) | Value::Many(_) => self.result_of(e),
            _ => {
                let f = self.attr(receiver, name, base);
                self.call_value(f, args, e)
            }
        }
    }

    /// A method of an object's attributes as a dict: `self.__dict__.items()`.
    fn fields_method(
        &mut self,
        dict: Value,
        id: BoundId,
        name: Sym,
        args: &Args,
        e: ExprId,
        base: ExprId,
    ) -> Value {
        if name.as_str() == "update" && self.updates_fields(self.t.bounds.get(id.0).receiver, args) {
            return Value::None;
        }
        let fields = match self.t.bounds.get(id.0).receiver {
            Value::Object(o) if name.as_str() != "update" => self.fields_as_dict(o),
            _ => None,
        };
        match fields {
            Some(fields) => self.call_method(fields, name, args, e, base),
            None => self.unknown_call(dict, args, e),
        }
    }

    /// Calls `super().name(…)`.
    fn super_method(&mut self, id: BoundId, name: Sym, args: &Args, e: ExprId, base: ExprId) -> Value {
        let bound = *self.t.bounds.get(id.0);
        match self.super_function(bound.receiver, name) {
            Some(f) => {
                let Value::Closure(c) = f else { return Value::Unknown };
                let c = *self.t.closures.get(c.0);
                self.call_function(c.module, c.func, c.frame, Some(bound.receiver), args, e)
            }
            None => match bound.receiver {
                Value::Object(id) if self.is_module_object(id) && name != self.known.init => {
                    self.module_method(id, name, args, e, base)
                }
                _ => {
                    self.call_foreign_init(args);
                    Value::None
                }
            },
        }
    }

    fn class_call(&mut self, key: ClassKey, name: Sym, args: &Args, e: ExprId) -> Value {
        let Some(v) = self.class_attr(key, name) else {
            // `Model.from_pretrained(…)`, `Lightning.load_from_checkpoint(…)`: an instance with unknown state.
            if self.is_module_class(key) && matches!(name.as_str(), "from_pretrained" | "from_config") {
                return self.foreign_instance(Some(key), args, e);
            }
            if name.as_str() == "apply" && self.is_autograd_function(key) {
                return self.apply_function(key, args, e);
            }
            return self.unknown_call(Value::Unknown, args, e);
        };
        let Value::Closure(c) = v else { return self.call_value(v, args, e) };
        let closure = *self.t.closures.get(c.0);
        let receiver = match self.method_kind(closure) {
            crate::flow::machine::classes::define::MethodKind::Class => Some(Value::Class(key)),
            _ => None,
        };
        self.call_function(closure.module, closure.func, closure.frame, receiver, args, e)
    }

    /// `Function.apply(…)` of a `torch.autograd.Function` calls its `forward`. The first argument is a context, unless
    /// the class has `setup_context` (torch/autograd/function.py).
    fn apply_function(&mut self, key: ClassKey, args: &Args, e: ExprId) -> Value {
        let Some(forward) = self.class_attr(key, self.known.forward) else {
            return self.unknown_call(Value::Unknown, args, e);
        };
        if self.class_attr(key, Sym::new("setup_context")).is_some() {
            return self.call_value(forward, args, e);
        }
        let context = std::iter::once((Value::Unknown, e));
        let positional = context.chain(args.positional.iter().copied()).collect();
        self.call_value(forward, &Args { positional, ..args.clone() }, e)
    }

    fn object_method(&mut self, id: ObjId, name: Sym, args: &Args, e: ExprId, base: ExprId) -> Value {
        let field = self.get_field(id, name);
        if field != Value::Absent {
            return self.call_value(field, args, e);
        }
        if let Some(key) = self.obj(id).class
            && let Some(v) = self.class_attr(key, name)
        {
            // `model.forward(x)` builds the same graph as a call of the model.
            if name == self.known.forward && self.is_module_object(id) {
                self.check_evaluation(id, e);
            }
            let f = self.bind_method(v, id, key, name, e);
            return self.call_value(f, args, e);
        }
        match self.obj(id).kind {
            ObjKind::Module | ObjKind::ForeignModule(_) => self.module_method(id, name, args, e, base),
            ObjKind::List { module } => {
                if module && !OF_MODULE_LISTS.has(name.as_str()) {
                    return self.module_method(id, name, args, e, base);
                }
                self.list_method(id, name, args, e)
            }
            ObjKind::Dict { module } => {
                if module && !OF_MODULE_DICTS.has(name.as_str()) {
                    return self.module_method(id, name, args, e, base);
                }
                self.dict_method(id, name, args, e)
            }
            ObjKind::Loader
            | ObjKind::Items
            | ObjKind::Parser
            | ObjKind::Generator
            | ObjKind::Distribution(_)
            | ObjKind::Namespace
            | ObjKind::Inert
            | ObjKind::Partial
            | ObjKind::TupleClass => self.foreign_method(id, name, args, e),
            ObjKind::Instance if name.as_str() == "_replace" => {
                self.replaced_in_tuple(id, args).unwrap_or_else(|| self.foreign_method(id, name, args, e))
            }
            // `unittest.TestCase`: these methods raise.
            ObjKind::Instance if matches!(name.as_str(), "skipTest" | "fail") => {
                self.path = crate::flow::domain::diagram::FALSE;
                Value::None
            }
            ObjKind::Instance => {
                let v = match self.obj(id).outer {
                    Some(o) => Value::Outer(self.outer_attr(o, name)),
                    None => Value::Unknown,
                };
                self.unknown_call(v, args, e)
            }
        }
    }

    /// Reads `device.index`.
    pub(crate) fn device_index(&mut self, d: crate::flow::domain::diagram::Dd, e: ExprId) -> Value {
        use crate::flow::domain::value::Device::{Cpu, Cuda, Meta};
        let known = self.d.as_leaf(d).map(|p| self.t.places.get(p).0);
        match known {
            Some(Cuda(None) | Cpu | Meta) => Value::None,
            Some(Cuda(Some(n))) => Value::Int(i64::from(n)),
            _ => self.result_of(e),
        }
    }
}
