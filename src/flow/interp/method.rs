//! Attributes and method calls, by what the receiver is.

use super::super::value::{Closure, Device, Host, NO_ORIGIN, ObjId, OuterId, OuterKey, Value};
use super::args::Args;
use super::shown::{only_tensors_do, only_tensors_have, only_tensors_take};
use super::{Interp, ObjKind};
use crate::ir::ExprId;
use crate::link::ClassKey;
use crate::sym::Sym;
use crate::torch;

/// Methods of models and tensors that nothing else has.
const MODELS_DO: &[&str] =
    &["to", "cuda", "cpu", "eval", "state_dict", "parameters", "named_parameters", "half"];

/// Those of them that tensors have as well.
const MOVES: &[&str] = &["to", "cuda", "cpu", "half"];

impl Interp<'_> {
    /// `b.name`
    pub(super) fn attr(&mut self, b: Value, name: Sym, e: ExprId) -> Value {
        match b {
            Value::Choice(_) => match self.each(b, &mut |i, v| i.attr(v, name, e)) {
                Value::Unknown | Value::Choice(_) if name.as_str() == "is_cuda" => {
                    Value::Bool(self.unknown_on(Device::Cuda(None), e))
                }
                v => v,
            },
            Value::External(path) => self.external_attr(path, name),
            Value::Module(m) => match self.program.lookup(m, name) {
                Some(r) => self.resolved(r),
                None => self.result_of(e),
            },
            Value::Tensor(_) => self.tensor_attr(b, name, e),
            Value::Outer(o) => self.outer_attribute(o, name, e),
            Value::Object(id) => self.object_attr(id, name, e),
            Value::Device(d) => match name.as_str() {
                // Comparing the type compares the device without its index.
                "type" => {
                    let kind = self.without_index(d);
                    self.as_text(kind, e)
                }
                "index" => self.device_index(d, e),
                _ => self.result_of(e),
            },
            Value::Class(key) => match self.class_attr(key, name) {
                Some(v) => v,
                None if name.as_str() == "apply" && self.is_autograd_function(key) => {
                    self.bound(Value::Class(key), None, name)
                }
                None => self.result_of(e),
            },
            Value::Bound(id) => {
                let bound = *self.t.bounds.get(id.0);
                if bound.name.as_str() == "super" && bound.function.is_none() {
                    return self.super_attr(bound.receiver, name, e);
                }
                self.result_of(e)
            }
            Value::Host(Host::Doubles) if matches!(name.as_str(), "T" | "real" | "flat") => b,
            Value::Host(Host::Array | Host::Doubles) => Self::ARRAY,
            // Of what `max(dim=0)`, `sort()` and the like give.
            Value::Seq(id) => match (&*self.seq_items(id), name.as_str()) {
                (&[values, _], "values") => values,
                (&[_, indices], "indices") => indices,
                _ => self.result_of(e),
            },
            // `torch.cuda.get_device_properties(0).total_memory`
            Value::Host(_) if name.as_str() == "total_memory" => Value::Host(Host::Memory),
            _ if name.as_str() == "is_cuda" => Value::Bool(self.unknown_on(Device::Cuda(None), e)),
            _ => self.result_of(e),
        }
    }

    fn without_index(&mut self, d: super::Dd) -> super::Dd {
        let places = &mut self.t.places;
        self.d.map(d, &mut |p| match *places.get(p) {
            (Device::Cuda(Some(_)) | Device::CudaSome, o) => places.add((Device::Cuda(None), o)),
            _ => p,
        })
    }

    fn external_attr(&mut self, path: Sym, name: Sym) -> Value {
        Value::External(path.dotted(name))
    }

    fn outer_attribute(&mut self, o: OuterId, name: Sym, e: ExprId) -> Value {
        let text = name.as_str();
        if only_tensors_have(name) {
            self.tensor_proofs.insert(o);
        }
        if !self.outer_writes.is_empty() {
            let attr = self.outer_attr(o, name);
            if let Some(written) = self.written_outside(attr) {
                return written;
            }
        }
        match text {
            "device" => {
                // A tensor's or a module's device, an option of that name: the same symbol either way.
                let d = self.device_symbol(o, e);
                Value::Device(d)
            }
            "is_cuda" => {
                let d = self.device_of_outer(o, e);
                Value::Bool(self.is_device(d, Device::Cuda(None), e))
            }
            // Of a `device` parameter, as of any device.
            "type" if self.t.get_outer(o).device => {
                let place = self.place(e);
                let origin = self.origin(place, super::Reason::Given, NO_ORIGIN);
                Value::Device(self.at(Device::Named(o), origin))
            }
            "is_mps" => {
                let d = self.device_of_outer(o, e);
                Value::Bool(self.is_device(d, Device::Other(crate::world::Backend::Mps), e))
            }
            "shape" | "ndim" => Self::NUMBER,
            // Of `accelerate`: the number among all processes.
            "process_index" if self.t.get_outer(o).text.to_ascii_lowercase().contains("accelerator") => {
                Value::Host(Host::Rank)
            }
            "data" | "T" | "mT" | "grad" | "real" | "imag" if self.is_tensorish(o) => {
                self.tensor_of_outer(o, e)
            }
            _ => Value::Outer(self.outer_attr(o, name)),
        }
    }

    /// `x.device` of an outside thing: where a tensor or module lives, or what an option says.
    fn device_symbol(&mut self, o: OuterId, e: ExprId) -> super::Dd {
        let outer = self.t.get_outer(o);
        let config = matches!(
            outer.text.rsplit('.').next().unwrap_or(""),
            "args"
                | "cfg"
                | "config"
                | "opt"
                | "opts"
                | "params"
                | "hparams"
                | "options"
                | "conf"
                | "flags"
                | "FLAGS"
                | "settings"
        );
        if config {
            let named = self.outer_attr(o, self.known.device);
            let place = self.place(e);
            let origin = self.origin(place, super::Reason::Given, NO_ORIGIN);
            return self.at(Device::Named(named), origin);
        }
        self.device_of_outer(o, e)
    }

    pub(super) fn is_tensorish(&self, o: OuterId) -> bool {
        self.tensor_proofs.contains(&o) || self.t.get_outer(o).tensor
    }

    /// The value; a number for an outside thing that is used as a size.
    pub(super) fn number_if_size(&self, v: Value) -> Value {
        match v {
            Value::Outer(o) if self.size_proofs.contains(&o) => Self::NUMBER,
            v => v,
        }
    }

    /// The outside thing, taken as a tensor (which must still be shown).
    pub(super) fn tensor_of_outer(&mut self, o: OuterId, e: ExprId) -> Value {
        if self.size_proofs.contains(&o) {
            return Self::NUMBER;
        }
        let device = self.device_of_outer(o, e);
        self.possible_tensor(device)
    }

    fn object_attr(&mut self, id: ObjId, name: Sym, e: ExprId) -> Value {
        let v = self.get_field(id, name);
        if v != Value::Absent {
            return self.property(v, id, e);
        }
        if let Some(key) = self.obj(id).class
            && let Some(v) = self.class_attr(key, name)
        {
            return self.bind_method(v, id, key, name, e);
        }
        if self.obj(id).kind == ObjKind::Module && self.build_now(id, e) {
            let v = self.get_field(id, name);
            if v != Value::Absent {
                return v;
            }
        }
        match self.obj(id).kind {
            ObjKind::Module | ObjKind::Instance if name.as_str() == "__dict__" => {
                self.bound(Value::Object(id), None, name)
            }
            ObjKind::ForeignModule(_)
            | ObjKind::Module
            | ObjKind::List { module: true }
            | ObjKind::Dict { module: true } => self.module_attr(id, name, e),
            ObjKind::Namespace => self.argument(id, name, e),
            ObjKind::Generator if name.as_str() == "device" => self.own(id),
            ObjKind::List { .. } | ObjKind::Dict { .. } => match self.part_by_name(id, name) {
                Some(part) => part,
                None => self.bound(Value::Object(id), None, name),
            },
            ObjKind::Inert if name.as_str() == "state" => {
                self.optimizer_escapes(id);
                self.result_of(e)
            }
            _ => match self.obj(id).outer {
                Some(o) => Value::Outer(self.outer_attr(o, name)),
                None => self.result_of(e),
            },
        }
    }

    fn property(&mut self, v: Value, _id: ObjId, _e: ExprId) -> Value {
        v
    }

    /// What a class's attribute becomes when it is read through an instance.
    fn bind_method(&mut self, v: Value, id: ObjId, key: ClassKey, name: Sym, e: ExprId) -> Value {
        let Value::Closure(c) = v else { return v };
        let closure = *self.t.closures.get(c.0);
        match self.method_kind(closure) {
            super::class::MethodKind::Property => {
                let args = Args::default();
                let v = self.call_function(
                    closure.module,
                    closure.func,
                    closure.frame,
                    Some(Value::Object(id)),
                    &args,
                    e,
                );
                match (v, self.obj(id).outer) {
                    // However the object finds its device, it is its own.
                    (Value::Outer(o), Some(receiver))
                        if name == self.known.device
                            && matches!(self.t.get_outer(o).key, OuterKey::Result { .. }) =>
                    {
                        self.attr(Value::Outer(receiver), name, e)
                    }
                    _ => v,
                }
            }
            super::class::MethodKind::Static => v,
            super::class::MethodKind::Class => self.bound(Value::Class(key), Some(c), name),
            super::class::MethodKind::Normal
                if name == self.known.device && self.sets_a_property(closure) =>
            {
                match self.obj(id).outer {
                    Some(receiver) => self.attr(Value::Outer(receiver), name, e),
                    None => self.result_of(e),
                }
            }
            super::class::MethodKind::Normal if self.sets_a_property(closure) => match self.getter(closure) {
                Some(Closure { module, func, frame }) => {
                    let this = Some(Value::Object(id));
                    self.call_function(module, func, frame, this, &Args::default(), e)
                }
                None => self.result_of(e),
            },
            super::class::MethodKind::Normal => self.bound(Value::Object(id), Some(c), name),
        }
    }

    fn super_attr(&mut self, receiver: Value, name: Sym, e: ExprId) -> Value {
        let Some(v) = self.super_function(receiver, name) else { return self.result_of(e) };
        match v {
            Value::Closure(c) => self.bound(receiver, Some(c), name),
            v => v,
        }
    }

    /// The next definition of a method after the class whose method is running.
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

    /// `receiver.name(args)`; `base` is the receiver's expression.
    pub(super) fn call_method(
        &mut self,
        receiver: Value,
        name: Sym,
        args: &Args,
        e: ExprId,
        base: ExprId,
    ) -> Value {
        self.may_wait(name);
        if matches!(receiver, Value::Unknown | Value::Outer(_))
            && matches!(name.as_str(), "to" | "cuda" | "cpu")
        {
            self.is_needed(e);
        }
        match receiver {
            Value::Choice(_) => self.each(receiver, &mut |i, r| i.call_method(r, name, args, e, base)),
            Value::Tensor(_) => self.tensor_method(receiver, name, args, e, base),
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
                let fields = match self.t.bounds.get(id.0).receiver {
                    Value::Object(o) if name.as_str() != "update" => self.fields_as_dict(o),
                    _ => None,
                };
                match fields {
                    Some(fields) => self.call_method(fields, name, args, e, base),
                    None => self.unknown_call(receiver, args, e),
                }
            }
            Value::Bound(id) if self.t.bounds.get(id.0).name.as_str() == "super" => {
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
                            self.call_foreign_init(bound.receiver, name, args, e);
                            Value::None
                        }
                    },
                }
            }
            Value::Bound(id) if self.own_attributes(id, name).is_some() => {
                let Some(items) = self.own_attributes(id, name) else { return Value::Unknown };
                self.seq(&items)
            }
            Value::Class(key) => self.class_call(key, name, args, e),
            Value::Seq(_) | Value::Many(_) => self.result_of(e),
            _ => {
                let f = self.attr(receiver, name, base);
                self.call_value(f, args, e)
            }
        }
    }

    fn class_call(&mut self, key: ClassKey, name: Sym, args: &Args, e: ExprId) -> Value {
        let Some(v) = self.class_attr(key, name) else {
            // `Model.from_pretrained(…)`, `Lightning.load_from_checkpoint(…)`: an instance, state unknown.
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
            super::class::MethodKind::Class => Some(Value::Class(key)),
            _ => None,
        };
        self.call_function(closure.module, closure.func, closure.frame, receiver, args, e)
    }

    /// `Function.apply(…)` of a `torch.autograd.Function` calls its `forward`, with a context unless `setup_context` gets
    /// that (torch/autograd/function.py).
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
            let f = self.bind_method(v, id, key, name, e);
            return self.call_value(f, args, e);
        }
        match self.obj(id).kind {
            ObjKind::Module | ObjKind::ForeignModule(_) => self.module_method(id, name, args, e, base),
            ObjKind::List { module } => {
                if module && !matches!(name.as_str(), "append" | "extend" | "insert" | "pop") {
                    return self.module_method(id, name, args, e, base);
                }
                self.list_method(id, name, args, e)
            }
            ObjKind::Dict { module } => {
                if module && !matches!(name.as_str(), "items" | "values" | "keys" | "update" | "pop" | "get")
                {
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
            // `unittest.TestCase`: these raise.
            ObjKind::Instance if matches!(name.as_str(), "skipTest" | "fail") => {
                self.path = super::FALSE;
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

    /// `device.index`
    fn device_index(&mut self, d: super::Dd, e: ExprId) -> Value {
        use super::Device::{Cpu, Cuda, Meta};
        let known = self.d.as_leaf(d).map(|p| self.t.places.get(p).0);
        match known {
            Some(Cuda(None) | Cpu | Meta) => Value::None,
            Some(Cuda(Some(n))) => Value::Int(i64::from(n)),
            _ => self.result_of(e),
        }
    }

    /// By its class or its name: a gradient scaler, a scheduler, a sampler. Their states are numbers.
    fn holds_numbers(&self, o: OuterId) -> bool {
        if self.class_outside(o).is_some_and(torch::is_tensorless) {
            return true;
        }
        let text = self.t.get_outer(o).text.to_ascii_lowercase();
        let last = text.rsplit('.').next().unwrap_or_default();
        ["scaler", "sched", "sampler", "loader"].iter().any(|w| last.contains(w))
    }

    /// A method of something from outside.
    fn outer_method(&mut self, o: OuterId, name: Sym, args: &Args, e: ExprId, base: ExprId) -> Value {
        let text = name.as_str();
        if only_tensors_do(name) || only_tensors_take(name, args) {
            self.tensor_proofs.insert(o);
        }
        // A part that is moved may be data; what it is called says more.
        let part = matches!(self.t.get_outer(o).key, OuterKey::Item { .. });
        if MODELS_DO.contains(&text) && !(part && MOVES.contains(&text)) {
            self.used_as_weights(Value::Outer(o));
        }
        if text == "load_state_dict" && !self.holds_numbers(o) {
            for &(v, _) in args.positional.iter().take(1) {
                self.used_as_weights(v);
            }
        }
        if args.positional.len() < 2 {
            self.module_mode(Value::Outer(o), text, args, e);
        }
        match text {
            "items" | "keys" | "values" => {
                let item = Value::Outer(self.outer_item(o, Value::Unknown));
                return match text {
                    "items" => {
                        let pair = self.seq(&[Self::TEXT, item]);
                        self.many(pair)
                    }
                    "values" => self.many(item),
                    // Keys are mostly text, but may be devices as well.
                    _ => self.many(Value::Unknown),
                };
            }
            "get" | "pop" if !args.positional.is_empty() => {
                let key = args.positional[0].0;
                let item = self.outer_item(o, key);
                return self.read_outside(item);
            }
            "to" | "cuda" | "cpu" | "type_as" | "xpu" | "npu" | "mps" | "float" | "half" | "double"
            | "bfloat16" => {
                let t = self.tensor_of_outer(o, e);
                return self.tensor_method(t, name, args, e, base);
            }
            "startswith" => return self.host_method(Value::Outer(o), name, args, e),
            // Only modules have them, and they live with it.
            "parameters" | "buffers" | "named_parameters" | "named_buffers" => {
                let device = self.device_of_outer(o, e);
                let p = self.tensor(super::Tensor {
                    device,
                    dims: super::super::dims::Dims::ANY,
                    role: super::Role::Parameter,
                    certain: true,
                    bytes: None,
                    double: super::FALSE,
                });
                let item = if text.starts_with("named") { self.seq(&[Self::TEXT, p]) } else { p };
                return self.many(item);
            }
            _ => {}
        }
        // `accelerator.pin_memory(tensor)`: no tensor's method.
        if text == "pin_memory" && !args.positional.is_empty() {
            return self.unknown_call(Value::Outer(o), args, e);
        }
        if crate::torch::method(name).is_some()
            && !matches!(
                text,
                "sort"
                    | "copy"
                    | "index"
                    | "count"
                    | "format"
                    | "split"
                    | "add"
                    | "apply"
                    | "update"
                    | "numpy"
                    | "size"
                    | "type"
                    | "map_"
            )
        {
            let t = self.tensor_of_outer(o, e);
            let place = self.place(e);
            let origin = self.origin(place, super::Reason::Given, NO_ORIGIN);
            self.own_results.insert(origin, o);
            return self.tensor_method(t, name, args, e, base);
        }
        if matches!(text, "numpy" | "size" | "type") {
            let t = self.tensor_of_outer(o, e);
            return self.tensor_method(t, name, args, e, base);
        }
        for (v, _) in args.values() {
            self.escape(v, 0);
        }
        // The result of an outside thing's method has an identity by what was called.
        let method = self.outer_attr(o, name);
        if args.values().next().is_none() {
            let key = super::OuterKey::Item { base: method, key: Some(Value::None) };
            let text = self.t.get_outer(method).text.clone();
            let device = super::args::names_device(name.as_str());
            let id = self.t.outer(key.clone(), || super::Outer {
                key,
                text: if text.is_empty() { text } else { format!("{text}()") },
                tensor: false,
                device,
                varies: false,
                with: None,
                default: None,
            });
            return Value::Outer(id);
        }
        let result = self.result_of(e);
        self.lives_near(o, args, result);
        result
    }
}
