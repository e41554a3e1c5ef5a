//! `.type()`: converts a tensor to another number type, on the CPU or on an accelerator.

use crate::flow::domain::diagram::{Dd, TRUE};
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::UseKind;
use crate::flow::domain::value::{Device, NO_ORIGIN, OuterId, OuterKey, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::ir::ExprId;

impl Interp<'_> {
    /// `.type(torch.cuda.FloatTensor)`
    pub(crate) fn type_method(&mut self, t: Tensor, target: Value, e: ExprId) -> Value {
        let double = match target {
            Value::Str(s, _) if s.as_str() == "torch.DoubleTensor" => TRUE,
            Value::External(path) if path.as_str() == "torch.DoubleTensor" => TRUE,
            v => self.is_double(v),
        };
        let t = Tensor { double, ..t };
        match self.type_target(target, e) {
            TypeTarget::Dtype => {
                let double = self.doubles_go(t.device, double, e);
                self.tensor(Tensor { role: Role::Plain, double, ..t })
            }
            TypeTarget::Place(device) => self.tensor(Tensor { device, role: Role::Plain, ..t }),
            TypeTarget::Cpu(device) => {
                // Code that casts with a tensor type of the old style has a tensor with dimensions.
                let dims = if t.dims.none().is_none() { Dims::SOME } else { t.dims };
                self.tensor(Tensor { device, dims, role: Role::Plain, ..t })
            }
        }
    }

    /// What the argument of `.type()` says about the device.
    pub(crate) fn type_target(&mut self, v: Value, e: ExprId) -> TypeTarget {
        let text = match v {
            Value::Device(device) => {
                self.check_use(device, e, UseKind::Transfer, "`.type()`");
                return TypeTarget::Place(self.because(device, e, Reason::Moved));
            }
            Value::External(path) => path.as_str(),
            Value::Str(s, _) => s.as_str(),
            // `x.dtype`, or a parameter `dtype`, contains no device. (An attribute `dtype` that the program sets itself
            // may be a tensor type with a device: `self.dtype = torch.cuda.FloatTensor`.)
            Value::Outer(o) if self.is_plain_dtype(o) => return TypeTarget::Dtype,
            Value::Choice(_) if self.is_some_cuda_type(v) => "torch.cuda.Tensor",
            // A string that the program builds may be any type.
            Value::Unknown | Value::Outer(_) | Value::Choice(_) | Self::TEXT => {
                return TypeTarget::Place(self.unknown_device());
            }
            _ => "",
        };
        let place = self.place(e);
        if is_cuda_type(text) {
            let origin = self.origin(place, Reason::Literal, NO_ORIGIN);
            let device = self.at(Device::Cuda(None), origin);
            self.check_use(device, e, UseKind::LegacyType, "`.type()`");
            return TypeTarget::Place(device);
        }
        if text.starts_with("torch.") && text.ends_with("Tensor") && text != "torch.Tensor" {
            let origin = self.origin(place, Reason::Host, NO_ORIGIN);
            return TypeTarget::Cpu(self.at(Device::Cpu, origin));
        }
        TypeTarget::Dtype
    }

    /// Is it a CUDA tensor type in every alternative: `torch.cuda.HalfTensor if half else torch.cuda.FloatTensor`?
    pub(crate) fn is_some_cuda_type(&self, v: Value) -> bool {
        self.values_of(v).into_iter().all(|v| match v {
            Value::External(path) => is_cuda_type(path.as_str()),
            Value::Str(text, _) => is_cuda_type(text.as_str()),
            _ => false,
        })
    }

    /// Is it the dtype of a tensor, or a parameter with such a name?
    fn is_plain_dtype(&self, o: OuterId) -> bool {
        let outer = self.t.get_outer(o);
        // An attribute of the object itself, or of a parameter of its constructor.
        let kept = |base: OuterId| match self.t.get_outer(base).key {
            OuterKey::Receiver { .. } => true,
            OuterKey::Param { module, func, .. } => {
                self.program.get(module).ir.function(func).name == self.known.init
            }
            _ => false,
        };
        let by_program = match outer.key {
            OuterKey::Attr { base, .. } => kept(base),
            OuterKey::Field { .. } => true,
            _ => false,
        };
        outer.text.ends_with("dtype") && !by_program
    }
}

/// The effect of `.type(…)`.
pub(crate) enum TypeTarget {
    /// The same device, with another number type.
    Dtype,
    /// A tensor on the CPU, because of an old constructor's name.
    Cpu(Dd),
    /// A tensor on this device.
    Place(Dd),
}

/// `torch.cuda.FloatTensor`
fn is_cuda_type(path: &str) -> bool {
    path.starts_with("torch.cuda.") && path.ends_with("Tensor")
}
