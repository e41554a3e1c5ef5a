//! Models of libraries other than PyTorch, and of files.

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

/// What the engine knows about objects of other libraries, and about files.
#[derive(Default)]
pub(crate) struct Libraries {
    /// Results of unknown functions that received a device, so that the results may be there.
    pub(crate) given_places: FxHashSet<OuterId>,
    /// Events of `torch.load` calls, by the result. They are emitted if the program uses the result as weights.
    pub(crate) loads: FxHashMap<OuterId, Pending>,
    /// Files that the program has written with `torch.save`, with the path condition.
    pub(crate) saved: FxHashMap<Sym, Cond>,
    /// The places where parsers of the command line were made.
    pub(crate) parsers: FxHashMap<ObjId, Place>,
    /// The places where a parser received a list to parse instead of the command line.
    pub(crate) lists: FxHashMap<ObjId, Place>,
    /// Objects of `accelerate` with a known device.
    pub(crate) accelerates: FxHashMap<OuterId, crate::flow::models::libraries::accelerate::Accelerated>,
    /// Objects that each round of a loop makes again: batches of a loader, elements of a generator.
    pub(crate) anew: FxHashSet<ObjId>,
    /// The conditions under which fixtures let their tests run.
    pub(crate) fixtures: FxHashMap<(ModIdx, FuncId), Cond>,
    /// Values that unknown functions made from the contents of a file, with those contents.
    pub(crate) made_of_loaded: FxHashMap<OuterId, OuterId>,
    /// Objects of other libraries that keep tensors, each with the arguments of its call that must be on the same device.
    pub(crate) keepers: FxHashMap<ObjId, Vec<Arg>>,
    /// Results of `torch.load` calls without a `map_location`, with the place of the call.
    pub(crate) read: FxHashMap<OuterId, Place>,
    /// Such calls, with a place where their result meets a tensor on a GPU.
    pub(crate) read_back: Vec<(Place, Place)>,
}

impl Libraries {
    /// Forgets all objects whose number is `objects` or higher.
    pub(crate) fn rewind(&mut self, objects: usize) {
        let old = |id: ObjId| (id.0 as usize) < objects;
        self.anew.retain(|&id| old(id));
        self.parsers.retain(|&id, _| old(id));
        self.lists.retain(|&id, _| old(id));
    }
}
