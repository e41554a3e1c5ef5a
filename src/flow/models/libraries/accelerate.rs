//! `accelerate.Accelerator`: its device, and what `prepare()` moves there.
//!
//! Without `cpu=True` it uses the first accelerator that the machine has (accelerate/state.py, `PartialState`). `prepare()`
//! moves models in place and wraps loaders, which then move each batch to that device (accelerate/accelerator.py,
//! `prepare_model`; accelerate/data_loader.py, `DataLoaderShard`). The options of `accelerate launch` (CPU, DeepSpeed) are
//! not part of the program. The model assumes its defaults.

use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::diagram::{Dd, FALSE};
use crate::flow::domain::value::{Device, NO_ORIGIN, OuterId, OuterKey, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::world::Backend;

/// Classes of `accelerate` that have a `device`.
const STATES: &[&str] = &[
    "accelerate.Accelerator",
    "accelerate.accelerator.Accelerator",
    "accelerate.PartialState",
    "accelerate.state.PartialState",
];

/// Arguments that make `prepare()` split a model or keep it on another device.
const SPLIT: &[&str] =
    &["fsdp_plugin", "deepspeed_plugin", "deepspeed_plugins", "megatron_lm_plugin", "parallelism_config"];

/// Attributes that are true in one of the processes. A program with one process has only that one.
const FIRST: &[&str] = &["is_main_process", "is_local_main_process", "is_last_process"];

/// Attributes about the progress of the training, which say nothing about the device.
const ELSE: &[&str] = &["sync_gradients", "optimizer_step_was_skipped"];

/// What the engine knows about an object of one of these classes.
#[derive(Clone, Copy)]
pub(crate) struct Accelerated {
    /// `accelerator.device`
    device: Dd,
    /// Whether it moves what it prepares to its device.
    places: bool,
}

impl Accelerated {
    /// The object's device.
    pub(crate) const fn device(self) -> Dd {
        self.device
    }
}

impl Interp<'_> {
    /// `Accelerator(…)`, `PartialState(…)`: the object, whose device the engine knows from here on.
    pub(crate) fn make_accelerator(&mut self, path: &str, args: &Args, e: ExprId) -> Option<Value> {
        if !STATES.contains(&path) || args.open || args.open_names {
            return None;
        }
        let made = self.result_of(e);
        let Value::Outer(o) = made else { return None };
        let on_cpu = match args.keyword("cpu").map(|(v, _)| v) {
            None | Some(Value::None) => false,
            Some(Value::Bool(c)) if c == TRUE || c == FALSE => c == TRUE,
            Some(_) => return None,
        };
        let told = |name: &str| args.keyword(name).is_some_and(|(v, _)| v != Value::None);
        let placement = args.get(0, "device_placement").is_none_or(|(v, _)| v == Value::Bool(TRUE));
        let places = path.ends_with("Accelerator") && placement && !SPLIT.iter().any(|&name| told(name));
        let device = self.found_by_accelerate(on_cpu, e);
        self.libraries.accelerates.insert(o, Accelerated { device, places });
        Some(made)
    }

    fn found_by_accelerate(&mut self, on_cpu: bool, e: ExprId) -> Dd {
        let place = self.place(e);
        let origin = self.origin(place, Reason::Made, NO_ORIGIN);
        let mut device = self.at(Device::Cpu, origin);
        if on_cpu {
            return device;
        }
        // Of the accelerators that come after CUDA, only MPS is common.
        let (there, mps) = (self.available(Some(Backend::Mps)), self.at(Device::Other(Backend::Mps), origin));
        device = self.ite_device(there, mps, device);
        let (there, cuda) = (self.available(None), self.at(Device::Cuda(None), origin));
        self.ite_device(there, cuda, device)
    }

    /// `accelerator.device`, and other attributes of such an object with a known value.
    pub(crate) fn asked_of_accelerator(&self, o: OuterId, name: Sym) -> Option<Value> {
        let accelerated = self.libraries.accelerates.get(&o)?;
        match name.as_str() {
            "device" => Some(Value::Device(accelerated.device)),
            name => FIRST.contains(&name).then_some(Value::Bool(TRUE)),
        }
    }

    /// Is it an attribute such as `accelerator.sync_gradients`, which says nothing about the device?
    pub(crate) fn asks_accelerator_else(&self, o: OuterId) -> bool {
        let OuterKey::Attr { base, name } = self.t.get_outer(o).key else { return false };
        self.libraries.accelerates.contains_key(&base) && ELSE.contains(&name.as_str())
    }

    /// `accelerator.prepare(model, loader, …)` and similar methods: their results, one for each argument.
    pub(crate) fn prepared_by(&mut self, o: OuterId, name: Sym, args: &Args, e: ExprId) -> Option<Value> {
        let accelerated = *self.libraries.accelerates.get(&o)?;
        let moves = matches!(name.as_str(), "prepare" | "prepare_model" | "prepare_data_loader");
        if !moves || !accelerated.places || args.open || !args.keywords.is_empty() {
            return None;
        }
        let mut prepared: Vec<Value> = Vec::with_capacity(args.positional.len());
        for (n, &(v, _)) in (0..).zip(&args.positional) {
            let other = match self.result_of(e) {
                Value::Outer(all) if args.positional.len() > 1 => {
                    Value::Outer(self.outer_item(all, Value::Int(n)))
                }
                result => result,
            };
            prepared.push(self.each(v, &mut |i, v| i.prepared(v, accelerated.device, other, e)));
        }
        match prepared.as_slice() {
            &[one] => Some(one),
            several => Some(self.seq(several)),
        }
    }

    /// The prepared form of one argument. `other` is the result if the call may return an unknown wrapper.
    fn prepared(&mut self, v: Value, device: Dd, other: Value, e: ExprId) -> Value {
        let device = self.because(device, e, Reason::Moved);
        let id = match v {
            Value::Object(id) => id,
            // Other values than models, optimizers, loaders and schedulers stay as they are (accelerate/accelerator.py, `_prepare_one`).
            Value::Tensor(t) if self.get_tensor(t).certain => return v,
            Value::Seq(_)
            | Value::Host(_)
            | Value::Int(_)
            | Value::Str(..)
            | Value::Bool(_)
            | Value::None => {
                return v;
            }
            _ => {
                if let Value::Outer(o) = other {
                    self.tensors.prepared.insert(o, device);
                }
                return other;
            }
        };
        match self.obj(id).kind {
            ObjKind::Module | ObjKind::ForeignModule(_) => {
                self.move_module(id, device);
                self.forget_mode(v);
                v
            }
            ObjKind::Loader => {
                let item = self.sent_along(self.own(id), device);
                Value::Object(self.object(ObjKind::Loader, None, item))
            }
            // An optimizer keeps its parameters.
            ObjKind::Inert => v,
            ObjKind::List { module: false } | ObjKind::Dict { module: false } => v,
            _ => other,
        }
    }

    /// A batch after the loader has moved it: all tensors in it are on the device.
    fn sent_along(&mut self, batch: Value, device: Dd) -> Value {
        self.each_within(batch, &mut |i, v| match v {
            Value::Unknown | Value::Outer(_) => i.possible_tensor(device),
            Value::Object(id) if i.is_plain_container(id) => {
                let content = i.own(id);
                let content = i.sent_along(content, device);
                let kind = i.obj(id).kind;
                Value::Object(i.object(kind, None, content))
            }
            Value::Object(_) => Value::Unknown,
            v => i.move_all(v, device),
        })
    }
}
