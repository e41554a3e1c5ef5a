//! What is made, or decides where things are made, by calls that the tables cannot describe: the default tensor type,
//! parameters, generators.

use super::super::event::UseKind;
use super::super::value::{Device, Reason, Role, Tensor, Value};
use super::args::Args;
use super::{Interp, NO_ORIGIN, ObjKind};
use crate::ir::ExprId;

impl Interp<'_> {
    /// `torch.set_default_tensor_type(…)`: what factories make without `device=`, and `torch.Tensor` always.
    pub(super) fn default_tensor_type(&mut self, args: &Args, e: ExprId) {
        let name = match args.positional.first() {
            Some(&(Value::Str(s, _), _)) => Some(s.as_str()),
            Some(&(Value::External(p), _)) => Some(p.as_str()),
            _ => None,
        };
        let default = match name {
            Some(name) if name.starts_with("torch.cuda.") => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Literal, NO_ORIGIN);
                let d = self.at(Device::Cuda(None), origin);
                self.check_use(d, e, UseKind::LegacyType, "`torch.set_default_tensor_type()`");
                Value::Device(d)
            }
            Some(_) => Value::None,
            None => Value::Device(self.unknown_device()),
        };
        for cell in [self.default_device, self.default_type] {
            self.store.set(cell, default);
        }
    }

    pub(super) fn make_parameter(&mut self, args: &Args, e: ExprId) -> Value {
        match args.get(0, "data") {
            Some((Value::Tensor(t), _)) => {
                let t = self.get_tensor(t);
                self.tensor(Tensor { role: Role::Parameter, ..t })
            }
            // Wherever that is; an object is a tensor of a class of its own.
            Some((Value::Unknown | Value::Outer(_) | Value::Choice(_) | Value::Object(_), _)) => {
                let unknown = self.unknown_device();
                self.parameter(unknown)
            }
            _ => {
                let device = self.default_device_at(e, Reason::Default);
                self.parameter(device)
            }
        }
    }

    pub(super) fn make_generator(&mut self, args: &Args, e: ExprId) -> Value {
        let device = match args.get(0, "device") {
            Some((v, at)) if v != Value::None => {
                let d = self.as_device(v, at).unwrap_or_else(|| self.unknown_device());
                self.check_use(d, e, UseKind::Factory, "`torch.Generator()`");
                self.because(d, e, Reason::Made)
            }
            _ => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Default, NO_ORIGIN);
                self.at(Device::Cpu, origin)
            }
        };
        Value::Object(self.object(ObjKind::Generator, None, Value::Device(device)))
    }
}
