//! Calls of modules.

use crate::flow::domain::value::{Closure, Device, ObjId, OriginId, OuterId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::query::relevance::file_scan::packs_sequences;
use crate::ir::ExprId;

/// Parts of the names of a model's inputs, in Hugging Face's libraries and elsewhere.
pub(crate) const INPUTS: &[&str] = &[
    "input",
    "pixel",
    "image",
    "embeds",
    "hidden_states",
    "features",
    "labels",
    "attention_mask",
    "token_type_ids",
];
/// The maximum depth of calls of modules inside of modules.
const MAX_WITHIN: usize = 64;

impl Interp<'_> {
    /// Is this the device of a module whose call is on the call stack, with the same origin?
    pub(crate) fn is_of_called_module(&self, device: Device, origin: OriginId) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if frame.site.is_none() || !frame.class.is_some_and(|k| self.is_module_class(k)) {
                return false;
            }
            if let (true, Value::Object(id)) = (frame.module_call, frame.receiver)
                && let Value::Device(d) = self.own(id)
                && self.device_leaves(d).iter().any(|&(_, at, why)| at == device && why == origin)
            {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// `module(args)`
    pub(crate) fn call_module(&mut self, id: ObjId, args: &Args, e: ExprId) -> Value {
        let this = Value::Object(id);
        if !self.has_hooks(this) {
            return self.call_module_itself(id, args, e);
        }
        let args = self.hooks_before(this, args, e);
        let out = self.call_module_itself(id, &args, e);
        self.hooks_after(this, &args, out, e)
    }

    fn call_module_itself(&mut self, id: ObjId, args: &Args, e: ExprId) -> Value {
        let kind = self.obj(id).kind;
        let wrapper = !self.calls_wrapped(id, e);
        if wrapper && !matches!(kind, ObjKind::List { .. }) {
            self.check_wrapped(id);
        }
        self.check_evaluation(id, e);
        if self.modules.hooked.contains(&id) {
            return self.result_of(e);
        }
        let scattered = if wrapper { self.scattered(id, args) } else { None };
        let args = scattered.as_ref().unwrap_or(args);
        let device = self.module_device(id, 0);
        self.device_work(device);
        self.check_timed(id, device, e);
        self.autocast_meets(device, e);
        self.module_in_autocast(device, args, e);
        // `net.forward = function`
        let own = self.get_field(id, self.known.forward);
        if own != Value::Absent {
            return self.unless_within(id, args, e, &mut |i| i.call_value(own, args, e));
        }
        match kind {
            ObjKind::ForeignModule(Some(op)) => return self.call_torch_module(id, op, args, e),
            ObjKind::List { module: true } => return self.call_sequential(id, args, e),
            ObjKind::Module
                if !self.returns_several(id) && !self.demands_lengths(id) && self.nothing_new(id, args) =>
            {
                let device = self.module_device(id, 0);
                return self.possible_tensor(device);
            }
            ObjKind::Module => {
                // Interpret the module's layers: they show that the inputs are tensors, and on which device each of several results is.
                let awaited =
                    args.values().any(|(v, _)| matches!(v, Value::Outer(o) if self.awaits_proof(o)));
                if awaited || self.returns_several(id) || self.is_given_from_elsewhere(id, args) {
                    self.build_now(id, e);
                }
                let key = self.obj(id).class;
                let forward = key.and_then(|k| self.program.find_method(k, self.known.forward));
                if let (Some((m, f)), Some(key)) = (forward, key) {
                    if self.is_moved_for_user(key) && self.obj(id).outer.is_none() {
                        return self.result_of(e);
                    }
                    // `Net.forward = function`
                    if let Some(replaced) = self.replaced_in_class(key, self.known.forward) {
                        let function = self.bind_method(replaced, id, key, self.known.forward, e);
                        return self.call_value(function, args, e);
                    }
                    let called = Closure { module: m, func: f, frame: None };
                    if let Some(v) = self.through_decorators(called, Some(Value::Object(id)), args, e) {
                        return v;
                    }
                    let class = self
                        .program
                        .get(m)
                        .ir
                        .function(f)
                        .class
                        .map(|class| crate::link::ClassKey { module: m, class });
                    if self.run.depth < crate::flow::machine::MAX_DEPTH
                        && !self.is_heavy(m, f)
                        && !(self.run.symbolic
                            && self.relevance.calls(m, f) > crate::flow::machine::MANY_CALLS)
                    {
                        let site = self.place(e);
                        return self.run(
                            m,
                            f,
                            None,
                            Some(Value::Object(id)),
                            class,
                            Some(args),
                            Some(site),
                            true,
                        );
                    }
                    // A `forward` that is too long to interpret may return a tensor on any device.
                    if self.run.depth >= crate::flow::machine::MAX_DEPTH || self.is_heavy(m, f) {
                        return self.result_unfollowed(args, e);
                    }
                }
            }
            _ => {}
        }
        self.call_unknown_module(id, args, e)
    }

    /// The result of a call of a module with a known `forward` that the engine does not interpret.
    fn result_unfollowed(&mut self, args: &Args, e: ExprId) -> Value {
        let made = self.result_of(e);
        self.is_made_of(made, args);
        made
    }

    /// May a function do anything with devices? True for unknown functions.
    pub(crate) fn may_move(&self, hook: Value) -> bool {
        let function = match hook {
            Value::Closure(c) => Some(c),
            Value::Bound(b) => self.t.bounds.get(b.0).function,
            _ => return true,
        };
        function.is_none_or(|c| {
            let closure = self.t.closures.get(c.0);
            self.relevance.is_telling(closure.module, closure.func)
        })
    }

    /// Is the module's class in a file that packs sequences? PyTorch wants the lengths of sequences on the CPU. A parameter of
    /// `forward` may already be there, but a value that a caller computed from its own inputs is not.
    fn demands_lengths(&self, id: ObjId) -> bool {
        self.obj(id).class.is_some_and(|key| packs_sequences(&self.program.get(key.module).ir))
    }

    /// Does the call give no more information than an interpretation of `forward` alone: everything is on the module's own
    /// device, whichever that is?
    pub(crate) fn nothing_new(&mut self, id: ObjId, args: &Args) -> bool {
        let device = self.module_device(id, 0);
        let Some(leaf) = self.d.as_leaf(device) else { return false };
        let Device::Of(module) = self.t.places.get(leaf).0 else { return false };
        args.values().all(|(v, at)| match v {
            Value::Tensor(_) | Value::Choice(_) => match self.tensor_place(v, at) {
                Some((d, _)) => self.d.as_leaf(d).is_some_and(|p| match self.t.places.get(p).0 {
                    Device::Of(o) => o == module || self.t.get_outer(o).with == Some(module),
                    Device::Unknown => true,
                    _ => false,
                }),
                None => true,
            },
            Value::Outer(o) => !self.awaits_proof(o),
            _ => true,
        })
    }

    /// Is an argument certainly on another device than the module? The module's layers must show whether PyTorch refuses that: the
    /// module may move its inputs, or use no parameters with them.
    fn is_given_from_elsewhere(&mut self, id: ObjId, args: &Args) -> bool {
        if !self.calls.unbuilt.contains_key(&id) {
            return false;
        }
        let own = self.module_device(id, 0);
        // A submodule that did not move with its module is kept in a place that `.to()` does not find.
        if self.in_module() && self.is_as_made(own) {
            return false;
        }
        args.values().any(|(v, at)| match v {
            Value::Tensor(_) | Value::Choice(_) => {
                self.tensor_place(v, at).is_some_and(|(d, _)| self.may_clash(own, d))
            }
            _ => false,
        })
    }

    /// Has a finding been made that is only true if this value is a tensor?
    fn awaits_proof(&self, o: OuterId) -> bool {
        !self.is_tensorish(o) && self.events.iter().any(|p| p.needs.contains(&o))
    }

    /// Calls the module's parts, or the function that replaces its `forward`. If such a call leads back to the module
    /// itself, the result is unknown: `net.forward = torch.jit.trace(net, x)`.
    pub(crate) fn unless_within(
        &mut self,
        id: ObjId,
        args: &Args,
        e: ExprId,
        call: &mut dyn FnMut(&mut Self) -> Value,
    ) -> Value {
        if self.modules.within.contains(&id) || self.modules.within.len() >= MAX_WITHIN {
            return self.unknown_call(Value::Unknown, args, e);
        }
        self.modules.within.push(id);
        let v = call(self);
        self.modules.within.pop();
        v
    }
}
