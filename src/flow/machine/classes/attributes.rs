//! Attributes, by the kind of receiver.

use crate::flow::domain::diagram::{Dd, FALSE};
use crate::flow::domain::value::Outer;
use crate::flow::domain::value::{Closure, Device, Host, NO_ORIGIN, ObjId, OuterKey, SeqId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::link::ClassKey;
use crate::sym::Sym;
use crate::words::Words;

/// Methods of lists and dicts, and of batches that are dicts.
static OF_CONTAINERS: Words = Words::of("methods of containers");
static ARRAYS_OF_SAME_TYPE: Words = Words::of("attributes with the type of the array");

/// Whether the name is an item of a dict, not a method.
fn is_item(name: Sym) -> bool {
    let name = name.as_str();
    !name.starts_with("__") && !OF_CONTAINERS.has(name)
}

impl Interp<'_> {
    /// Reads `b.name`.
    pub(crate) fn attr(&mut self, b: Value, name: Sym, e: ExprId) -> Value {
        match b {
            Value::Choice(_) => match self.each(b, &mut |i, v| i.attr(v, name, e)) {
                Value::Unknown | Value::Choice(_) if name.as_str() == "is_cuda" => {
                    Value::Bool(self.unknown_on(Device::Cuda(None), e))
                }
                v => v,
            },
            Value::External(path) => match self.program.in_folder(self.here().module, path, name) {
                Some(m) => Value::Module(m),
                None => self.external_attr(path, name),
            },
            Value::Module(m) => match self.program.attribute(self.here().module, m, name) {
                Some(r) => self.resolved(r),
                None => self.result_of(e),
            },
            Value::Tensor(_) => self.tensor_attr(b, name, e),
            Value::Outer(o) => self.outer_attribute(o, name, e),
            Value::Object(id) => self.object_attr(id, name, e),
            Value::Device(d) => self.device_attr(d, name, e),
            Value::Class(key) => self.attr_of_class(key, name, e),
            Value::Bound(id) => {
                let bound = *self.t.bounds.get(id.0);
                if bound.name.as_str() == "super" && bound.function.is_none() {
                    return self.super_attr(bound.receiver, name, e);
                }
                self.result_of(e)
            }
            // A string has no such attribute: the value is a member of an `Enum`, represented by its string.
            Value::Str(..) if name.as_str() == "value" => b,
            Value::Host(Host::Doubles) if ARRAYS_OF_SAME_TYPE.has(name.as_str()) => b,
            Self::NUMBERS if matches!(name.as_str(), "T" | "real") => b,
            Value::Host(Host::Array | Host::Doubles | Host::Numbers) => Self::ARRAY,
            // Attributes of the results of `max(dim=0)`, `sort()` and similar calls.
            Value::Seq(id) => self.named_result(id, name, e),
            // `torch.cuda.get_device_properties(0).total_memory`
            Value::Host(_) if name.as_str() == "total_memory" => Value::Host(Host::Memory),
            _ if name.as_str() == "is_cuda" => Value::Bool(self.unknown_on(Device::Cuda(None), e)),
            _ => self.result_of(e),
        }
    }

    /// Reads `device.type` or `device.index`.
    fn device_attr(&mut self, d: Dd, name: Sym, e: ExprId) -> Value {
        match name.as_str() {
            // A comparison of types ignores the index.
            "type" => {
                let kind = self.without_index(d);
                self.as_text(kind, e)
            }
            "index" => self.device_index(d, e),
            _ => self.result_of(e),
        }
    }

    /// Reads an attribute of a class of the project.
    fn attr_of_class(&mut self, key: ClassKey, name: Sym, e: ExprId) -> Value {
        match self.class_attr(key, name) {
            Some(v) => v,
            None if name.as_str() == "apply" && self.is_autograd_function(key) => {
                self.bound(Value::Class(key), None, name)
            }
            None => self.result_of(e),
        }
    }

    /// Reads a field of a named result: `x.max(dim=0).values`.
    fn named_result(&mut self, id: SeqId, name: Sym, e: ExprId) -> Value {
        match (&*self.seq_items(id), name.as_str()) {
            (&[values, _], "values") => values,
            (&[_, indices], "indices") => indices,
            _ => self.result_of(e),
        }
    }

    fn without_index(&mut self, d: Dd) -> Dd {
        let places = &mut self.t.places;
        self.d.map(d, &mut |p| match *places.get(p) {
            (Device::Cuda(Some(_)) | Device::CudaSome, o) => places.add((Device::Cuda(None), o)),
            _ => p,
        })
    }

    fn external_attr(&mut self, path: Sym, name: Sym) -> Value {
        Value::External(path.dotted(name))
    }

    fn object_attr(&mut self, id: ObjId, name: Sym, e: ExprId) -> Value {
        if name == self.known.training && self.obj(id).kind == ObjKind::Module {
            return self.training_mode(id, e);
        }
        let v = self.get_field(id, name);
        if v != Value::Absent {
            // A tensor of a module in a plain object moves with the module.
            return if self.is_module_object(id) { v } else { self.as_held(v) };
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
                // A dict with its items as attributes, which has no such item as far as is known.
                None if is_item(name) => self.result_of(e),
                None => self.bound(Value::Object(id), None, name),
            },
            ObjKind::Inert if name.as_str() == "state" => {
                self.optimizer_escapes(id);
                self.result_of(e)
            }
            kind => match self.obj(id).outer {
                Some(o) => Value::Outer(self.outer_attr(o, name)),
                None if kind == ObjKind::Instance && self.calls.half_made.contains(&id) => {
                    self.unknown_field(id, name)
                }
                None if kind == ObjKind::Instance && !name.as_str().starts_with("__") => {
                    self.asked_of_getattr(id, name, e)
                }
                None => self.result_of(e),
            },
        }
    }

    /// The result of the class's `__getattr__` for a missing attribute.
    fn asked_of_getattr(&mut self, id: ObjId, name: Sym, e: ExprId) -> Value {
        match self.own_method(id, "__getattr__") {
            Some((m, f)) => {
                let args = Args { positional: vec![(Value::Str(name, NO_ORIGIN), e)], ..Args::default() };
                let path = self.path;
                let v = self.call_function(m, f, None, Some(Value::Object(id)), &args, e);
                if self.path != FALSE && v != Value::Unknown {
                    return v;
                }
                // The method raises, or its result is unknown: the object may have the attribute from elsewhere.
                self.path = path;
                self.result_of(e)
            }
            None => self.result_of(e),
        }
    }

    /// An attribute of an object whose constructor was given up. Each read gives the same symbol.
    pub(crate) fn unknown_field(&mut self, object: ObjId, name: Sym) -> Value {
        let key = OuterKey::Field { object, name };
        let outer = self.t.outer(key.clone(), || Outer::new(key, ""));
        Value::Outer(outer)
    }

    /// The value of a class attribute that is read through an instance.
    pub(crate) fn bind_method(&mut self, v: Value, id: ObjId, key: ClassKey, name: Sym, e: ExprId) -> Value {
        let Value::Closure(c) = v else { return v };
        let closure = *self.t.closures.get(c.0);
        match self.method_kind(closure) {
            crate::flow::machine::classes::define::MethodKind::Property => {
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
                    // The property's device is the object's own, for any implementation.
                    (Value::Outer(o), Some(receiver))
                        if name == self.known.device
                            && matches!(self.t.get_outer(o).key, OuterKey::Result { .. }) =>
                    {
                        self.attr(Value::Outer(receiver), name, e)
                    }
                    (v, Some(receiver)) if self.finds_some_device(v, name) => {
                        self.attr(Value::Outer(receiver), name, e)
                    }
                    _ => v,
                }
            }
            crate::flow::machine::classes::define::MethodKind::Static => v,
            crate::flow::machine::classes::define::MethodKind::Class => {
                self.bound(Value::Class(key), Some(c), name)
            }
            crate::flow::machine::classes::define::MethodKind::Normal
                if name == self.known.device && self.sets_a_property(closure) =>
            {
                match (self.obj(id).outer, self.getter(closure)) {
                    (Some(receiver), _) => self.attr(Value::Outer(receiver), name, e),
                    (None, Some(Closure { module, func, frame })) => {
                        let this = Some(Value::Object(id));
                        self.call_function(module, func, frame, this, &Args::default(), e)
                    }
                    (None, None) => self.result_of(e),
                }
            }
            crate::flow::machine::classes::define::MethodKind::Normal if self.sets_a_property(closure) => {
                match self.getter(closure) {
                    Some(Closure { module, func, frame }) => {
                        let this = Some(Value::Object(id));
                        self.call_function(module, func, frame, this, &Args::default(), e)
                    }
                    None => self.result_of(e),
                }
            }
            crate::flow::machine::classes::define::MethodKind::Normal => {
                self.bound(Value::Object(id), Some(c), name)
            }
        }
    }

    /// Whether a property for a device gives an unknown device. Then the device is a symbol of the object, as for an
    /// object of an unknown class.
    fn finds_some_device(&self, v: Value, name: Sym) -> bool {
        let unknown = |v| match v {
            Value::Unknown => true,
            Value::Device(d) => self.device_leaves(d).iter().any(|&(_, d, _)| d == Device::Unknown),
            Value::Outer(o) => matches!(self.t.get_outer(o).key, OuterKey::Result { .. }),
            _ => false,
        };
        let on_host = |v| matches!(v, Value::Device(d) if self.device_leaves(d).iter().any(|&(_, d, _)| d == Device::Cpu));
        let found = self.values_of(v);
        crate::flow::machine::arguments::args::names_device(name.as_str())
            && found.iter().any(|&v| unknown(v))
            && !found.iter().any(|&v| on_host(v))
    }
}
