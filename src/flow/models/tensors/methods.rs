//! Tensors: their operators, attributes and methods.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{Host, Reason, Role, Tensor, Value};
use crate::flow::evidence::tensor_evidence::no_tensors_take;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::{self};

impl Interp<'_> {
    /// A parameter of a module, on this device.
    pub(crate) fn parameter(&mut self, device: Dd) -> Value {
        self.tensor(Tensor {
            device,
            dims: Dims::ANY,
            role: Role::Parameter,
            certain: true,
            bytes: None,
            double: crate::flow::domain::diagram::FALSE,
        })
    }

    /// Is the value certainly a tensor, and not a dict or tuple of tensors?
    pub(crate) fn is_certain(&self, v: Value) -> bool {
        matches!(v, Value::Tensor(id) if self.get_tensor(id).certain)
    }

    pub(crate) fn tensor_attr(&mut self, v: Value, name: Sym, e: ExprId) -> Value {
        let Value::Tensor(id) = v else { return Value::Unknown };
        let t = self.get_tensor(id);
        if let Some(kind) = crate::flow::models::devices::from_values::asked_for_kind(name) {
            return Value::Bool(self.is_on_kind(t.device, kind, e));
        }
        match name.as_str() {
            "device" => Value::Device(t.device),
            "ndim" => t.dims.known().map_or(Self::NUMBER, |n| Value::Int(i64::from(n))),
            "shape" => self.known_sizes(t).unwrap_or(Self::NUMBER),
            "nbytes" | "itemsize" => Self::NUMBER,
            "dtype" => Value::Host(Host::Other),
            "requires_grad" if t.role == Role::Constant => Value::Bool(crate::flow::domain::diagram::FALSE),
            "layout" | "requires_grad" | "is_leaf" | "grad_fn" | "names" => self.result_of(e),
            "data" | "T" | "mT" | "H" | "mH" | "real" | "imag" => {
                self.tensor(Tensor { role: Role::Plain, ..t })
            }
            // Attributes of the results of `max(dim=0)`, `sort()` and similar functions. The methods of sparse tensors are calls.
            "values" | "indices" => {
                self.tensor(Tensor { role: Role::Plain, dims: Dims::ANY, bytes: None, ..t })
            }
            "grad" if self.check_leaf(v, e, "`.grad`", false) => self.result_of(e),
            "grad" => self.tensor(Tensor { role: Role::Plain, dims: Dims::ANY, certain: false, ..t }),
            _ if t.certain && torch::method(name).is_some() => self.bound(v, None, name),
            "weight" | "bias" if t.role == Role::Whole => self.tensor(Tensor { role: Role::Parameter, ..t }),
            // A module of a library has parameters, numbers, settings and tensors, so this attribute is unknown.
            _ if t.role == Role::Whole => self.result_of(e),
            // A part of a batch or of a model's output: on the device of the whole.
            _ if !t.certain => self.tensor(Tensor { role: Role::Plain, dims: Dims::ANY, bytes: None, ..t }),
            // `batch["user"].x`: a tensor has no such attribute, so the entry of the batch is a collection.
            _ if self.is_of_batch(t) => self.part_of(t),
            _ => self.result_of(e),
        }
    }

    /// `tensor.name(args)`
    pub(crate) fn tensor_method(
        &mut self,
        v: Value,
        name: Sym,
        args: &Args,
        e: ExprId,
        base: ExprId,
    ) -> Value {
        let Value::Tensor(id) = v else { return Value::Unknown };
        let t = self.get_tensor(id);
        self.shown_by_result(t, name);
        if !t.certain {
            if no_tensors_take(name, args) {
                return self.result_of(e);
            }
            self.moved_is_module(t.device, name);
        }
        if name.as_str() == "bfloat16" {
            self.cast_to_bfloat16(t.device, e);
        }
        if name.as_str().ends_with('_') && !name.as_str().ends_with("__") {
            let given: Vec<Value> = args.values().map(|(v, _)| v).collect();
            self.read_into(t, &given, e);
        }
        match name.as_str() {
            "to" | "cuda" | "cpu" | "xpu" | "npu" | "mps" | "hpu" => {
                return self.transfer(t, name, args, e, base);
            }
            "type" if !args.positional.is_empty() => {
                let target = args.positional[0].0;
                if self.is_some_cuda_type(target) {
                    return self.type_method(t, target, e);
                }
                return self.each(target, &mut |i, v| i.type_method(t, v, e));
            }
            // `'torch.cuda.FloatTensor'`: only the device in this string matters.
            "type" => return self.as_text(t.device, e),
            "numpy" | "__array__" => return self.numpy_method(t, name, args, e, base),
            "pin_memory" => {
                self.check_pin_memory(t.device, e);
                let device = self.because(t.device, e, Reason::Pinned);
                return self.tensor(Tensor { device, role: Role::Plain, ..t });
            }
            "type_as" => {
                if let Some((d, _)) = args.get(0, "other").and_then(|(v, at)| self.tensor_place(v, at)) {
                    self.watch_transfer(t, d, args, e, base);
                }
            }
            "copy_" => self.copies_without_waiting(t, args, e, base),
            "item" | "tolist" => self.check_read(t, e),
            "numel" | "nelement" if t.bytes == Some(0) => return Value::Int(0),
            "size" if let Some(size) = self.known_size(t, args) => return size,
            "get_device" => return self.as_number(t.device, e),
            "device" => return Value::Device(t.device),
            "backward" => {
                self.check_gradient_given(v, args, e, base);
                return Value::None;
            }
            "register_hook" | "retain" => {
                return Value::None;
            }
            "requires_grad_"
                if args.values().all(|(v, _)| v == Value::Bool(crate::flow::domain::diagram::TRUE)) =>
            {
                return self.becomes_leaf(v, base);
            }
            "retain_grad" => {
                self.keeps_gradient(t, base);
                return Value::None;
            }
            "requires_grad_" if t.role == Role::Plain => {
                return self.tensor(Tensor { role: Role::Constant, ..t });
            }
            "share_memory_" | "requires_grad_" => {
                return self.tensor(t);
            }
            "update" if !t.certain => {
                self.batch_is_changed(t, Self::TEXT, Value::Unknown, base);
                return Value::None;
            }
            "get" | "pop" if !t.certain && self.is_out_of_file(t) => return self.part_of_file(t, e),
            "items" | "values" | "keys" if !t.certain => {
                let item = if self.is_out_of_file(t) { self.part_of_file(t, e) } else { self.part_of(t) };
                return match name.as_str() {
                    "items" => {
                        let pair = self.seq(&[Self::TEXT, item]);
                        self.many(pair)
                    }
                    "values" => self.many(item),
                    _ => self.many(Self::TEXT),
                };
            }
            "eval" | "train" | "half" | "float" | "double" | "bfloat16" | "parameters"
            | "named_parameters"
                if !t.certain =>
            {
                if name.as_str().contains("parameters") {
                    let p = self.tensor(Tensor {
                        role: Role::Parameter,
                        dims: Dims::ANY,
                        bytes: None,
                        certain: true,
                        ..t
                    });
                    let item = if name.as_str() == "parameters" { p } else { self.seq(&[Self::TEXT, p]) };
                    return self.many(item);
                }
                return v;
            }
            _ => {}
        }
        match torch::method(name) {
            Some(op) => self.apply_op(op, Some((v, base)), args, e, name.as_str()),
            // Tensors have no such method, so it is another object, and the result may be on any device.
            None => self.result_of(e),
        }
    }

    /// A part of a value that may be a tensor or a collection of tensors. A part of a batch is a tensor if the default
    /// `collate_fn` made the batch.
    pub(crate) fn part_of(&mut self, t: Tensor) -> Value {
        let batch = self.is_of_batch(t);
        let dims = if batch { Dims::SOME } else { Dims::ANY };
        let role = if t.role == Role::Whole { t.role } else { Role::Plain };
        self.tensor(Tensor { role, dims, bytes: None, certain: t.certain || batch, ..t })
    }

    /// Is its device certainly that of a batch?
    pub(crate) fn is_of_batch(&self, t: Tensor) -> bool {
        self.d.as_leaf(t.device).is_some_and(|p| {
            let origin = self.t.places.get(p).1;
            let o = self.t.origins.get(origin.0);
            // The loader may also have pinned the batch.
            let o = if o.reason == Reason::Pinned { self.t.origins.get(o.from.0) } else { o };
            o.reason == Reason::Batch
        })
    }
}

/// Is the value certainly no tensor?
pub(crate) fn known_host(v: Value) -> bool {
    match v {
        Value::Host(_) | Value::Int(_) | Value::Bool(_) | Value::None | Value::Str(..) | Value::Slice => true,
        Value::External(path) => is_constant(path),
        _ => false,
    }
}

/// Is the path a constant such as `math.pi`?
pub(crate) fn is_constant(path: Sym) -> bool {
    let path = path.as_str();
    path.starts_with("math.")
        || path.starts_with("numpy.")
        || matches!(path, "torch.pi" | "torch.inf" | "torch.e" | "torch.nan")
}
