//! Wrappers for several GPUs.

use crate::flow::domain::diagram::{Dd, TRUE};
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, ObjId, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::registry::Called;
use crate::flow::models::training::intrinsics::data_parallel;
use crate::flow::models::training::optimizers::WRAPPER;
use crate::ir::{Expr, ExprId, Var};
use crate::span::Place;
use crate::sym::Sym;

impl Interp<'_> {
    /// `nn.DataParallel(model)`, where `model` is one of several alternatives.
    pub(crate) fn each_wrapped(&mut self, path: Sym, args: &Args, e: ExprId) -> Value {
        let Some((models, _)) = args.get(0, "module") else { return self.result_of(e) };
        self.each(models, &mut |i, model| {
            let args = args.with(0, "module", model);
            data_parallel(i, Called { path, args: &args, at: e }).unwrap_or(model)
        })
    }

    /// `device_ids=ids if cuda else None`: wraps once for each alternative, on its own path.
    pub(crate) fn for_each_ids(&mut self, args: &Args, wrap: &mut dyn FnMut(&mut Self, &Args)) {
        match args.get(1, "device_ids") {
            Some((ids @ Value::Choice(_), _)) => {
                self.each(ids, &mut |i, ids| {
                    wrap(i, &args.with(1, "device_ids", ids));
                    Value::None
                });
            }
            _ => wrap(self, args),
        }
    }

    /// `nn.DataParallel(model)`: with one GPU it moves the model there. With more, the model must already be there.
    pub(crate) fn data_parallel(&mut self, args: &Args, e: ExprId) {
        let Some((wrapped, _)) = args.get(0, "module") else { return };
        let Value::Object(id) = wrapped else { return self.scatters_outside(wrapped) };
        if !self.is_module_object(id) {
            return;
        }
        self.scatters_here(id);
        if self.obj(id).outer.is_some() {
            return;
        }
        let one_id = args.get(1, "device_ids").and_then(|(v, _)| self.exact_elements(v));
        let place = self.place(e);
        let origin = self.origin(place, Reason::Moved, crate::flow::domain::value::NO_ORIGIN);
        let cuda = self.at(Device::Cuda(None), origin);
        let before = self.module_device(id, 0);
        let cond = if one_id.is_some_and(|ids| ids.len() == 1) {
            self.at_least(1)
        } else {
            self.modules.wrapped.push((id, place, self.path));
            let (one, two) = (self.at_least(1), self.at_least(2));
            let not_two = self.d.not(two);
            self.d.and(one, not_two)
        };
        let device = self.ite_device(cond, cuda, before);
        if self.d.as_leaf(before).is_some() {
            self.move_module(id, device);
        }
    }

    /// The arguments after `nn.DataParallel`, or `DistributedDataParallel` with devices, has moved them to the module's device.
    pub(crate) fn scattered(&mut self, id: ObjId, args: &Args) -> Option<Args> {
        let when = self.modules.scattering.iter().find(|s| s.0 == id)?.1;
        let device = self.module_device(id, 0);
        let mut args = args.clone();
        let values =
            args.positional.iter_mut().map(|(v, _)| v).chain(args.keywords.iter_mut().map(|(_, v, _)| v));
        for v in values {
            match *v {
                Value::Tensor(t) => {
                    let t = self.get_tensor(t);
                    let device = self.ite_device(when, device, t.device);
                    *v = self.tensor(crate::flow::domain::value::Tensor { device, ..t });
                }
                // Other parts of its batch may be on another device than this part.
                Value::Outer(o) => {
                    self.evidence.brought_along.insert(o);
                }
                _ => {}
            }
        }
        Some(args)
    }

    /// From here on, the module moves its inputs to its own device.
    pub(crate) fn scatters_here(&mut self, id: ObjId) {
        let path = self.path;
        match self.modules.scattering.iter().position(|s| s.0 == id) {
            Some(n) => self.modules.scattering[n].1 = self.d.or(self.modules.scattering[n].1, path),
            None => self.modules.scattering.push((id, path)),
        }
    }

    /// `model = model.module`: the program drops the wrapper. Other code may still have a wrapper that is a parameter here.
    pub(crate) fn unwraps(&mut self, target: ExprId, value: ExprId, v: Value) {
        let ir = &self.linked().ir;
        let params = &ir.function(self.here().func).params;
        let inner = |e: ExprId| match ir.expr(e) {
            Expr::Attr { base, name } => {
                name.as_str() == "module"
                    && crate::flow::machine::statements::try_blocks::same(ir, base, target)
            }
            _ => false,
        };
        let unwraps = match ir.expr(value) {
            Expr::IfElse(id) => inner(ir.if_else(id).then) || inner(ir.if_else(id).orelse),
            _ => inner(value),
        };
        let given =
            matches!(ir.expr(target), Expr::Var(Var::Local(slot)) if params.iter().any(|p| p.slot == slot));
        let Value::Object(id) = v else { return };
        if !unwraps || given {
            return;
        }
        let elsewhere = self.d.not(self.path);
        for n in 0..self.modules.wrapped.len() {
            if self.modules.wrapped[n].0 == id {
                self.modules.wrapped[n].2 = self.d.and(self.modules.wrapped[n].2, elsewhere);
            }
        }
        for n in 0..self.modules.scattering.len() {
            if self.modules.scattering[n].0 == id {
                self.modules.scattering[n].1 = self.d.and(self.modules.scattering[n].1, elsewhere);
            }
        }
        if let Some(&wraps) = self.modules.wraps.get(&id) {
            let wraps = wraps.map(|when| self.d.and(when, elsewhere));
            self.modules.wraps.insert(id, wraps);
        }
    }

    /// `model.module(x)`: calls the module without the wrapper, which would move the inputs.
    pub(crate) fn calls_wrapped(&mut self, id: ObjId, e: ExprId) -> bool {
        if !self.modules.scattering.iter().any(|s| s.0 == id)
            && !self.modules.wrapped.iter().any(|w| w.0 == id)
        {
            return false;
        }
        let ir = &self.linked().ir;
        let Expr::Call(call) = ir.expr(e) else { return false };
        let Expr::Attr { base, name } = ir.expr(ir.call(call).func) else { return false };
        if name.as_str() != "module" || !matches!(ir.expr(base), Expr::Var(_) | Expr::Attr { .. }) {
            return false;
        }
        self.run.muted += 1;
        let whole = self.eval(base);
        self.run.muted -= 1;
        whole == Value::Object(id)
    }

    /// A call of a module in `nn.DataParallel`. On a machine with two GPUs or more, the module must be on the first one.
    pub(crate) fn check_wrapped(&mut self, id: ObjId) {
        let Some(&(_, place, when)) = self.modules.wrapped.iter().find(|w| w.0 == id) else { return };
        let two = self.at_least(2);
        let wrapped = self.d.and(two, when);
        self.check_on_gpu(id, wrapped, "DataParallel", place);
    }

    /// `DistributedDataParallel(model, device_ids=[i])`. Reports a model that is not on that GPU.
    pub(crate) fn distributed_parallel(&mut self, args: &Args, e: ExprId) {
        if let Some((given, _)) = args.get(1, "device_ids")
            && let Some(&[id]) = self.exact_elements(given).as_deref()
            && !matches!(id, Value::Int(_))
            && self.run.muted == 0
        {
            let place = self.place(e);
            self.devices.one_each.push(place);
            self.devices.beyond_first = true;
        }
        let Some((wrapped, _)) = args.get(0, "module") else { return };
        let Some((given, _)) = args.get(1, "device_ids").filter(|(v, _)| *v != Value::None) else { return };
        let ids = self.exact_elements(given);
        let named = ids.as_ref().is_some_and(|ids| !ids.is_empty());
        let (one, place) = (self.at_least(1), self.place(e));
        // Without a process group, the call raises on every machine (torch/nn/parallel/distributed.py).
        let started = self.devices.group_started.unwrap_or(TRUE);
        let grouped = self.d.and(one, started);
        let Value::Object(id) = wrapped else {
            if let Some(device) = self.moved_outside(wrapped).filter(|_| named) {
                self.tell_wrapped(device, grouped, WRAPPER, place);
            }
            return self.scatters_outside(wrapped);
        };
        if !self.is_module_object(id) || ids.as_ref().is_some_and(|ids| ids.is_empty()) {
            return;
        }
        // The wrapper moves its inputs to the GPU (`_pre_forward` in torch/nn/parallel/distributed.py).
        self.scatters_here(id);
        if named {
            self.check_on_gpu(id, grouped, WRAPPER, place);
        }
    }

    fn check_on_gpu(
        &mut self,
        id: ObjId,
        there: crate::flow::domain::diagram::Cond,
        wrapper: &'static str,
        place: Place,
    ) {
        if !self.has_weights(id, 0) && !matches!(self.obj(id).kind, ObjKind::ForeignModule(None)) {
            return;
        }
        let device = self.module_device(id, 0);
        // Where the wrapper does not raise, the device is as before.
        if let Some(bad) = self.tell_wrapped(device, there, wrapper, place) {
            let unknown = self.unknown_device();
            let device = self.ite_device(bad, unknown, device);
            self.move_module(id, device);
        }
    }

    /// Reports a model that is on the CPU when it is wrapped. Returns when that is so, if it is reported.
    fn tell_wrapped(
        &mut self,
        device: Dd,
        there: crate::flow::domain::diagram::Cond,
        wrapper: &'static str,
        place: Place,
    ) -> Option<crate::flow::domain::diagram::Cond> {
        for (leaf, d, origin) in self.device_leaves(device) {
            if d != Device::Cpu {
                continue;
            }
            let here = self.d.where_leaf(device, &mut |p| p == leaf);
            // For one of several models, this needs the condition that selects it. If the diagram has no room for that, nothing is known.
            let Some(bad) = self.d.ite(here, there, crate::flow::domain::diagram::FALSE) else { continue };
            let Some(bite) = self.bite(bad, false) else { continue };
            let chain = self.chain(origin);
            self.emit(Kind::WrappedOnCpu { wrapper, chain }, place, bite, Vec::new());
            return Some(bad);
        }
        None
    }

    /// The device to which the program moved a model of an unknown class. `None` if it did not move it.
    fn moved_outside(&self, wrapped: Value) -> Option<Dd> {
        let moved = match wrapped {
            Value::Outer(o) => self.as_moved(o)?,
            v => v,
        };
        match moved {
            Value::Tensor(t) if !self.get_tensor(t).certain => Some(self.get_tensor(t).device),
            _ => None,
        }
    }
}
