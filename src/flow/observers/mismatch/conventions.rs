//! Operations on two devices where the CPU side is intended, so that callers have to pass a CPU tensor.

use crate::flow::domain::value::{Device, OriginId, OuterKey, Reason, Value};
use crate::flow::machine::Interp;
use crate::link::ClassKey;
use crate::span::Place;

impl Interp<'_> {
    /// Is the CPU side intended, while the caller decides the device of the other side? That is so for a module that no code has
    /// moved yet, and for a tensor that the program moved to the host. Callers have to follow them.
    pub(crate) fn by_convention(&self, da: Device, oa: OriginId, db: Device, ob: OriginId) -> bool {
        let (cpu, other, made) = match (da, db) {
            (Device::Cpu, d) => (oa, d, ob),
            (d, Device::Cpu) => (ob, d, oa),
            _ => return false,
        };
        let free = match other {
            Device::Of(o) => {
                let outer = self.t.get_outer(o);
                outer.with.is_none() && !matches!(outer.key, OuterKey::Receiver { .. })
            }
            Device::Named(_) => false,
            _ => return false,
        };
        if let Device::Of(o) = other
            && self.is_saved_weight(o)
        {
            return true;
        }
        if free && (self.inside_resting_module() || self.inside_constructor(other)) {
            return true;
        }
        let mut at = cpu;
        while at != crate::flow::domain::value::NO_ORIGIN {
            let o = self.t.origins.get(at.0);
            // A method that makes a tensor on the device of another tensor accepts that tensor on any device.
            if o.reason == Reason::Moved
                && self.was_made_there(made)
                && (self.here().site.is_none() || matches!(self.here().receiver, Value::Object(_)))
            {
                return false;
            }
            if o.reason == Reason::Module {
                return free && !self.is_made_for(o.place, other);
            }
            if o.reason == Reason::Made && self.is_of_new_module(cpu, o.from) {
                return false;
            }
            if matches!(o.reason, Reason::Moved | Reason::Made | Reason::Loaded) {
                return free;
            }
            at = o.from;
        }
        cpu == crate::flow::domain::value::NO_ORIGIN
    }

    /// `self.table = torch.ones(n, device=self.device)` in a constructor: the table is on the CPU only because every new module is.
    /// `.to()` moves the module later and leaves the table on the CPU.
    fn is_of_new_module(&self, kept: OriginId, device: OriginId) -> bool {
        let mut at = device;
        while at != crate::flow::domain::value::NO_ORIGIN && self.t.origins.get(at.0).reason == Reason::Text {
            at = self.t.origins.get(at.0).from;
        }
        at == crate::flow::domain::value::NO_ORIGIN && self.t.origins.get(kept.0).reason == Reason::Kept
    }

    /// Does the call stack contain a call of a module that the program made on the CPU and never moved?
    fn inside_resting_module(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if let Value::Object(id) = frame.receiver
                && self.obj(id).kind == crate::flow::machine::frame::ObjKind::Module
                && self.obj(id).outer.is_none()
                && frame.module_call
                && matches!(self.own(id), Value::Device(d) if self.is_cpu(d))
            {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// Is a module's constructor running, and is this device that of one of its parameters? The caller moves the module after it
    /// is made, and the arguments are as new as the module.
    pub(crate) fn inside_constructor(&self, given: Device) -> bool {
        let Device::Of(o) = given else { return false };
        let OuterKey::Param { module, func, .. } = self.t.get_outer(o).key else { return false };
        let f = self.program.get(module).ir.function(func);
        let class = f.class.map(|class| ClassKey { module, class });
        f.name == self.known.init
            && class.is_some_and(|key| self.is_module_class(key) && !self.is_autograd_function(key))
    }

    /// Does the function that takes the tensor as a parameter also make the module? Its callers do not know the module, so
    /// they may pass a tensor on any device.
    fn is_made_for(&self, made: Place, given: Device) -> bool {
        let Device::Of(o) = given else { return false };
        let outer = self.t.get_outer(o);
        let OuterKey::Param { module, func, .. } = outer.key else { return false };
        let ir = &self.program.get(module).ir;
        self.is_tensorish(o) && made.file == ir.file && ir.function(func).span.contains(made.span)
    }
}
