//! Models of libraries besides PyTorch, and of files.

pub(crate) mod accelerate;
pub(crate) mod checkpoint_devices;
pub(crate) mod checkpoints;
pub(crate) mod collation;
pub(crate) mod copies;
pub(crate) mod data_loaders;
pub(crate) mod external_calls;
pub(crate) mod external_methods;
pub(crate) mod gathered;
pub(crate) mod intrinsics;
pub(crate) mod pytest_fixtures;
pub(crate) mod samplers;
pub(crate) mod saved_files;
pub(crate) mod tensor_holders;
pub(crate) mod tokenizers;
pub(crate) mod urls;

use crate::flow::domain::diagram::Cond;
use crate::flow::domain::value::{ObjId, OuterId};
use crate::flow::machine::Pending;
use crate::ir::FuncId;
use crate::link::ModIdx;
use crate::span::Place;
use crate::sym::Sym;
use crate::torch::Arg;
use rustc_hash::{FxHashMap, FxHashSet};

/// What is known of objects of other libraries, and of files.
#[derive(Default)]
pub(crate) struct Libraries {
    /// What unknown functions have made that were given a device: what they give may be there.
    pub(crate) given_places: FxHashSet<OuterId>,
    /// `torch.load` calls, by their result, that become events when it turns out to be weights.
    pub(crate) loads: FxHashMap<OuterId, Pending>,
    /// Files that have been written with `torch.save`, and when.
    pub(crate) saved: FxHashMap<Sym, Cond>,
    /// Where parsers of the command line were made.
    pub(crate) parsers: FxHashMap<ObjId, Place>,
    /// Where a parser was given a list to parse instead of the command line.
    pub(crate) lists: FxHashMap<ObjId, Place>,
    /// Objects of `accelerate` that know their device.
    pub(crate) accelerates: FxHashMap<OuterId, crate::flow::models::libraries::accelerate::Accelerated>,
    /// Objects that stand for those that each round of a loop gets: batches of a loader, what a generator makes.
    pub(crate) anew: FxHashSet<ObjId>,
    /// When fixtures let the tests that use them go on.
    pub(crate) fixtures: FxHashMap<(ModIdx, FuncId), Cond>,
    /// What unknown functions have made of what was read from a file, and of which.
    pub(crate) made_of_loaded: FxHashMap<OuterId, OuterId>,
    /// Objects of other libraries that keep tensors, each with the arguments of its call that must be there.
    pub(crate) keepers: FxHashMap<ObjId, Vec<Arg>>,
    /// What files gave that are loaded to wherever they were saved from, with where that is.
    pub(crate) read: FxHashMap<OuterId, Place>,
    /// Such places, with where something out of the file meets a tensor on a GPU.
    pub(crate) read_back: Vec<(Place, Place)>,
}

impl Libraries {
    /// Forgets objects from this number on.
    pub(crate) fn rewind(&mut self, objects: usize) {
        let old = |id: ObjId| (id.0 as usize) < objects;
        self.anew.retain(|&id| old(id));
        self.parsers.retain(|&id, _| old(id));
        self.lists.retain(|&id, _| old(id));
    }
}
