//! Operators with two tensors.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::Meeting;
use crate::flow::domain::value::{Device, Host, Role, Tables, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::models::tensors::methods::known_host;
use crate::flow::observers::mismatch::meet::{Party, Rule};
use crate::ir::{BinOp, CmpOp, ExprId};
use crate::sym::Sym;
use crate::torch::{self, Op};

/// The method that implements an operator.
const fn operator_method(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "add",
        BinOp::Sub => "sub",
        BinOp::Mul => "mul",
        BinOp::MatMul => "matmul",
        BinOp::Div => "div",
        BinOp::Mod => "remainder",
        BinOp::Pow => "pow",
        BinOp::LShift => "bitwise_left_shift",
        BinOp::RShift => "bitwise_right_shift",
        BinOp::BitOr => "bitwise_or",
        BinOp::BitXor => "bitwise_xor",
        BinOp::BitAnd => "bitwise_and",
        BinOp::FloorDiv => "floor_divide",
    }
}
/// The operator as messages show it.
const fn operator_sign(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "`+`",
        BinOp::Sub => "`-`",
        BinOp::Mul => "`*`",
        BinOp::MatMul => "`@`",
        BinOp::Div => "`/`",
        BinOp::Mod => "`%`",
        BinOp::Pow => "`**`",
        BinOp::LShift => "`<<`",
        BinOp::RShift => "`>>`",
        BinOp::BitOr => "`|`",
        BinOp::BitXor => "`^`",
        BinOp::BitAnd => "`&`",
        BinOp::FloorDiv => "`//`",
    }
}

