//! Models of devices, and of processes that select devices.

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

/// What the engine knows about processes, their groups and their GPUs.
#[derive(Default)]
pub(crate) struct Devices {
    /// The condition under which CUDA has been initialised.
    pub(crate) ready: Cell,
    /// The value that the program has put into `CUDA_VISIBLE_DEVICES`.
    pub(crate) visible: Cell,
    /// The other environment variables that the program has set, as alternating names and values.
    pub(crate) environment: Cell,
    /// The place that initialised CUDA first.
    pub(crate) ready_at: Option<Place>,
    /// The place that set `CUDA_VISIBLE_DEVICES`.
    pub(crate) visible_at: Option<Place>,
    /// Places that set such a variable before CUDA was initialised, with the value.
    pub(crate) in_time: FxHashMap<Place, Value>,
    /// The first import of a file that uses CUDA.
    pub(crate) imported: Option<Place>,
    /// Outside values that are parts of environment variables, with the variable.
    pub(crate) from_environment: FxHashMap<OuterId, &'static str>,
    /// The value that the program has put into `CUDA_VISIBLE_DEVICES` as the only GPU, with the path condition.
    pub(crate) physical: Option<(OuterId, Cond)>,
    /// The condition under which the default process group uses NCCL.
    pub(crate) nccl: Cell,
    /// The NCCL process group.
    pub(crate) group: Option<Group>,
    /// Uses of a device without an index: `cuda`.
    pub(crate) bare: Vec<Place>,
    /// Whether each process has selected its device.
    pub(crate) selected: bool,
    /// Whether something moves to a device with an index, or to one that an outside value names.
    pub(crate) indexed: bool,
    /// Whether the file may use another GPU than the first one.
    pub(crate) beyond_first: bool,
    /// Places that wrap a model for one device in each process.
    pub(crate) one_each: Vec<Place>,
    /// The condition under which a process group was started. `None` if no known code starts one.
    pub(crate) group_started: Option<Cond>,
    /// Places where a process selects its GPU by an unknown number, with the frame and the path condition.
    pub(crate) gpus_chosen: Vec<(FrameId, Cond, Place)>,
    /// GPUs on which a tensor has met one on the module's device, with the path condition.
    pub(crate) module_met: Vec<(Device, Cond)>,
    /// Conditions under which the global rank equals the local rank.
    pub(crate) ranks_alike: Vec<Cond>,
    /// Places that use the global rank as a device index, with the frame and the path condition.
    pub(crate) ranks_used: Vec<(FrameId, Cond, Place)>,
    /// The data loader or other fork whose worker runs the code that is being interpreted.
    pub(crate) worker: Option<Worker>,
    /// Whether that worker has been reported.
    pub(crate) worker_told: bool,
    /// Pools of forked processes.
    pub(crate) pools: FxHashMap<ObjId, Worker>,
    /// Whether the first GPU is always the current one. `None` if not yet known.
    pub(crate) first_gpu: Option<bool>,
}

impl Devices {
    /// Forgets all objects whose number is `objects` or higher.
    pub(crate) fn rewind(&mut self, objects: usize) {
        let old = |id: ObjId| (id.0 as usize) < objects;
        self.pools.retain(|&id, _| old(id));
    }
}
