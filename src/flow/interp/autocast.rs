//! CUDA autocast: regions of it, when they are on, and what is done in them.

use super::super::diagram::{Cond, Dd, FALSE, TRUE};
use super::super::event::Kind;
use super::super::value::{Device, OuterId, OuterKey, Reason, Value};
use super::Interp;
use crate::ir::{ArgKind, Expr, ExprId};
use crate::link::{ModIdx, Resolved};
use crate::span::Place;
use crate::torch;

impl Interp<'_> {
    /// Is the expression a call of CUDA autocast that does not ask for the device? When it is switched on. `here` says
    /// whether it stands in what is interpreted right here, so that it can be evaluated.
    fn cuda_autocast(&mut self, module: ModIdx, e: ExprId, here: bool) -> Option<(Place, Cond)> {
        let linked = self.program.get(module);
        let Expr::Call(call) = linked.ir.expr(e) else { return None };
        let call = linked.ir.call(call);
        let Some(Resolved::External(path)) = self.program.resolve_expr(module, call.func) else {
            return None;
        };
        let old = match torch::canonical(path).as_str() {
            "torch.cuda.amp.autocast" => true,
            "torch.autocast" => false,
            _ => return None,
        };
        let mut positional = 0;
        let mut enabled = TRUE;
        for arg in call.args {
            let on = match (arg.kind, linked.ir.expr(arg.value)) {
                (ArgKind::Positional, value) => {
                    positional += 1;
                    match (old, positional, value) {
                        (true, 1, _) => {
                            enabled = self.switched_on(module, arg.value, here);
                            enabled != FALSE
                        }
                        (false, 1, Expr::Str(s)) => s.as_str() == "cuda",
                        (false, 1, _) => false,
                        _ => true,
                    }
                }
                (ArgKind::Keyword(name), value) => match (name.as_str(), value) {
                    ("enabled", _) => {
                        enabled = self.switched_on(module, arg.value, here);
                        enabled != FALSE
                    }
                    ("device_type", Expr::Str(s)) => s.as_str() == "cuda",
                    ("device_type", _) => false,
                    _ => true,
                },
                _ => false,
            };
            if !on {
                return None;
            }
        }
        Some((Place { file: linked.ir.file, span: linked.ir.span(e) }, enabled))
    }

    /// When `enabled=` is on, whatever the device: as far as it is a constant, a switch of the command line for mixed
    /// precision that is on unless the user says otherwise, or the machine's own answer. Of what else decides nobody
    /// knows whether it has asked for the device.
    fn switched_on(&mut self, module: ModIdx, e: ExprId, here: bool) -> Cond {
        if !here {
            return if self.program.get(module).ir.expr(e) == Expr::True { TRUE } else { FALSE };
        }
        self.muted += 1;
        let v = self.eval(e);
        self.muted -= 1;
        match v {
            Value::Bool(c) => c,
            Value::Outer(o) if self.is_precision_switch(o) => TRUE,
            _ => FALSE,
        }
    }

    /// `args.amp`, on by default; `half=True` of a constructor
    fn is_precision_switch(&self, o: OuterId) -> bool {
        let outer = self.t.get_outer(o);
        let (name, on) = match outer.key {
            OuterKey::Argument { name, .. } => (name, outer.default == Some(Value::Bool(TRUE))),
            OuterKey::Param { module, func, index } => {
                let ir = &self.program.get(module).ir;
                let Some(param) = ir.function(func).params.get(usize::from(index)) else { return false };
                (param.name, param.default.is_some_and(|d| ir.expr(d) == Expr::True))
            }
            _ => return false,
        };
        if !on {
            return false;
        }
        let precision = |word: &str| {
            matches!(word, "amp" | "fp16" | "half" | "mixed" | "precision" | "autocast" | "float16" | "use")
        };
        name.as_str().split('_').all(precision)
    }

    /// A CUDA autocast around what follows.
    pub(super) fn enter_autocast(&mut self, module: ModIdx, e: ExprId) {
        let here = module == self.here().module;
        if let Some((place, enabled)) = self.cuda_autocast(module, e, here) {
            self.autocast_entered(place, enabled);
        }
    }

    /// The same of one that was made before: `context = torch.autocast("cuda") if args.amp else nullcontext()`.
    pub(super) fn enter_kept_autocast(&mut self, manager: Value) {
        let leaves = match manager {
            Value::Outer(o) => vec![(o, TRUE)],
            Value::Choice(d) => {
                let mut leaves = Vec::new();
                self.d.leaves(d, &mut leaves);
                let outer = |leaf| match *self.t.values.get(leaf) {
                    Value::Outer(o) => Some((o, leaf)),
                    _ => None,
                };
                let made: Vec<(OuterId, u32)> = leaves.into_iter().filter_map(outer).collect();
                made.into_iter().map(|(o, leaf)| (o, self.d.where_leaf(d, &mut |p| p == leaf))).collect()
            }
            _ => return,
        };
        for (o, chosen) in leaves {
            let OuterKey::Result { module, expr, frame, .. } = self.t.get_outer(o).key else { continue };
            if let Some((place, enabled)) = self.cuda_autocast(module, expr, frame == self.frame) {
                let on = self.d.and(enabled, chosen);
                self.autocast_entered(place, on);
            }
        }
    }

    /// In a method of a module that work is wherever the module is, and in one of a trainer wherever that puts it.
    fn autocast_entered(&mut self, place: Place, enabled: Cond) {
        self.watch.autocasts.push((place, enabled));
        if !self.in_class_that_moves() || self.constructing() {
            return;
        }
        let there = self.available(None);
        let absent = self.d.not(there);
        let bad = self.d.and(absent, enabled);
        if let Some(bite) = self.bite(bad, true) {
            self.emit(Kind::CudaAutocast { follows: place }, place, bite, Vec::new());
        }
    }

    /// What is called stays where it was moved to: so does its work.
    pub(super) fn works_for_autocast(&mut self, f: Value, e: ExprId) {
        if let Value::Tensor(t) = f {
            let device = self.get_tensor(t).device;
            self.autocast_meets(device, e);
        }
    }

    /// Work on a device, perhaps inside of a CUDA autocast.
    pub(super) fn autocast_meets(&mut self, device: Dd, e: ExprId) {
        if let (Some(&(place, enabled)), 0) = (self.watch.autocasts.last(), self.muted) {
            self.cuda_autocast_meets(device, place, enabled, e);
        }
    }

    /// The device is the CPU where CUDA is not there: somebody chose it, and autocast does not follow.
    pub(super) fn cuda_autocast_meets(&mut self, device: Dd, place: Place, enabled: Cond, e: ExprId) {
        let leaves = self.device_leaves(device);
        let chosen = leaves.iter().any(|(_, d, _)| matches!(d, Device::Cuda(_) | Device::CudaSome));
        for (leaf, d, origin) in leaves {
            let follows = match d {
                Device::Cpu => chosen,
                Device::Named(o) => self.t.get_outer(o).device,
                // `pipeline.to(accelerator.device)`
                Device::Of(_) => self.t.origins.get(origin.0).reason == Reason::Moved,
                _ => false,
            };
            if !follows {
                continue;
            }
            if let Some(bite) = self.bite_without_cuda(device, leaf, enabled) {
                let follows = self.place(e);
                self.emit(Kind::CudaAutocast { follows }, place, bite, Vec::new());
                return;
            }
        }
    }
}
