//! Models of devices, and of processes that choose among them.

pub(crate) mod accelerator;
pub(crate) mod current_gpu;
pub(crate) mod device_types;
pub(crate) mod environment;
pub(crate) mod from_values;
pub(crate) mod intrinsics;
pub(crate) mod process_groups;
pub(crate) mod processes;
pub(crate) mod ranks;
pub(crate) mod workers;

use crate::flow::domain::diagram::Cond;
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{Device, FrameId, ObjId, OuterId, Value};
use crate::flow::models::devices::process_groups::Group;
use crate::flow::models::devices::workers::Worker;
use crate::span::Place;
use rustc_hash::FxHashMap;

/// What is known of processes, their groups and their GPUs.
#[derive(Default)]
pub(crate) struct Devices {
    /// The condition under which CUDA has been initialised.
    pub(crate) ready: Cell,
    /// What the program has put into `CUDA_VISIBLE_DEVICES`.
    pub(crate) visible: Cell,
    /// What the program has put into other variables of the environment: their names, and what they hold, in turn.
    pub(crate) environment: Cell,
    /// Where CUDA was initialised first.
    pub(crate) ready_at: Option<Place>,
    /// Where `CUDA_VISIBLE_DEVICES` was set.
    pub(crate) visible_at: Option<Place>,
    /// Where the environment was set before CUDA was asked, and to what.
    pub(crate) in_time: FxHashMap<Place, Value>,
    /// The first import that asks CUDA something.
    pub(crate) imported: Option<Place>,
    /// Parts of environment variables.
    pub(crate) from_environment: FxHashMap<OuterId, &'static str>,
    /// What the program has made the number of the only visible GPU, and when.
    pub(crate) physical: Option<(OuterId, Cond)>,
    /// The condition under which the default process group is NCCL's.
    pub(crate) nccl: Cell,
    /// The NCCL group.
    pub(crate) group: Option<Group>,
    /// Devices without an index: `cuda`.
    pub(crate) bare: Vec<Place>,
    /// Has each process chosen a device?
    pub(crate) selected: bool,
    /// Something goes to a device with an index, or one that others name.
    pub(crate) indexed: bool,
    /// Something in the file may use another GPU than the first.
    pub(crate) beyond_first: bool,
    /// Models that are wrapped for one device of each process.
    pub(crate) one_each: Vec<Place>,
    /// When a process group was started, if anything in sight starts one.
    pub(crate) group_started: Option<Cond>,
    /// Where a process has chosen its GPU by a number that nobody knows, in which frame and when.
    pub(crate) gpus_chosen: Vec<(FrameId, Cond, Place)>,
    /// GPUs on which something has met what is where the module is, and when.
    pub(crate) module_met: Vec<(Device, Cond)>,
    /// Where the number of the process among all equals the one on its machine.
    pub(crate) ranks_alike: Vec<Cond>,
    /// Where the global rank was taken for an index, in which frame and when.
    pub(crate) ranks_used: Vec<(FrameId, Cond, Place)>,
    /// The loader, or what else forks, in whose workers what is interpreted runs.
    pub(crate) worker: Option<Worker>,
    /// Was an event told of that worker?
    pub(crate) worker_told: bool,
    /// Pools of forks.
    pub(crate) pools: FxHashMap<ObjId, Worker>,
    /// Is the first GPU the current one all the time, as far as that was asked?
    pub(crate) first_gpu: Option<bool>,
}

impl Devices {
    /// Forgets objects from this number on.
    pub(crate) fn rewind(&mut self, objects: usize) {
        let old = |id: ObjId| (id.0 as usize) < objects;
        self.pools.retain(|&id, _| old(id));
    }
}
