//! Models of `nn.Module`, its layers, and optimizers.

pub(crate) mod attribute_assignment;
pub(crate) mod buffers;
pub(crate) mod calls;
pub(crate) mod hooks;
pub(crate) mod late_tensors;
pub(crate) mod layer_calls;
pub(crate) mod layers;
pub(crate) mod moved_later;
pub(crate) mod moves;
pub(crate) mod nn_module;
pub(crate) mod registration;
pub(crate) mod replaced_parameters;
pub(crate) mod submodules;
pub(crate) mod weightless;

use crate::flow::domain::diagram::{Cond, Dd};
use crate::flow::domain::value::{ObjId, OuterId, TensorId, Value};
use crate::flow::models::training::optimizer_state::Optimizer;
use crate::span::Place;
use crate::sym::Sym;
use rustc_hash::{FxHashMap, FxHashSet};

/// State of the models of modules and optimizers.
#[derive(Default)]
pub(crate) struct Modules {
    /// Modules with a hook that may move them, their inputs or their outputs at every call.
    pub(crate) hooked: FxHashSet<ObjId>,
    /// The modules whose parts, or whose replaced `forward`, are being called.
    pub(crate) within: Vec<ObjId>,
    /// Values on which the program has set attributes.
    pub(crate) with_fields: FxHashSet<Value>,
    /// Modules whose parameters the program may have replaced, under unknown names or conditions.
    pub(crate) refilled: FxHashSet<ObjId>,
    /// Tensors that may be graph objects and that the program has moved since a loop drew them.
    pub(crate) graphs_moved: FxHashSet<TensorId>,
    /// Where the program set the fields of modules under construction.
    pub(crate) fields: FxHashMap<(ObjId, Sym), Place>,
    /// Forward hooks that the engine follows.
    pub(crate) hooks: Vec<crate::flow::models::modules::hooks::Hook>,
    /// Optimizers, with the modules whose parameters they received.
    pub(crate) optimizers: Vec<Optimizer>,
    /// Modules in `nn.DataParallel`, with the place and the path condition of the wrapping.
    pub(crate) wrapped: Vec<(ObjId, Place, Cond)>,
    /// Modules that are wrapped for several devices: the conditions for `DataParallel` and for `DistributedDataParallel`. The
    /// wrapper and its module are one object.
    pub(crate) wraps: FxHashMap<ObjId, [Cond; 2]>,
    /// Modules that move their inputs to their own device, with the condition.
    pub(crate) scattering: Vec<(ObjId, Cond)>,
    /// Gradient scalers for CUDA.
    pub(crate) scalers: FxHashMap<ObjId, Place>,
    /// Attributes of modules that were set in a way that `nn.Module` does not notice.
    pub(crate) unseen: FxHashSet<(ObjId, Sym)>,
    /// Devices of parameters before their modules moved.
    pub(crate) left_by_parameters: FxHashSet<Dd>,
    /// Parameters that the program took from modules, by their device value: the modules, with the modules' device at that time.
    pub(crate) given_out: FxHashMap<Dd, Vec<(ObjId, Dd)>>,
    /// Modules that register parameters or buffers under computed names.
    pub(crate) registers_by_hand: FxHashSet<ObjId>,
    /// Inputs of `forward` that were passed to layers with weights.
    pub(crate) with_layers: FxHashSet<OuterId>,
    /// Modules in half precision, with the place and the condition of the conversion.
    pub(crate) halved: FxHashMap<ObjId, (Place, Cond)>,
}

impl Modules {
    /// Forgets all objects whose number is `objects` or higher.
    pub(crate) fn rewind(&mut self, objects: usize) {
        let old = |id: ObjId| (id.0 as usize) < objects;
        self.hooked.retain(|&id| old(id));
        self.fields.retain(|&(id, _), _| old(id));
        self.hooks.retain(|h| old(h.handle));
        self.optimizers.retain(|o| old(o.id));
        self.wrapped.retain(|&(id, ..)| old(id));
        self.scattering.retain(|&(id, _)| old(id));
        self.unseen.retain(|&(id, _)| old(id));
        self.left_by_parameters.clear();
        self.given_out.clear();
        self.scalers.retain(|&id, _| old(id));
        self.halved.retain(|&id, _| old(id));
    }
}
