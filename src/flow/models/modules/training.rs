//! Optimizers, wrappers for several GPUs and process groups.

use crate::flow::domain::diagram::{Dd, FALSE, TRUE};
use crate::flow::domain::event::{Kind, LeftBehind};
use crate::flow::domain::value::{Device, ObjId, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::calls::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::modules::optimizer_state::Optimizer;
use crate::flow::models::modules::submodules::Parts;
use crate::flow::models::tensors::autocast::Autocast;
use crate::ir::{Expr, ExprId, Var};
use crate::span::Place;
use crate::sym::Sym;
use crate::torch;

/// Optimizers whose constructor makes a state for each parameter (measured: all others of `torch.optim` wait for the
/// first step).
const EAGER: &[&str] = &["Adagrad"];

/// The wrapper with a process for each GPU, as messages call it.
const WRAPPER: &str = "DistributedDataParallel";

/// Functions after which a module has other parameters than before.
const REPLACES_PARAMETERS: &[&str] = &[
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.fsdp.fully_shard",
    "torch.distributed.tensor.parallel.parallelize_module",
    "torch.distributed.tensor.distribute_module",
    "fairscale.nn.FullyShardedDataParallel",
];

/// Is it the class of an optimizer?
fn is_optimizer(path: &str) -> bool {
    path.strip_prefix("torch.optim.").is_some_and(|rest| {
        !rest.starts_with("lr_scheduler") && !rest.starts_with("swa_utils") && rest != "Optimizer"
    }) || torch::base_class(Sym::new(path)).is_some_and(|b| b.kind == torch::Base::Optimizer)
}

impl Interp<'_> {
    /// Calls that this file is about; `None` to go on with what else is known of them.
    pub(crate) fn training_call(&mut self, path: Sym, args: &Args, e: ExprId) -> Option<Value> {
        let text = torch::canonical(path).as_str();
        match text {
            "torch.nn.DataParallel" => {
                if let Some((Value::Choice(_), _)) = args.get(0, "module") {
                    return Some(self.each_wrapped(path, args, e));
                }
                self.check_device_list(path, args, e);
                self.for_each_ids(args, &mut |i, args| i.data_parallel(args, e));
                self.wrap(args, false);
                // The wrapper stands for what it wraps: it moves it, and calls it.
                return args.get(0, "module").map(|(v, _)| self.outside_in_parallel(v, e));
            }
            "torch.nn.parallel.DistributedDataParallel" => {
                self.wrap(args, true);
                self.for_each_ids(args, &mut |i, args| i.distributed_parallel(args, e));
            }
            "torch.autocast" | "torch.cuda.amp.autocast" => self.note_autocast(text, args, e),
            "torch.cuda.amp.GradScaler"
            | "torch.amp.GradScaler"
            | "torch.cuda.amp.grad_scaler.GradScaler" => {
                return self.make_scaler(text, args, e);
            }
            "torch.distributed.init_process_group" => {
                self.process_group(args, e);
                self.watch_group(args, e);
                let before = self.devices.group_started.unwrap_or(FALSE);
                self.devices.group_started = Some(self.d.or(before, self.path));
                if let Some((v, at)) = args.get(0, "backend") {
                    self.remember_backend(v, at);
                }
            }
            _ if is_optimizer(text) => return Some(self.make_optimizer(text, args, e)),
            _ if REPLACES_PARAMETERS.contains(&text) => self.parameters_replaced(args, e),
            _ => {}
        }
        None
    }

    fn make_optimizer(&mut self, path: &str, args: &Args, e: ExprId) -> Value {
        let id = self.object(ObjKind::Inert, None, Value::Absent);
        let name = crate::flow::models::tensors::functions::short(Sym::new(path));
        let (mut modules, mut outside) = (Vec::new(), Vec::new());
        if let Some((params, at)) = args.get(0, "params") {
            let mut parts = Parts::default();
            self.parts_of(params, &mut parts, 0);
            for t in parts.tensors {
                if self.check_leaf(Value::Tensor(t), e, &format!("`{name}`"), false) {
                    break;
                }
            }
            (modules, outside) = self.modules_of_parameters(at);
            if !self.run.symbolic && !args.open {
                let groups = self.groups_of((params, at), e);
                self.set_field(id, Sym::new("param_groups"), groups);
            }
        }
        let place = self.place(e);
        let eager = EAGER.contains(&name);
        let stateful = self.steps_make_state(name, args);
        let state = None;
        self.modules.optimizers.push(Optimizer {
            id,
            modules,
            outside,
            place,
            name,
            eager,
            stateful,
            state,
            replaced: None,
        });
        Value::Object(id)
    }

    /// A module is about to move: an optimizer that has its state already stays behind.
    pub(crate) fn check_optimizers(&mut self, id: ObjId, target: Dd, e: ExprId) {
        let concerned = |o: &Optimizer| o.eager || self.obj(o.id).kind == ObjKind::Instance;
        if self.run.muted > 0 || !self.modules.optimizers.iter().any(concerned) {
            return;
        }
        let mut parts = Parts::default();
        self.parts_of(Value::Object(id), &mut parts, 0);
        let here = self.place(e);
        for n in 0..self.modules.optimizers.len() {
            let o = &self.modules.optimizers[n];
            let (place, name) = (o.place, o.name);
            let Some(&module) = o.modules.iter().find(|m| o.eager && parts.modules.contains(m)) else {
                continue;
            };
            let before = self.module_device(module, 0);
            let places = &self.t.places;
            let left = self.d.zip(before, target, &mut |x, y| {
                let accelerator = matches!(
                    places.get(y).0,
                    Device::Cuda(_) | Device::CudaSome | Device::Other(_) | Device::Named(_)
                );
                u32::from(places.get(x).0 == Device::Cpu && accelerator)
            });
            let Some(left) = left else { continue };
            let there = self.available(None);
            let bad = self.d.and(left, there);
            if let Some(bite) = self.bite(bad, false) {
                let kind = Kind::OptimizerFirst { optimizer: name, then: here, left: LeftBehind::State };
                self.emit(kind, place, bite, Vec::new());
                let o = &mut self.modules.optimizers[n];
                o.eager = false;
                // What its steps do with them is told with that.
                let id = o.id;
                if self.obj(id).kind == ObjKind::Instance {
                    self.modules.optimizers[n].modules.clear();
                    self.set_field(id, Sym::new("param_groups"), Value::Unknown);
                }
            }
        }
    }

    /// A module is put in another one's place: an optimizer keeps the old one's parameters.
    pub(crate) fn submodule_replaced(&mut self, old: Value, new: Value, at: ExprId) {
        let (Value::Object(old), Value::Object(new)) = (old, new) else { return };
        if old == new || self.modules.optimizers.is_empty() || self.constructing() {
            return;
        }
        if !self.is_module_object(new) || !self.has_weights(new, 0) || !self.has_weights(old, 0) {
            return;
        }
        // `model.fc = wrap(model.fc)` keeps the parameters.
        let mut kept = Parts::default();
        self.parts_of(Value::Object(new), &mut kept, 0);
        if kept.open || kept.modules.contains(&old) {
            return;
        }
        let place = self.place(at);
        for n in 0..self.modules.optimizers.len() {
            let modules = self.modules.optimizers[n].modules.clone();
            let covers = modules.iter().any(|&m| {
                let mut parts = Parts::default();
                self.parts_of(Value::Object(m), &mut parts, 0);
                parts.modules.contains(&old)
            });
            if covers {
                self.modules.optimizers[n].replaced = Some(place);
            }
        }
    }

    /// `fully_shard(model)` and its kin, after the optimizer was given the parameters from before.
    fn parameters_replaced(&mut self, args: &Args, e: ExprId) {
        let Some((Value::Object(id), _)) = args.get(0, "module") else { return };
        // fairscale then cuts down each parameter where it is (`_shard_parameters_` in fairscale/nn/data_parallel/
        // fully_sharded_data_parallel.py).
        if matches!(
            args.keyword("flatten_parameters"),
            Some((Value::Bool(crate::flow::domain::diagram::FALSE), _))
        ) {
            return;
        }
        let mut parts = Parts::default();
        self.parts_of(Value::Object(id), &mut parts, 0);
        let here = self.place(e);
        for n in 0..self.modules.optimizers.len() {
            let o = &self.modules.optimizers[n];
            let (place, name) = (o.place, o.name);
            if !o.modules.iter().any(|m| parts.modules.contains(m)) {
                continue;
            }
            if let Some(bite) = self.bite(crate::flow::domain::diagram::TRUE, false) {
                let kind = Kind::OptimizerFirst { optimizer: name, then: here, left: LeftBehind::Parameters };
                self.emit(kind, place, bite, Vec::new());
            }
        }
    }

    /// Methods of optimizers and gradient scalers.
    pub(crate) fn training_method(&mut self, id: ObjId, name: Sym, args: &Args, e: ExprId) {
        match name.as_str() {
            "add_param_group" => {
                self.set_field(id, Sym::new("param_groups"), Value::Unknown);
                for o in &mut self.modules.optimizers {
                    if o.id == id {
                        o.replaced = None;
                    }
                }
            }
            "step" => {
                self.steps_stale(id);
                self.steps_with_state(id, e);
            }
            "load_state_dict" => self.state_made(id, e),
            "scale" => {
                if let (Some(&place), Some((Value::Tensor(t), _))) =
                    (self.modules.scalers.get(&id), args.get(0, "outputs"))
                {
                    let device = self.get_tensor(t).device;
                    let scaler = Autocast { place, enabled: TRUE, chosen: TRUE };
                    self.cuda_autocast_meets(device, scaler, e);
                }
            }
            _ => {}
        }
    }

    fn steps_stale(&mut self, id: ObjId) {
        let Some(n) = self.modules.optimizers.iter().position(|o| o.id == id) else { return };
        let o = &self.modules.optimizers[n];
        let (place, name) = (o.place, o.name);
        let Some(then) = o.replaced else { return };
        if let Some(bite) = self.bite(crate::flow::domain::diagram::TRUE, false) {
            let kind = Kind::OptimizerFirst { optimizer: name, then, left: LeftBehind::Parameters };
            self.emit(kind, place, bite, Vec::new());
            self.modules.optimizers[n].replaced = None;
        }
    }

    /// `nn.DataParallel(model)` of one of several models, whichever it is.
    fn each_wrapped(&mut self, path: Sym, args: &Args, e: ExprId) -> Value {
        let Some((models, _)) = args.get(0, "module") else { return self.result_of(e) };
        self.each(models, &mut |i, model| {
            i.training_call(path, &args.with(0, "module", model), e).unwrap_or(model)
        })
    }

    /// `device_ids=ids if cuda else None`: each of them, on its own path.
    fn for_each_ids(&mut self, args: &Args, wrap: &mut dyn FnMut(&mut Self, &Args)) {
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

    /// `nn.DataParallel(model)`: with one GPU it moves the model there itself, with more it must be there already.
    fn data_parallel(&mut self, args: &Args, e: ExprId) {
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

    /// `nn.DataParallel`, and `DistributedDataParallel` that has been given devices, bring their inputs there.
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
                // Wherever the other parts of its batch went, this one may stay behind.
                Value::Outer(o) => {
                    self.evidence.brought_along.insert(o);
                }
                _ => {}
            }
        }
        Some(args)
    }

    /// From here on the module brings its inputs to where it is.
    pub(crate) fn scatters_here(&mut self, id: ObjId) {
        let path = self.path;
        match self.modules.scattering.iter().position(|s| s.0 == id) {
            Some(n) => self.modules.scattering[n].1 = self.d.or(self.modules.scattering[n].1, path),
            None => self.modules.scattering.push((id, path)),
        }
    }

    /// `model = model.module`: nobody has the wrapper any more. What a function was given others may still have.
    pub(crate) fn unwraps(&mut self, target: ExprId, value: ExprId, v: Value) {
        let ir = &self.linked().ir;
        let params = &ir.function(self.here().func).params;
        let inner = |e: ExprId| match ir.expr(e) {
            Expr::Attr { base, name } => {
                name.as_str() == "module" && crate::flow::machine::stmt::same(ir, base, target)
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

    /// `model.module(x)`: past the wrapper, which brings no inputs along then.
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

    /// A module in `nn.DataParallel` is called: on two GPUs or more it must be on the first of them.
    pub(crate) fn check_wrapped(&mut self, id: ObjId) {
        let Some(&(_, place, when)) = self.modules.wrapped.iter().find(|w| w.0 == id) else { return };
        let two = self.at_least(2);
        let wrapped = self.d.and(two, when);
        self.check_on_gpu(id, wrapped, "DataParallel", place);
    }

    /// `DistributedDataParallel(model, device_ids=[i])` of a model that is not there.
    fn distributed_parallel(&mut self, args: &Args, e: ExprId) {
        if let Some((given, _)) = args.get(1, "device_ids")
            && let Some(&[id]) = self.exact_elements(given).as_deref()
            && !matches!(id, Value::Int(_))
            && self.run.muted == 0
        {
            let place = self.place(e);
            self.devices.one_each.push((place, self.has_index(id)));
            self.devices.beyond_first = true;
        }
        let Some((wrapped, _)) = args.get(0, "module") else { return };
        let Some((given, _)) = args.get(1, "device_ids").filter(|(v, _)| *v != Value::None) else { return };
        let ids = self.exact_elements(given);
        let named = ids.as_ref().is_some_and(|ids| !ids.is_empty());
        let (one, place) = (self.at_least(1), self.place(e));
        // Where no group has been started it raises for that, whatever the machine (torch/nn/parallel/distributed.py).
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
        // It takes its inputs there itself (`_pre_forward` in torch/nn/parallel/distributed.py).
        self.scatters_here(id);
        if named {
            self.check_on_gpu(id, grouped, WRAPPER, place);
        }
    }

    /// Is it a device that has an index wherever it is a GPU?
    fn has_index(&self, v: Value) -> bool {
        self.values_of(v).into_iter().all(|v| match v {
            Value::Device(d) => self
                .device_leaves(d)
                .iter()
                .all(|(_, d, _)| matches!(d, Device::Cuda(Some(_)) | Device::CudaSome | Device::Cpu)),
            _ => false,
        })
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
        if self.tell_wrapped(device, there, wrapper, place) {
            let unknown = self.unknown_device();
            self.move_module(id, unknown);
        }
    }

    /// Tells of a model that is wrapped where it is on the CPU.
    fn tell_wrapped(
        &mut self,
        device: Dd,
        there: crate::flow::domain::diagram::Cond,
        wrapper: &'static str,
        place: Place,
    ) -> bool {
        for (leaf, d, origin) in self.device_leaves(device) {
            if d != Device::Cpu {
                continue;
            }
            let here = self.d.where_leaf(device, &mut |p| p == leaf);
            // Of one model of many, it is there where another one was chosen: without room for that, nothing is known.
            let Some(bad) = self.d.ite(here, there, crate::flow::domain::diagram::FALSE) else { continue };
            let Some(bite) = self.bite(bad, false) else { continue };
            let chain = self.chain(origin);
            self.emit(Kind::WrappedOnCpu { wrapper, chain }, place, bite, Vec::new());
            return true;
        }
        false
    }

    /// Where a model is of which nobody here sees the class, and which a move has left there; nothing if nobody has moved it.
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

    fn make_scaler(&mut self, path: &str, args: &Args, e: ExprId) -> Option<Value> {
        let old = path.starts_with("torch.cuda.");
        let device = if old { None } else { args.get(0, "device").map(|(v, _)| v) };
        let cuda = match device {
            None => true,
            Some(Value::Str(s, _)) => s.as_str() == "cuda",
            _ => false,
        };
        let enabled = args.get(if old { 4 } else { 5 }, "enabled").map(|(v, _)| v);
        if !cuda || args.open || enabled.is_some_and(|v| v != Value::Bool(crate::flow::domain::diagram::TRUE))
        {
            return None;
        }
        let id = self.object(ObjKind::Inert, None, Value::Absent);
        let place = self.place(e);
        self.modules.scalers.insert(id, place);
        Some(Value::Object(id))
    }
}
