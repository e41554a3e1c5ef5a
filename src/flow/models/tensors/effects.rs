//! Calls that the tables cannot describe: the default tensor type, parameters, generators. Also, values that a function itself
//! puts on CUDA when the machine has it.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::event::UseKind;
use crate::flow::domain::value::NO_ORIGIN;
use crate::flow::domain::value::{Device, OriginId, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;

impl Interp<'_> {
    /// Does this function itself put the tensor on CUDA exactly where CUDA is available, whatever its arguments are? (Without a test of
    /// CUDA, the use of CUDA is the bug instead.) `other` is the operand that it meets: its device must be that of one
    /// outside value.
    pub(crate) fn chosen_here(&mut self, device: Dd, other: Dd) -> bool {
        let of = |leaf: u32| matches!(self.t.places.get(leaf).0, Device::Of(_));
        if self.d.as_leaf(device).is_some() || !self.d.as_leaf(other).is_some_and(of) {
            return false;
        }
        let leaves = self.device_leaves(device);
        let [(leaf, Device::Cuda(None), origin), (_, Device::Cpu, _)] = leaves[..] else { return false };
        if !self.comes_from_here(origin) {
            return false;
        }
        let there = self.available(None);
        self.here().func.0 != 0 && self.d.where_leaf(device, &mut |p| p == leaf) == there
    }

    /// Are all origins of a device in the function that is being interpreted?
    fn comes_from_here(&self, origin: OriginId) -> bool {
        let ir = &self.program.get(self.here().module).ir;
        let function = ir.function(self.here().func);
        let mut at = origin;
        while at != NO_ORIGIN {
            let o = self.t.origins.get(at.0);
            if o.place.file != ir.file || !function.span.contains(o.place.span) {
                return false;
            }
            at = o.from;
        }
        true
    }

    /// `torch.set_default_tensor_type(…)`: the type of factories without `device=`, and always of `torch.Tensor`.
    pub(crate) fn default_tensor_type(&mut self, args: &Args, e: ExprId) {
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
        for cell in [self.tensors.default_device, self.tensors.default_type] {
            self.store.set(cell, default);
        }
    }

    /// Has the program set the default tensor type, whose device `torch.Tensor(…, device=…)` accepts? If the engine interprets a function
    /// on its own, another function of the file may have set it before.
    pub(crate) fn may_have_another_type(&self) -> bool {
        let setter = "set_default_tensor_type";
        self.store.get(self.tensors.default_type) != Value::None
            || self.run.symbolic && self.linked().ir.attributes.iter().any(|name| name.as_str() == setter)
    }

    pub(crate) fn make_parameter(&mut self, args: &Args, e: ExprId) -> Value {
        match args.get(0, "data") {
            Some((Value::Tensor(t), _)) => {
                let t = self.get_tensor(t);
                self.tensor(Tensor { role: Role::Parameter, ..t })
            }
            // Its device is unknown. An object is a tensor of the project's own class.
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

    /// `torch.manual_seed(…)` returns `torch.default_generator`, which is on the CPU (torch/random.py).
    pub(crate) fn default_generator(&mut self, e: ExprId) -> Value {
        let place = self.place(e);
        let origin = self.origin(place, Reason::Host, NO_ORIGIN);
        let device = self.at(Device::Cpu, origin);
        Value::Object(self.object(ObjKind::Generator, None, Value::Device(device)))
    }

    pub(crate) fn make_generator(&mut self, args: &Args, e: ExprId) -> Value {
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
