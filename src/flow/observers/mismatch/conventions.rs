//! Meetings that are no accident: the CPU side sets the terms, and who calls follows them.

use crate::flow::domain::value::{Device, OriginId, OuterKey, Reason, Value};
use crate::flow::machine::Interp;
use crate::link::ClassKey;
use crate::span::Place;

impl Interp<'_> {
    /// Is the CPU side there on purpose, and the other one wherever the caller wants it? A module that nobody
    /// has moved yet, or a tensor that was brought to the host, sets the terms: who calls has to follow them.
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
            // A method that makes tensors where another one is follows that one wherever it is.
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

    /// `self.table = torch.ones(n, device=self.device)` in a constructor: the module is on the CPU as all are that are being made, and
    /// nobody has said so. Whoever moves it leaves the table there.
    fn is_of_new_module(&self, kept: OriginId, device: OriginId) -> bool {
        let mut at = device;
        while at != crate::flow::domain::value::NO_ORIGIN && self.t.origins.get(at.0).reason == Reason::Text {
            at = self.t.origins.get(at.0).from;
        }
        at == crate::flow::domain::value::NO_ORIGIN && self.t.origins.get(kept.0).reason == Reason::Kept
    }

    /// Is a method of a module being interpreted that was made here, on the CPU, and that nobody has moved?
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

    /// Is a module being made of what its constructor is given? Who makes one moves it when it is there, and what it is made
    /// of is as new as the module.
    pub(crate) fn inside_constructor(&self, given: Device) -> bool {
        let Device::Of(o) = given else { return false };
        let OuterKey::Param { module, func, .. } = self.t.get_outer(o).key else { return false };
        let f = self.program.get(module).ir.function(func);
        let class = f.class.map(|class| ClassKey { module, class });
        f.name == self.known.init
            && class.is_some_and(|key| self.is_module_class(key) && !self.is_autograd_function(key))
    }

    /// Was a module made here, by the very function that is given the tensor? Who calls that knows nothing of the module,
    /// and gives a tensor from wherever it is.
    fn is_made_for(&self, made: Place, given: Device) -> bool {
        let Device::Of(o) = given else { return false };
        let outer = self.t.get_outer(o);
        let OuterKey::Param { module, func, .. } = outer.key else { return false };
        let ir = &self.program.get(module).ir;
        self.is_tensorish(o) && made.file == ir.file && ir.function(func).span.contains(made.span)
    }
}
