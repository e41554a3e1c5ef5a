//! Optimizers, wrappers for several GPUs and process groups.

use crate::flow::domain::diagram::{Dd, TRUE};
use crate::flow::domain::event::{Kind, LeftBehind};
use crate::flow::domain::value::{Device, ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::dtypes::autocast::Autocast;
use crate::flow::models::modules::submodules::Parts;
use crate::flow::models::training::optimizer_state::Optimizer;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch;

/// Optimizers whose constructor makes a state for each parameter (measured: all others of `torch.optim` make it in the
/// first step).
const EAGER: &[&str] = &["Adagrad"];

/// The name of the wrapper that uses one process for each GPU.
pub(crate) const WRAPPER: &str = "DistributedDataParallel";

/// Is the path the class of an optimizer?
pub(crate) fn is_optimizer(path: &str) -> bool {
    path.strip_prefix("torch.optim.").is_some_and(|rest| {
        !rest.starts_with("lr_scheduler") && !rest.starts_with("swa_utils") && rest != "Optimizer"
    }) || torch::base_class(Sym::new(path)).is_some_and(|b| b.kind == torch::Base::Optimizer)
}

impl Interp<'_> {
    pub(crate) fn make_optimizer(&mut self, path: &str, args: &Args, e: ExprId) -> Value {
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

    /// A module is about to move. Reports an optimizer whose existing state stays behind.
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
                // A report about the steps of this optimizer would have the same cause, so forget its modules.
                let id = o.id;
                if self.obj(id).kind == ObjKind::Instance {
                    self.modules.optimizers[n].modules.clear();
                    self.set_field(id, Sym::new("param_groups"), Value::Unknown);
                }
            }
        }
    }

    /// The program replaces a submodule: an optimizer keeps the parameters of the old one.
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

    /// `fully_shard(model)` and similar functions, if an optimizer already has the parameters that they replace.
    pub(crate) fn parameters_replaced(&mut self, args: &Args, e: ExprId) {
        let Some((Value::Object(id), _)) = args.get(0, "module") else { return };
        // With `flatten_parameters=False`, fairscale shards each parameter in place (`_shard_parameters_` in
        // fairscale/nn/data_parallel/fully_sharded_data_parallel.py).
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

    pub(crate) fn make_scaler(&mut self, path: &str, args: &Args, e: ExprId) -> Option<Value> {
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