impl Interp<'_> {
    /// `a op b`, where one operand is a tensor or an outside value.
    pub(crate) fn tensor_binary(
        &mut self,
        op: BinOp,
        a: Value,
        b: Value,
        e: ExprId,
        l: ExprId,
        r: ExprId,
    ) -> Value {
        let method = torch::method(Sym::new(operator_method(op)));
        // `lazy @ x` with a class of another library may give anything.
        let tensors = op == BinOp::MatMul;
        let result = self.two_tensors(method, Meeting::Operator, operator_sign(op), a, b, e, l, r);
        if tensors {
            self.check_timed_operation("matmul", result, e);
        }
        let real = !self.is_imaginary(l) && !self.is_imaginary(r);
        let double = if real { self.promoted(&[a, b]) } else { crate::flow::domain::diagram::FALSE };
        let result = self.as_large_as(result, a, b);
        self.set_double(result, double)
    }

    /// The result of a tensor and a number has as many bytes as the tensor.
    fn as_large_as(&mut self, result: Value, a: Value, b: Value) -> Value {
        let number = |v| matches!(v, Value::Int(_) | Value::Host(Host::Number));
        let (Value::Tensor(new), Value::Tensor(old), true) =
            (result, if number(b) { a } else { b }, number(a) != number(b))
        else {
            return result;
        };
        let (new, old) = (self.get_tensor(new), self.get_tensor(old));
        self.tensor(Tensor { bytes: new.bytes.or(old.bytes), ..new })
    }

    /// `target op= value`
    pub(crate) fn augmented(
        &mut self,
        op: BinOp,
        old: Value,
        v: Value,
        target: ExprId,
        value: ExprId,
    ) -> Value {
        match (old, v) {
            (Value::Tensor(id), _) => {
                let method = torch::method(Sym::new(&format!("{}_", operator_method(op))));
                let sign = format!("`{}=`", operator_sign(op).trim_matches('`'));
                let new = self.two_tensors(method, Meeting::Operator, &sign, old, v, target, target, value);
                // In place: the tensor keeps its device and its role.
                match new {
                    Value::Tensor(n) => {
                        let t = self.get_tensor(id);
                        let n = self.get_tensor(n);
                        let device = if !t.role.registered() && !t.dims.some() { n.device } else { t.device };
                        let dims = if t.dims == Dims::ANY { n.dims } else { t.dims };
                        self.tensor(Tensor { device, dims, role: t.role, double: t.double, ..n })
                    }
                    v => v,
                }
            }
            // `image -= mean`: an array keeps its precision.
            (Value::Host(Host::Array | Host::Numbers), Value::Host(Host::Doubles)) => old,
            (Value::Outer(_), Value::Host(Host::Doubles)) if self.never_shown(old) => Self::NUMBERS,
            _ => self.binary(op, old, v, target, target, value),
        }
    }

    /// `a < b`. If one operand is a tensor and the other a choice, compares with each alternative.
    pub(crate) fn compare_each(
        &mut self,
        op: CmpOp,
        (a, l): (Value, ExprId),
        (b, r): (Value, ExprId),
        e: ExprId,
    ) -> Value {
        if let Some(cond) = self.type_compared(op, l, (b, r)) {
            return Value::Bool(cond);
        }
        match (a, b) {
            (Value::Choice(_), b)
                if self.certain(b) || self.values_of(a).iter().any(|&v| self.certain(v)) =>
            {
                self.each(a, &mut |i, a| i.compare_each(op, (a, l), (b, r), e))
            }
            (a, Value::Choice(_)) if self.certain(a) => {
                self.each(b, &mut |i, b| i.compare_each(op, (a, l), (b, r), e))
            }
            _ => match self.tensor_compare(op, a, b, e, l, r) {
                Some(v) => v,
                None => self.compare(op, a, b, e),
            },
        }
    }

    /// `a < b`, where one operand is a tensor. `None` if neither is.
    pub(crate) fn tensor_compare(
        &mut self,
        op: CmpOp,
        a: Value,
        b: Value,
        e: ExprId,
        l: ExprId,
        r: ExprId,
    ) -> Option<Value> {
        let (name, sign) = match op {
            CmpOp::Eq => ("eq", "`==`"),
            CmpOp::NotEq => ("ne", "`!=`"),
            CmpOp::Lt => ("lt", "`<`"),
            CmpOp::LtE => ("le", "`<=`"),
            CmpOp::Gt => ("gt", "`>`"),
            CmpOp::GtE => ("ge", "`>=`"),
            // An uncertain operand of `in` may be a dict.
            CmpOp::In | CmpOp::NotIn if self.is_certain(b) => ("eq", "`in`"),
            _ => return None,
        };
        let certain = |i: &Self, v: Value| match v {
            Value::Tensor(id) => i.get_tensor(id).certain,
            // A layer accepts only tensors.
            Value::Outer(o) => {
                (i.t.get_outer(o).tensor || i.modules.with_layers.contains(&o))
                    && !i.evidence.no_tensors.contains_key(&o)
            }
            _ => false,
        };
        if !certain(self, a) && !certain(self, b) {
            let uncertain = |v| matches!(v, Value::Tensor(_));
            if !uncertain(a) && !uncertain(b) {
                return None;
            }
            if matches!((a, b), (Value::None | Value::Str(..), _) | (_, Value::None | Value::Str(..))) {
                return None;
            }
        }
        let method = torch::method(Sym::new(name));
        Some(self.two_tensors(method, Meeting::Operator, sign, a, b, e, l, r))
    }

    #[expect(clippy::too_many_arguments, reason = "two operands with their expressions")]
    pub(crate) fn two_tensors(
        &mut self,
        op: Option<&'static Op>,
        meeting: Meeting,
        what: &str,
        a: Value,
        b: Value,
        e: ExprId,
        l: ExprId,
        r: ExprId,
    ) -> Value {
        let (a, b) = (self.number_if_size(a), self.number_if_size(b));
        self.meets_what_was_read(a, b, e);
        self.shown_by_company(a, b);
        if self.stands_for_nothing(a, b, r) || self.stands_for_nothing(b, a, l) {
            let device = self.unknown_device();
            return self.plain_tensor(device, Dims::ANY);
        }
        let rule = |p: usize| op.and_then(|o| o.positional(p)).map_or(Rule::ARITHMETIC, Rule::from);
        let (x, y) = (self.party(a, l, rule(0)), self.party(b, r, rule(1)));
        let shown = |v| matches!(v, Value::Outer(o) if self.is_tensorish(o));
        let certain = self.certain(a) || self.certain(b) || shown(a) || shown(b);
        match (x, y) {
            (Some(x), Some(y)) => {
                // As far as the engine knows, the other operand is a number, so the result is on the tensor's device. If it is a tensor on
                // another device, that is reported already.
                let alone = match (self.certain(a), self.certain(b)) {
                    (true, false) if self.is_unproven(b) && x.dims.some() => Some(x),
                    (false, true) if self.is_unproven(a) && y.dims.some() => Some(y),
                    _ => None,
                };
                let refused = self.meet(meeting, what, e, &[x, y]);
                if let Some(p) = alone {
                    return self.plain_tensor(p.device, Dims::SOME);
                }
                if refused {
                    let device = self.result_device(&[x, y]);
                    let device = self.unless_refused(&[x, y], device);
                    return self.tensor(Tensor {
                        device,
                        dims: Dims::ANY,
                        role: Role::Plain,
                        certain,
                        bytes: None,
                        double: crate::flow::domain::diagram::FALSE,
                    });
                }
                let matmul = op.is_some_and(|o| o.name.as_str().ends_with("matmul"));
                let dims = if matmul { x.dims.matmul(y.dims) } else { x.dims.broadcast(y.dims) };
                let device = self.followed(a, &x, b, &y);
                self.tensor(Tensor {
                    device,
                    dims,
                    role: Role::Plain,
                    certain,
                    bytes: None,
                    double: crate::flow::domain::diagram::FALSE,
                })
            }
            (Some(p), None) | (None, Some(p)) => {
                if matches!((a, b), (Value::Outer(_), Value::Outer(_))) {
                    return a;
                }
                let other = if x.is_some() { b } else { a };
                // An unknown operand may be a tensor on another device, so the device of the result is unknown.
                let device = if known_host(other) { p.device } else { self.unknown_device() };
                if known_host(other) {
                    self.is_made_with_number(if x.is_some() { a } else { b }, device);
                }
                self.tensor(Tensor {
                    device,
                    dims: p.dims,
                    role: Role::Plain,
                    certain,
                    bytes: None,
                    double: crate::flow::domain::diagram::FALSE,
                })
            }
            (None, None) => Value::Unknown,
        }
    }

    /// Is `v` a placeholder `torch.empty(0)` in an operation with a value of the caller? The program uses it when an optional value
    /// is missing, so it does not reach this operation.
    fn stands_for_nothing(&mut self, v: Value, other: Value, at: ExprId) -> bool {
        let Value::Tensor(id) = v else { return false };
        if self.get_tensor(id).bytes != Some(0) {
            return false;
        }
        let Some((d, _)) = self.tensor_place(other, at) else { return false };
        self.device_leaves(d).iter().any(|&(_, at, _)| matches!(at, Device::Of(_)))
    }

    /// May the value just as well be a number: an outside value, or the result of arithmetic with it and numbers?
    fn is_unproven(&self, v: Value) -> bool {
        let unproven =
            |d: Device| matches!(d, Device::Of(o) if !self.is_tensorish(o) && self.needs_proof(d).is_some());
        match v {
            Value::Outer(o) => !self.is_tensorish(o),
            Value::Tensor(id) if !self.get_tensor(id).certain => {
                self.d.as_leaf(self.get_tensor(id).device).is_some_and(|p| unproven(self.t.places.get(p).0))
            }
            _ => false,
        }
    }

    pub(crate) fn certain(&self, v: Value) -> bool {
        matches!(v, Value::Tensor(id) if self.get_tensor(id).certain)
    }

    /// The device of the result of two operands. A CPU scalar does not count.
    pub(crate) fn followed(&mut self, a: Value, x: &Party, b: Value, y: &Party) -> Dd {
        if x.device == y.device {
            return x.device;
        }
        let proven = |i: &Self, v: Value| match v {
            Value::Tensor(_) => true,
            Value::Outer(o) => i.is_tensorish(o),
            _ => false,
        };
        let place = |i: &Self, p: &Party| i.d.as_leaf(p.device).map(|leaf| i.t.places.get(leaf).0);
        let together = place(self, x).is_some() && place(self, x) == place(self, y);
        match (proven(self, a), proven(self, b)) {
            // The unproven operand was made on the other one's device, so that device counts.
            (true, false) if together => y.device,
            (false, true) if together => x.device,
            (true, false) => {
                // The other operand may be a number, or a tensor that decides the device.
                if self.is_cpu(x.device) { self.unknown_device() } else { x.device }
            }
            (false, true) => {
                if self.is_cpu(y.device) {
                    self.unknown_device()
                } else {
                    y.device
                }
            }
            _ => self.result_device(&[*x, *y]),
        }
    }

    pub(crate) fn is_cpu(&self, d: Dd) -> bool {
        self.d.as_leaf(d).is_some_and(|p| self.t.places.get(p).0 == Device::Cpu)
    }

    /// The device of the result of a function whose result follows its tensor arguments.
    pub(crate) fn result_device(&mut self, parties: &[Party]) -> Dd {
        let mut device = None;
        // A zero-dimensional tensor works with tensors on any device, so it is never the one in the wrong place.
        let number = |p: &&Party| p.dims.none() == Some(true);
        let others = parties.iter().filter(|p| !number(p));
        for p in others.chain(parties.iter().filter(number)) {
            device = Some(match device {
                None => p.device,
                Some(d) if d == p.device => d,
                Some(d) => self.stronger(d, p.device),
            });
        }
        match device {
            Some(d) => d,
            None => self.unknown_device(),
        }
    }

    /// The device, out of two that may meet, that is not the CPU. Unknown if that is not certain.
    pub(crate) fn stronger(&mut self, a: Dd, b: Dd) -> Dd {
        let Tables { places, .. } = &mut self.t;
        let unknown = places.add((Device::Unknown, crate::flow::domain::value::NO_ORIGIN));
        let zipped = self.d.zip(a, b, &mut |x, y| match (places.get(x).0, places.get(y).0) {
            (p, q) if p == q => x,
            // An unknown tensor that works together with a tensor on an accelerator is there, too.
            (Device::Unknown, Device::Cuda(_) | Device::CudaSome | Device::Of(_)) => y,
            (Device::Cuda(_) | Device::CudaSome | Device::Of(_), Device::Unknown) => x,
            (Device::Unknown, _) | (_, Device::Unknown) => unknown,
            (Device::Cpu, _) => y,
            (_, Device::Cpu) => x,
            (Device::Cuda(_) | Device::CudaSome, Device::Cuda(_) | Device::CudaSome) => x,
            // For example the device of `x` and that of the module: they are equal in a working program.
            (Device::Cuda(_) | Device::CudaSome, Device::Of(_) | Device::Named(_)) => x,
            (Device::Of(_) | Device::Named(_), Device::Cuda(_) | Device::CudaSome) => y,
            (Device::Of(_), Device::Of(_) | Device::Named(_)) => x,
            (Device::Named(_), Device::Of(_)) => y,
            _ => unknown,
        });
        match zipped {
            Some(d) => d,
            None => self.unknown_device(),
        }
    }
}
