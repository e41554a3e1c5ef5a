//! 64-bit floating-point numbers, and devices that do not support them.
//!
//! The engine knows when a tensor certainly has such numbers ([`Tensor::double`]), and when a NumPy array has them, which is NumPy's
//! default. All other tensors and arrays are assumed to have other numbers.

use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{Device, Host, OuterId, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::models::dtypes::float64_on_mps::names_double;
use crate::ir::{Expr, ExprId, FuncId};
use crate::link::ModIdx;
use crate::span::Place;
use crate::torch::{Kind as OpKind, Op, ResultRule};

/// Functions and methods of tensors whose result has the promoted type of their operands.
const TENSORS_KEEP: &[&str] = &[
    "__getitem__",
    "abs",
    "add",
    "atleast_1d",
    "broadcast_to",
    "cat",
    "chunk",
    "clamp",
    "clone",
    "concat",
    "contiguous",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "detach",
    "diff",
    "div",
    "einsum",
    "exp",
    "expand",
    "expand_as",
    "expm1",
    "flatten",
    "flip",
    "gather",
    "index_select",
    "lerp",
    "log",
    "log10",
    "log1p",
    "log2",
    "matmul",
    "maximum",
    "mean",
    "minimum",
    "movedim",
    "mul",
    "narrow",
    "neg",
    "outer",
    "permute",
    "pow",
    "ravel",
    "reciprocal",
    "remainder",
    "repeat",
    "repeat_interleave",
    "reshape",
    "roll",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "sinh",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "sub",
    "sum",
    "swapaxes",
    "t",
    "take",
    "tan",
    "tanh",
    "tile",
    "transpose",
    "true_divide",
    "unbind",
    "unflatten",
    "unsqueeze",
    "var",
    "view",
    "view_as",
    "where",
];

/// 64-bit numbers that reach a device that may be MPS, and that are reported.
#[derive(Clone, Copy)]
pub(crate) struct Doubles {
    /// The device.
    pub(crate) on: Device,
    /// The condition under which this raises.
    pub(crate) raises: Cond,
    pub(crate) place: Place,
    /// The function. The engine may interpret another function on its own.
    pub(crate) func: (ModIdx, FuncId),
}

impl Interp<'_> {
    /// The condition that a `dtype` is `float64`.
    pub(crate) fn is_double(&mut self, dtype: Value) -> Cond {
        match dtype {
            Value::Choice(d) => {
                let values = &self.t.values;
                self.d.where_leaf(d, &mut |leaf| names_double(*values.get(leaf)))
            }
            v if names_double(v) => TRUE,
            _ => FALSE,
        }
    }

    /// `torch.promote_types(a, b)`: known if one is `float64` or both are equal. Otherwise it is an unknown dtype.
    pub(crate) fn promoted_type(&self, args: &Args) -> Value {
        let [(a, _), (b, _)] = args.positional[..] else { return Value::Host(Host::Other) };
        match (a, b) {
            (Value::External(_), b) if a == b => a,
            (Value::External(x), Value::External(y)) => {
                let double = [a, b].into_iter().find(|&v| names_double(v));
                let complex = [x, y].iter().any(|path| path.as_str().starts_with("torch.c"));
                double.filter(|_| !complex).unwrap_or(Value::Host(Host::Other))
            }
            _ => Value::Host(Host::Other),
        }
    }

    fn double_of(&mut self, v: Value) -> Cond {
        match v {
            Value::Choice(d) => {
                let values = &self.t.values;
                self.d.where_leaf(d, &mut |leaf| *values.get(leaf) == Self::DOUBLES)
            }
            Value::Tensor(t) => self.get_tensor(t).double,
            Value::Host(Host::Doubles) => TRUE,
            _ => FALSE,
        }
    }

    /// The condition that a factory with these arguments makes 64-bit numbers.
    pub(crate) fn double_of_factory(&mut self, op: &Op, args: &Args) -> Cond {
        if let Some((dtype, _)) = args.keyword("dtype").filter(|(v, _)| *v != Value::None) {
            return self.is_double(dtype);
        }
        let first = args.positional.first().map_or(FALSE, |&(v, _)| self.double_of(v));
        match op.kind {
            OpKind::FactoryLike | OpKind::NewLike => first,
            _ if op.name.as_str().ends_with(".DoubleTensor") => TRUE,
            _ => match op.name.as_str() {
                "torch.tensor" | "torch.as_tensor" | "torch.asarray" | "torch.from_numpy" => first,
                _ => FALSE,
            },
        }
    }

    /// The condition that a tensor has 64-bit numbers after `.to(…)`.
    pub(crate) fn double_after_to(&mut self, t: Tensor, args: &Args, e: ExprId) -> Cond {
        if let Some((dtype, _)) = args.keyword("dtype") {
            return self.is_double(dtype);
        }
        let mut double = t.double;
        if let Some(&(v, at)) = args.positional.first() {
            match v {
                Value::Tensor(other) => return self.get_tensor(other).double,
                // The argument may be a tensor, whose dtype `.to()` also takes.
                Value::Outer(o) if !self.names_a_device(o) => return FALSE,
                // A device does not change the dtype.
                v if self.positional_target(v, at, e).is_some() => {}
                v => double = self.is_double(v),
            }
        }
        match args.positional.get(1) {
            Some(&(dtype, _)) => self.is_double(dtype),
            None => double,
        }
    }

    /// Is it an imaginary number, such as `1j` or `2j * math.pi`? The result of arithmetic with it is complex, so it is no 64-bit float.
    /// PyTorch moves complex numbers of any width to MPS.
    pub(crate) fn is_imaginary(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        match ir.expr(e) {
            Expr::Imaginary => true,
            Expr::Unary { operand, .. } => self.is_imaginary(operand),
            Expr::Binary { left, right, .. } => self.is_imaginary(left) || self.is_imaginary(right),
            _ => false,
        }
    }

    fn names_a_device(&self, o: OuterId) -> bool {
        let outer = self.t.get_outer(o);
        outer.device || outer.text.contains("device")
    }

    /// Is it an outside value, or arithmetic with only such values, without evidence that it is a tensor?
    pub(crate) fn never_shown(&self, v: Value) -> bool {
        match v {
            Value::Outer(o) => !self.is_tensorish(o),
            Value::Tensor(t) => {
                let leaves = self.device_leaves(self.get_tensor(t).device);
                leaves.iter().all(|&(_, d, _)| matches!(d, Device::Of(o) if !self.is_tensorish(o)))
            }
            _ => false,
        }
    }

    /// The result of an operator or method, with the condition that it has 64-bit numbers.
    pub(crate) fn with_double(
        &mut self,
        result: Value,
        op: &Op,
        receiver: Option<(Value, ExprId)>,
        args: &Args,
        e: ExprId,
    ) -> Value {
        let name = crate::flow::models::tensors::functions::short(op.name);
        if name == "double" {
            return self.cast_to_double(result, TRUE, e);
        }
        if name == "type_as" {
            let double = args.get(0, "other").map_or(FALSE, |(v, _)| self.double_of(v));
            return self.cast_to_double(result, double, e);
        }
        let makes = matches!(op.kind, OpKind::Factory | OpKind::FactoryLike | OpKind::NewLike)
            || matches!(op.result, ResultRule::DeviceArgument | ResultRule::Data);
        if makes || !op.in_place && !TENSORS_KEEP.contains(&name) {
            return result;
        }
        let operands = receiver.into_iter().chain(args.positional.iter().copied());
        let operands: Vec<Value> =
            if op.in_place { operands.take(1) } else { operands.take(3) }.map(|(v, _)| v).collect();
        let double = self.promoted(&operands);
        self.set_double(result, double)
    }

    /// The condition that the promoted type has 64 bits: that of a single operand, or of the first 64-bit operand with dimensions.
    pub(crate) fn promoted(&self, operands: &[Value]) -> Cond {
        let (mut count, mut last, mut first_with_dims) = (0, FALSE, None);
        let mut look = |t: Tensor| {
            (count, last) = (count + 1, t.double);
            if first_with_dims.is_none() && t.double != FALSE && t.dims.some() {
                first_with_dims = Some(t.double);
            }
        };
        for &v in operands {
            match v {
                Value::Tensor(t) => look(self.get_tensor(t)),
                Value::Object(_) | Value::Seq(_) => {
                    for v in self.exact_elements(v).unwrap_or_default() {
                        if let Value::Tensor(t) = v {
                            look(self.get_tensor(t));
                        }
                    }
                }
                Value::Outer(_) | Value::Unknown => look(Tensor { double: FALSE, ..UNKNOWN }),
                _ => {}
            }
        }
        if count == 1 { last } else { first_with_dims.unwrap_or(FALSE) }
    }

    pub(crate) fn set_double(&mut self, v: Value, double: Cond) -> Value {
        match v {
            Value::Tensor(id) if self.get_tensor(id).double != double => {
                let t = self.get_tensor(id);
                self.tensor(Tensor { double, ..t })
            }
            Value::Many(m) if double != FALSE => {
                let item = *self.t.values.get(m);
                let item = self.set_double(item, double);
                self.many(item)
            }
            v => v,
        }
    }

    /// A cast of a tensor to 64-bit numbers on its own device.
    pub(crate) fn cast_to_double(&mut self, v: Value, double: Cond, e: ExprId) -> Value {
        let Value::Tensor(id) = v else { return v };
        let t = self.get_tensor(id);
        let double = self.doubles_go(t.device, double, e);
        self.set_double(v, double)
    }
}

/// An unknown operand.
const UNKNOWN: Tensor = Tensor {
    device: TRUE,
    dims: Dims::ANY,
    role: crate::flow::domain::value::Role::Plain,
    certain: false,
    bytes: None,
    double: FALSE,
};
