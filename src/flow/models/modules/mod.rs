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

/// What is known of modules and optimizers.
#[derive(Default)]
pub(crate) struct Modules {
    /// Modules with a hook that may move them, their inputs or their outputs at every call.
    pub(crate) hooked: FxHashSet<ObjId>,
    /// The modules whose parts, or what is in place of their `forward`, are being called.
    pub(crate) within: Vec<ObjId>,
    /// What has been given attributes.
    pub(crate) with_fields: FxHashSet<Value>,
    /// Modules that somebody has given other parameters, under whatever names and conditions.
    pub(crate) refilled: FxHashSet<ObjId>,
    /// What may be graphs, and has been moved since it was drawn.
    pub(crate) graphs_moved: FxHashSet<TensorId>,
    /// Where the fields of modules under construction were set.
    pub(crate) fields: FxHashMap<(ObjId, Sym), Place>,
    /// Forward hooks that are followed.
    pub(crate) hooks: Vec<crate::flow::models::modules::hooks::Hook>,
    /// Optimizers, with the modules whose parameters they were given.
    pub(crate) optimizers: Vec<Optimizer>,
    /// Modules in `nn.DataParallel`, with where they were wrapped, and when.
    pub(crate) wrapped: Vec<(ObjId, Place, Cond)>,
    /// Modules that are wrapped for several devices, and when in `DataParallel` and in `DistributedDataParallel`: the
    /// wrapper and what it wraps are one object.
    pub(crate) wraps: FxHashMap<ObjId, [Cond; 2]>,
    /// Modules that bring their inputs to themselves.
    pub(crate) scattering: Vec<(ObjId, Cond)>,
    /// CUDA gradient scalers.
    pub(crate) scalers: FxHashMap<ObjId, Place>,
    /// Attributes of modules that were set where `nn.Module` does not see it.
    pub(crate) unseen: FxHashSet<(ObjId, Sym)>,
    /// Where parameters were before their modules moved.
    pub(crate) left_by_parameters: FxHashSet<Dd>,
    /// Parameters that modules have given out, by what is known of their place: the modules, with where they were.
    pub(crate) given_out: FxHashMap<Dd, Vec<(ObjId, Dd)>>,
    /// Modules that register parameters or buffers under names that are not written down.
    pub(crate) registers_by_hand: FxHashSet<ObjId>,
    /// Inputs of `forward` that have been given to layers with weights.
    pub(crate) with_layers: FxHashSet<OuterId>,
    /// Modules in half precision, by where they were made so.
    pub(crate) halved: FxHashMap<ObjId, (Place, Cond)>,
}

impl Modules {
    /// Forgets objects from this number on.
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
