//! CUDA autocast: its regions, the conditions under which they are enabled, and the work inside of them.

use crate::flow::domain::diagram::{Cond, Dd, FALSE, TRUE};
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, NO_ORIGIN, ObjId, OriginId, OuterId, OuterKey, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{ArgKind, Expr, ExprId};
use crate::link::{ModIdx, Resolved};
use crate::span::Place;
use crate::torch;

/// A region of CUDA autocast.
#[derive(Clone, Copy)]
pub(crate) struct Autocast {
    /// The place of the call that makes it.
    pub(crate) place: Place,
    /// The condition under which it is enabled.
    pub(crate) enabled: Cond,
    /// The condition that selects it among several context managers.
    pub(crate) chosen: Cond,
}

impl Interp<'_> {
    /// A call of `torch.autocast("cuda")`, possibly long before its block. Stores it if it is for CUDA only and may be enabled.
    pub(crate) fn note_autocast(&mut self, path: &str, args: &Args, e: ExprId) {
        let old = path == "torch.cuda.amp.autocast";
        if args.open || args.open_names {
            return;
        }
        let mut place = self.place(e);
        if !old {
            match args.get(0, "device_type") {
                Some((Value::Str(s, origin), _)) if s.as_str() == "cuda" => place = self.said(origin, place),
                _ => return,
            }
        }
        let place = self.tensors.called_autocast.unwrap_or(place);
        let enabled = match args.get(if old { 0 } else { 2 }, "enabled") {
            Some((v, _)) => self.switched_on(v),
            None => TRUE,
        };
        if enabled != FALSE
            && let Value::Outer(made) = self.result_of(e)
        {
            // The call may be of one of several functions. The path condition selects this one.
            let chosen = self.path;
            self.tensors.made_autocasts.insert(made, Autocast { place, enabled, chosen });
        }
    }

    /// `partial(torch.autocast, device_type="cuda")`: stores the place that chooses CUDA.
    pub(crate) fn note_kept_autocast(&mut self, kept: ObjId, f: Value, args: &Args, e: ExprId) {
        let Value::External(path) = f else { return };
        let place = match torch::canonical(path).as_str() {
            "torch.cuda.amp.autocast" => self.place(e),
            "torch.autocast" => {
                let word = args.get(1, "device_type");
                let Some((Value::Str(_, origin), _)) = word else { return };
                self.said(origin, self.place(e))
            }
            _ => return,
        };
        self.tensors.kept_autocasts.insert(kept, place);
    }

    /// The place that chooses CUDA: the call `made`, or the call of a function whose parameter has the device type as its default.
    fn said(&self, word: OriginId, made: Place) -> Place {
        let said = self.t.origins.get(word.0).place;
        let here = self.here();
        let params = &self.linked().ir.function(here.func).params;
        let default = params.iter().any(|p| p.default.is_some_and(|d| self.place(d) == said));
        if word != NO_ORIGIN && default { here.site.unwrap_or(made) } else { made }
    }

    /// The condition under which `enabled=` is true, if it is a constant or depends on the machine. For any other value, the
    /// condition is false, because the value may depend on a test of the device.
    fn switched_on(&self, v: Value) -> Cond {
        match v {
            Value::Bool(c) => c,
            _ => FALSE,
        }
    }

    /// Is the decorator a call of CUDA autocast without a test of the device? Returns its place.
    fn autocast_decorator(&self, module: ModIdx, e: ExprId) -> Option<Place> {
        let linked = self.program.get(module);
        let ir = &linked.ir;
        let Expr::Call(call) = ir.expr(e) else { return None };
        let call = ir.call(call);
        let Some(Resolved::External(path)) = self.program.resolve_expr(module, call.func) else {
            return None;
        };
        let old = match torch::canonical(path).as_str() {
            "torch.cuda.amp.autocast" => true,
            "torch.autocast" => false,
            _ => return None,
        };
        let mut positional = 0;
        let on = call.args.iter().all(|arg| match (arg.kind, ir.expr(arg.value)) {
            (ArgKind::Positional, value) => {
                positional += 1;
                match (old, positional, value) {
                    (true, 1, value) => value == Expr::True,
                    (false, 1, Expr::Str(s)) => s.as_str() == "cuda",
                    (false, 1, _) => false,
                    _ => true,
                }
            }
            (ArgKind::Keyword(name), value) => match (name.as_str(), value) {
                ("enabled", value) => value == Expr::True,
                ("device_type", Expr::Str(s)) => s.as_str() == "cuda",
                ("device_type", _) => false,
                _ => true,
            },
            _ => false,
        });
        on.then(|| Place { file: ir.file, span: ir.span(e) })
    }

    /// A call of a function that has CUDA autocast as a decorator.
    pub(crate) fn enter_decorated(&mut self, module: ModIdx, decorator: ExprId) {
        if let Some(place) = self.autocast_decorator(module, decorator) {
            self.autocast_entered(Autocast { place, enabled: TRUE, chosen: TRUE });
        }
    }

    /// A `with` block enters a CUDA autocast, or one of several managers: `torch.autocast("cuda") if args.amp else nullcontext()`.
    pub(crate) fn enter_autocast(&mut self, manager: Value) {
        if self.tensors.made_autocasts.is_empty() {
            return;
        }
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
            if let Some(&made) = self.tensors.made_autocasts.get(&o) {
                let chosen = self.d.and(made.chosen, chosen);
                self.autocast_entered(Autocast { chosen, ..made });
            }
        }
    }

    /// A CUDA autocast begins. In a method of a module or of a trainer, the work inside is on the module's device, which may be the CPU.
    fn autocast_entered(&mut self, cast: Autocast) {
        self.tensors.autocasts.push(cast);
        if !self.in_class_that_moves() || self.constructing() {
            return;
        }
        let there = self.available(None);
        let absent = self.d.not(there);
        self.while_chosen(cast, &mut |i| {
            let bad = i.d.and(absent, cast.enabled);
            if let Some(bite) = i.bite(bad, true) {
                let work = Kind::CudaAutocast { follows: cast.place, given: None };
                i.emit(work, cast.place, bite, Vec::new());
            }
        });
    }

    /// Runs `then` on the path on which this autocast was selected, as if its block were inside of that test.
    fn while_chosen(&mut self, cast: Autocast, then: &mut dyn FnMut(&mut Self)) {
        let path = self.path;
        self.path = self.d.and(path, cast.chosen);
        then(self);
        self.path = path;
    }

    /// A call inside of an autocast works on the device of the callee and of its arguments.
    pub(crate) fn works_for_autocast(&mut self, f: Value, args: &Args, e: ExprId) {
        if self.tensors.autocasts.is_empty() {
            return;
        }
        match f {
            Value::Tensor(t) => {
                let device = self.get_tensor(t).device;
                self.autocast_meets(device, e);
            }
            Value::Outer(o) => {
                self.args_in_autocast(self.owner(o), args, e);
            }
            _ => {}
        }
    }

    /// The same for a known module.
    pub(crate) fn module_in_autocast(&mut self, device: Dd, args: &Args, e: ExprId) {
        if self.tensors.autocasts.is_empty() {
            return;
        }
        let with = self.device_leaves(device).into_iter().find_map(|(_, d, _)| match d {
            Device::Of(o) => Some(self.owner(o)),
            _ => None,
        });
        if let Some(with) = with {
            self.args_in_autocast(with, args, e);
        }
    }

    fn args_in_autocast(&mut self, model: OuterId, args: &Args, e: ExprId) {
        for v in args.values().map(|(v, _)| v).chain(args.unnamed) {
            self.given_in_autocast(model, v, e, 0);
        }
    }

    /// An argument of an outside value's call: a tensor that the program has moved to a selected device, or to the device of the model.
    fn given_in_autocast(&mut self, model: OuterId, v: Value, e: ExprId, depth: u32) {
        match v {
            Value::Tensor(t) => {
                let device = self.get_tensor(t).device;
                let leaves = self.device_leaves(device);
                let sent = leaves.iter().all(|&(_, d, _)| match d {
                    Device::Of(o) => self.owner(o) == model,
                    _ => true,
                });
                if sent {
                    self.autocast_meets(device, e);
                }
            }
            Value::Object(id) if depth == 0 && self.is_plain_container(id) => {
                let content = self.own(id);
                self.each_within(content, &mut |i, v| {
                    i.given_in_autocast(model, v, e, 1);
                    v
                });
            }
            _ => {}
        }
    }

    /// The outside value whose attribute this is, or the value itself.
    fn owner(&self, mut o: OuterId) -> OuterId {
        while let OuterKey::Attr { base, .. } = self.t.get_outer(o).key {
            o = base;
        }
        o
    }

    /// The first argument of a call that is a variable with a tensor.
    fn tensor_given(&mut self, e: ExprId) -> Option<ExprId> {
        let ir = &self.linked().ir;
        let Expr::Call(c) = ir.expr(e) else { return None };
        let plain =
            ir.call(c).args.iter().filter(|a| matches!(a.kind, ArgKind::Positional | ArgKind::Keyword(_)));
        let names: Vec<ExprId> =
            plain.map(|a| a.value).filter(|&v| matches!(ir.expr(v), Expr::Var(_))).collect();
        names.into_iter().find(|&v| {
            self.run.muted += 1;
            let value = self.eval(v);
            self.run.muted -= 1;
            matches!(value, Value::Tensor(_))
        })
    }

    /// Work on a device, which may be inside of a CUDA autocast.
    pub(crate) fn autocast_meets(&mut self, device: Dd, e: ExprId) {
        if let (Some(&cast), 0) = (self.tensors.autocasts.last(), self.run.muted) {
            self.cuda_autocast_meets(device, cast, e);
        }
    }

    /// Reports work on a device that is the CPU on a machine without CUDA: the device depends on a test, and the autocast does not.
    pub(crate) fn cuda_autocast_meets(&mut self, device: Dd, cast: Autocast, e: ExprId) {
        self.while_chosen(cast, &mut |i| i.autocast_does_not_follow(device, cast, e));
    }

    fn autocast_does_not_follow(&mut self, device: Dd, cast: Autocast, e: ExprId) {
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
            if let Some(bite) = self.bite_without_cuda(device, leaf, cast.enabled) {
                let follows = self.place(e);
                let given = self.tensor_given(e).map(|e| self.place(e));
                self.emit(Kind::CudaAutocast { follows, given }, cast.place, bite, Vec::new());
                return;
            }
        }
    }
}
