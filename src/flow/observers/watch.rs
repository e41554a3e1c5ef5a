//! What is watched besides devices: optimizers, wrappers, autocast regions, the fields of modules.
//!
//! These are facts about objects and places, not about values: they are told once and never taken back, so they are
//! no part of the state that branches join.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::domain::atom::AtomId;
use crate::flow::domain::diagram::{Cond, Dd};
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::Device;
use crate::flow::domain::value::{FrameId, ObjId, OriginId, OuterId, TensorId, Value};
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::{Interp, Pending};
use crate::flow::models::tensors::autocast::Autocast;
use crate::ir::FuncId;
use crate::link::{ClassKey, ModIdx};
use crate::span::Place;
use crate::sym::Sym;
use crate::torch::Arg;

/// See the module.
pub(crate) struct Watch {
    /// The condition under which CUDA has been initialised.
    pub(crate) ready: Cell,
    /// What the program has put into `CUDA_VISIBLE_DEVICES`.
    pub(crate) visible: Cell,
    /// The condition under which gradients are switched off until somebody switches them on.
    pub(crate) gradless: Cell,
    /// What has been given attributes.
    pub(crate) with_fields: FxHashSet<Value>,
    /// Modules that somebody has given other parameters, under whatever names and conditions.
    pub(crate) refilled: FxHashSet<ObjId>,
    /// What may be graphs, and has been moved since it was drawn.
    pub(crate) graphs_moved: FxHashSet<TensorId>,
    /// What stands for all tensors of lists that have been added to one, and those tensors.
    pub(crate) put_together: FxHashMap<TensorId, Vec<TensorId>>,
    /// What the program has put into other variables of the environment: their names, and what they hold, in turn.
    pub(crate) put: Cell,
    /// The condition under which the default process group is NCCL's.
    pub(crate) nccl: Cell,
    /// Where CUDA was initialised first, and where that variable was set.
    pub(crate) ready_at: Option<Place>,
    pub(crate) visible_at: Option<Place>,
    /// Where the environment was set before CUDA was asked, and to what.
    pub(crate) in_time: FxHashMap<Place, Value>,
    /// The first import that asks CUDA something.
    pub(crate) imported: Option<Place>,
    /// Parts of environment variables.
    pub(crate) from_environment: FxHashMap<OuterId, &'static str>,
    /// What the program has made the number of the only visible GPU, and when.
    pub(crate) physical: Option<(OuterId, Cond)>,
    /// The NCCL group, the bare `cuda` devices, and whether each process has chosen a device.
    pub(crate) group: Option<Group>,
    pub(crate) bare: Vec<Place>,
    pub(crate) selected: bool,
    /// Something goes to a device with an index, or one that others name.
    pub(crate) indexed: bool,
    /// Something in the file may use another GPU than the first.
    pub(crate) beyond_first: bool,
    /// Models that are wrapped for one device of each process, and whether that is told by a device and not by a number.
    pub(crate) one_each: Vec<(Place, bool)>,
    /// GPUs on which something has met what is where the module is, and when.
    pub(crate) module_met: Vec<(Device, Cond)>,
    /// The loader, or what else forks, in whose workers what is interpreted runs; whether something was told of it.
    pub(crate) worker: Option<Worker>,
    pub(crate) worker_told: bool,
    /// Where parsers of the command line were made, and where one was given a list to parse instead.
    pub(crate) parsers: FxHashMap<ObjId, Place>,
    pub(crate) lists: FxHashMap<ObjId, Place>,
    /// Pools of forks.
    pub(crate) pools: FxHashMap<ObjId, Worker>,
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
    /// Where numbers of 64 bits were told to come to be on what may be MPS, by the function that is interpreted for itself.
    pub(crate) doubles: Vec<crate::flow::models::tensors::float64::Doubles>,
    /// Those that are kept as lists and are lists for certain, not sets.
    pub(crate) true_lists: FxHashSet<ObjId>,
    /// Moves of what may be there already, by place; nothing for those that some round or call needs.
    pub(crate) needless: FxHashMap<Place, Option<Pending>>,
    /// Moves that some entry point needs, whatever others do.
    pub(crate) needed: FxHashSet<Place>,
    /// What decides whether two things are in one place, where somebody has asked.
    pub(crate) places_asked: FxHashSet<AtomId>,
    /// Imports in functions of files that need CUDA: what is done in their shadow.
    pub(crate) kernels_imported: FxHashSet<AtomId>,
    /// Copies to the host that nobody has waited for, with the number of waits before each.
    pub(crate) unwaited: FxHashMap<Place, u32>,
    pub(crate) waits: u32,
    /// Classes whose instances were moved to an accelerator in sight; true if that may have been CUDA.
    pub(crate) accelerated: FxHashMap<ClassKey, bool>,
    /// Objects of `accelerate` that know their device.
    pub(crate) accelerates: FxHashMap<OuterId, crate::flow::models::libraries::accelerate::Accelerated>,
    /// Attributes of modules that were set where `nn.Module` does not see it.
    pub(crate) unseen: FxHashSet<(ObjId, Sym)>,
    /// Objects whose constructors were given up.
    pub(crate) half_made: FxHashSet<ObjId>,
    /// Where parameters were before their modules moved.
    pub(crate) left_by_parameters: FxHashSet<Dd>,
    /// Parameters that modules have given out, by what is known of their place: the modules, with where they were.
    pub(crate) given_out: FxHashMap<Dd, Vec<(ObjId, Dd)>>,
    /// Objects that stand for those that each round of a loop gets: batches of a loader, what a generator makes.
    pub(crate) anew: FxHashSet<ObjId>,
    /// How many cells there were before the loop that is looked at.
    pub(crate) cells_then: usize,
    /// Modules that bring their inputs to themselves.
    pub(crate) scattering: Vec<(ObjId, Cond)>,
    /// Regions and decorators of CUDA autocast around what is interpreted, innermost last.
    pub(crate) autocasts: Vec<Autocast>,
    /// CUDA autocasts that were made.
    pub(crate) made_autocasts: FxHashMap<OuterId, Autocast>,
    /// What makes CUDA autocasts when it is called, with who says so; and the one that is called.
    pub(crate) kept_autocasts: FxHashMap<ObjId, Place>,
    pub(crate) called_autocast: Option<Place>,
    /// What `accelerator.prepare(…)` has given for what came from outside, and where that is.
    pub(crate) prepared: FxHashMap<OuterId, Dd>,
    /// What has been taken out of files that were read to a known device, with that; and by the reason why something is there.
    pub(crate) out_of_files: FxHashMap<OuterId, Dd>,
    pub(crate) file_parts: FxHashMap<OriginId, OuterId>,
    /// Lists and dicts that have been asked for a key, with the number of changes since.
    pub(crate) asked_keys: FxHashMap<ObjId, i64>,
    /// When keys have been put into dicts, after so many changes.
    pub(crate) keys_put: FxHashMap<(ObjId, i64, Value), Cond>,
    /// Dicts, and what stands for several of them, each by the other.
    pub(crate) rows: FxHashMap<ObjId, Vec<ObjId>>,
    /// When fixtures let the tests that use them go on.
    pub(crate) fixtures: FxHashMap<(ModIdx, FuncId), Cond>,
    /// Where the number of the process among all equals the one on its machine.
    pub(crate) ranks_alike: Vec<Cond>,
    /// Modules in evaluation mode, with where they were put into it.
    pub(crate) evaluated: FxHashMap<Value, Place>,
    /// Outside things that tell PyTorch the type of numbers.
    pub(crate) typed_like: FxHashSet<OuterId>,
    /// Modules in half precision, by where they were made so.
    pub(crate) halved: FxHashMap<ObjId, (Place, Cond)>,
    /// CUDA gradient scalers.
    pub(crate) scalers: FxHashMap<ObjId, Place>,
    /// What is compared with a device's name, and may be a string in some world or for some caller.
    pub(crate) texts: FxHashSet<Place>,
    /// Modules whose constructors have moved them before there was anything to move: where, and by which method.
    pub(crate) empty_moves: Vec<(ObjId, Place, Sym)>,
    /// What unknown functions have made of what was read from a file, and of which.
    pub(crate) made_of_loaded: FxHashMap<OuterId, OuterId>,
    /// What given layers have made, and of which given tensors.
    pub(crate) near: FxHashMap<OuterId, OuterId>,
    /// Parts of outside things into which the program has written something, and whether that was always a number.
    pub(crate) numbers: FxHashMap<OuterId, bool>,
    /// That inputs of `forward` are on the CPU, where the program has asked, by the module that they live with.
    pub(crate) asked_on_cpu: FxHashMap<OuterId, Vec<AtomId>>,
    /// Outside things whose `.device` the program has read.
    pub(crate) asked_for_device: FxHashSet<OuterId>,
    /// Parts of what loops draw that the program moves, by what is drawn; and what is moved as a whole.
    pub(crate) moved_parts: FxHashMap<OuterId, Vec<OuterId>>,
    pub(crate) moved_wholes: FxHashSet<OuterId>,
    /// Where the global rank was taken for an index, in which frame and when.
    pub(crate) ranks_used: Vec<(FrameId, Cond, Place)>,
    /// Where a process has chosen its GPU by a number that nobody knows, in which frame and when.
    pub(crate) gpus_chosen: Vec<(FrameId, Cond, Place)>,
    /// Modules that register parameters or buffers under names that are not written down.
    pub(crate) registers_by_hand: FxHashSet<ObjId>,
    /// What is given to a module that brings its inputs along.
    pub(crate) brought_along: FxHashSet<OuterId>,
    /// Inputs of `forward` that have been given to layers with weights.
    pub(crate) with_layers: FxHashSet<OuterId>,
    /// Outside things that have shown to be modules.
    pub(crate) shown_modules: FxHashSet<OuterId>,
    /// The same by the moves that they come from.
    pub(crate) moved_modules: FxHashSet<OriginId>,
    /// Outside things in wrappers that bring their inputs along.
    pub(crate) scattering_outside: FxHashSet<OuterId>,
    /// The same by the moves that they come from.
    pub(crate) scattering_moves: FxHashSet<OriginId>,
    /// When variables are bound that only some paths bind.
    pub(crate) bound: FxHashMap<Cell, Cond>,
    /// Copies of leaves that nobody else holds, by where they were made.
    pub(crate) fresh_copies: Vec<Place>,
    /// Moves of leaves whose copies a loop tells to keep their gradients.
    pub(crate) keeps_gradients: FxHashSet<Place>,
    /// When a process group was started, if anything in sight starts one.
    pub(crate) group_started: Option<Cond>,
    /// Objects of other libraries that keep tensors, each with the arguments of its call that must be there.
    pub(crate) keepers: FxHashMap<ObjId, Vec<Arg>>,
    /// What files gave that are loaded to wherever they were saved from, with where that is.
    pub(crate) read: FxHashMap<OuterId, Place>,
    /// Such places, with where something out of the file meets a tensor on a GPU.
    pub(crate) read_back: Vec<(Place, Place)>,
}

/// An optimizer.
pub(crate) struct Optimizer {
    pub(crate) id: ObjId,
    pub(crate) modules: Vec<ObjId>,
    /// The same of modules that came from outside.
    pub(crate) outside: Vec<OuterId>,
    pub(crate) place: Place,
    /// Its class.
    pub(crate) name: &'static str,
    /// It makes its state in the constructor, where the parameters are then.
    pub(crate) eager: bool,
    /// It has a state from the first step on; that state, once it is there.
    pub(crate) stateful: bool,
    pub(crate) state: Option<State>,
    /// Where some of the parameters it was given were replaced.
    pub(crate) replaced: Option<Place>,
}

/// An optimizer's state: where the parameters were when it was made or loaded.
#[derive(Clone, Copy)]
pub(crate) struct State {
    pub(crate) device: crate::flow::domain::diagram::Dd,
    pub(crate) place: Place,
    /// When that was reached.
    pub(crate) path: crate::flow::domain::diagram::Cond,
}

/// What starts forks.
#[derive(Clone, Copy)]
pub(crate) struct Worker {
    pub(crate) place: Place,
    /// A data loader.
    pub(crate) loads: bool,
    /// When the process that is forked has used CUDA.
    pub(crate) ready: crate::flow::domain::diagram::Cond,
}

/// An NCCL process group: the event that it becomes if no device is chosen.
pub(crate) struct Group {
    pub(crate) event: Pending,
}

impl Watch {
    pub(crate) fn new([ready, visible, nccl, put, gradless]: [Cell; 5]) -> Self {
        Self {
            ready,
            visible,
            with_fields: FxHashSet::default(),
            refilled: FxHashSet::default(),
            graphs_moved: FxHashSet::default(),
            put_together: FxHashMap::default(),
            put,
            nccl,
            gradless,
            evaluated: FxHashMap::default(),
            wraps: FxHashMap::default(),
            doubles: Vec::new(),
            true_lists: FxHashSet::default(),
            typed_like: FxHashSet::default(),
            halved: FxHashMap::default(),
            ready_at: None,
            imported: None,
            visible_at: None,
            in_time: FxHashMap::default(),
            from_environment: FxHashMap::default(),
            physical: None,
            group: None,
            bare: Vec::new(),
            selected: false,
            indexed: false,
            beyond_first: false,
            one_each: Vec::new(),
            module_met: Vec::new(),
            worker: None,
            worker_told: false,
            parsers: FxHashMap::default(),
            lists: FxHashMap::default(),
            pools: FxHashMap::default(),
            fields: FxHashMap::default(),
            hooks: Vec::new(),
            optimizers: Vec::new(),
            wrapped: Vec::new(),
            scattering: Vec::new(),
            needless: FxHashMap::default(),
            needed: FxHashSet::default(),
            unwaited: FxHashMap::default(),
            waits: 0,
            accelerated: FxHashMap::default(),
            accelerates: FxHashMap::default(),
            keepers: FxHashMap::default(),
            read: FxHashMap::default(),
            read_back: Vec::new(),
            places_asked: FxHashSet::default(),
            kernels_imported: FxHashSet::default(),
            unseen: FxHashSet::default(),
            half_made: FxHashSet::default(),
            left_by_parameters: FxHashSet::default(),
            bound: FxHashMap::default(),
            given_out: FxHashMap::default(),
            anew: FxHashSet::default(),
            cells_then: 0,
            autocasts: Vec::new(),
            made_autocasts: FxHashMap::default(),
            kept_autocasts: FxHashMap::default(),
            called_autocast: None,
            prepared: FxHashMap::default(),
            scalers: FxHashMap::default(),
            fresh_copies: Vec::new(),
            keeps_gradients: FxHashSet::default(),
            group_started: None,
            near: FxHashMap::default(),
            numbers: FxHashMap::default(),
            asked_on_cpu: FxHashMap::default(),
            asked_for_device: FxHashSet::default(),
            moved_parts: FxHashMap::default(),
            moved_wholes: FxHashSet::default(),
            ranks_used: Vec::new(),
            out_of_files: FxHashMap::default(),
            file_parts: FxHashMap::default(),
            ranks_alike: Vec::new(),
            rows: FxHashMap::default(),
            asked_keys: FxHashMap::default(),
            keys_put: FxHashMap::default(),
            fixtures: FxHashMap::default(),
            gpus_chosen: Vec::new(),
            registers_by_hand: FxHashSet::default(),
            brought_along: FxHashSet::default(),
            with_layers: FxHashSet::default(),
            shown_modules: FxHashSet::default(),
            moved_modules: FxHashSet::default(),
            scattering_outside: FxHashSet::default(),
            scattering_moves: FxHashSet::default(),
            texts: FxHashSet::default(),
            empty_moves: Vec::new(),
            made_of_loaded: FxHashMap::default(),
        }
    }

    /// Forgets objects from this number on.
    pub(crate) fn rewind(&mut self, objects: usize, cells: usize) {
        let old = |id: ObjId| (id.0 as usize) < objects;
        self.fields.retain(|&(id, _), _| old(id));
        self.hooks.retain(|h| old(h.handle));
        self.empty_moves.retain(|&(id, ..)| old(id));
        self.optimizers.retain(|o| old(o.id));
        self.wrapped.retain(|&(id, ..)| old(id));
        self.scattering.retain(|&(id, _)| old(id));
        self.anew.retain(|&id| old(id));
        self.asked_keys.retain(|&id, _| old(id));
        self.keys_put.retain(|&(id, ..), _| old(id));
        self.rows.retain(|&id, _| old(id));
        self.rows.values_mut().for_each(|others| others.retain(|&id| old(id)));
        self.true_lists.retain(|&id| old(id));
        self.unseen.retain(|&(id, _)| old(id));
        self.half_made.retain(|&id| old(id));
        self.doubles.clear();
        self.left_by_parameters.clear();
        self.bound.retain(|cell, _| (cell.0 as usize) < cells);
        self.given_out.clear();
        self.scalers.retain(|&id, _| old(id));
        self.pools.retain(|&id, _| old(id));
        self.parsers.retain(|&id, _| old(id));
        self.lists.retain(|&id, _| old(id));
        self.evaluated.retain(|&v, _| matches!(v, Value::Object(id) if old(id)));
        self.halved.retain(|&id, _| old(id));
    }
}

/// Modules and tensors that a value holds.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) modules: Vec<ObjId>,
    pub(crate) tensors: Vec<TensorId>,
    /// There may be more.
    pub(crate) open: bool,
}

/// How deep containers in containers are looked into.
const MAX_NESTING: u32 = 6;

impl Interp<'_> {
    /// What is in a value: containers are looked into, modules with all that is registered in them.
    pub(crate) fn parts_of(&self, v: Value, parts: &mut Parts, depth: u32) {
        if depth > MAX_NESTING {
            parts.open = true;
            return;
        }
        match v {
            Value::Tensor(t) => parts.tensors.push(t),
            Value::Seq(s) => {
                for &v in self.t.seqs.get(s.0) {
                    self.parts_of(v, parts, depth + 1);
                }
            }
            Value::Many(m) => self.parts_of(*self.t.values.get(m), parts, depth + 1),
            Value::Choice(d) => {
                let mut leaves = Vec::new();
                self.d.leaves(d, &mut leaves);
                for leaf in leaves {
                    self.parts_of(*self.t.values.get(leaf), parts, depth + 1);
                }
            }
            Value::Object(o) if parts.modules.contains(&o) => {}
            Value::Object(o) if self.is_module_object(o) => {
                parts.modules.push(o);
                self.registered_parts(o, parts, depth + 1);
            }
            Value::Object(o) if matches!(self.obj(o).kind, ObjKind::List { .. } | ObjKind::Dict { .. }) => {
                self.parts_of(self.own(o), parts, depth + 1);
            }
            Value::Unknown | Value::Outer(_) => parts.open = true,
            _ => {}
        }
    }

    /// What is registered in a module, and in what is registered there.
    pub(crate) fn registered_parts(&self, id: ObjId, parts: &mut Parts, depth: u32) {
        if let ObjKind::List { .. } | ObjKind::Dict { .. } = self.obj(id).kind {
            self.parts_of(self.own(id), parts, depth);
        }
        for &(name, cell) in &self.obj(id).attrs {
            if self.watch.unseen.contains(&(id, name)) {
                continue;
            }
            for v in self.values_of(self.store.get(cell)) {
                match v {
                    Value::Object(o) if self.is_module_object(o) => self.parts_of(v, parts, depth),
                    Value::Tensor(_) => self.parts_of(v, parts, depth),
                    _ => {}
                }
            }
        }
        // A submodule whose constructor has not been run yet has what it was given.
        if let Some(args) = self.unbuilt.get(&id) {
            for (v, _) in args.values() {
                self.parts_of(v, parts, depth + 1);
            }
        }
    }

    /// Remembers for which accelerator a program makes its modules.
    pub(crate) fn note_accelerator(&mut self, id: ObjId, device: crate::flow::domain::diagram::Dd) {
        let leaves: Vec<Device> = self.device_leaves(device).iter().map(|l| l.1).collect();
        if self.obj(id).outer.is_some() || leaves.iter().all(|&d| d == Device::Cpu) {
            return;
        }
        let cuda = leaves.iter().any(|d| !matches!(d, Device::Cpu | Device::Meta | Device::Other(_)));
        let mut parts = Parts::default();
        self.parts_of(Value::Object(id), &mut parts, 0);
        let classes: Vec<_> = parts.modules.into_iter().filter_map(|m| self.obj(m).class).collect();
        for class in classes {
            *self.watch.accelerated.entry(class).or_default() |= cuda;
        }
    }

    /// The values that a value may be.
    pub(crate) fn values_of(&self, v: Value) -> Vec<Value> {
        match v {
            Value::Choice(d) => match self.d.as_leaf(d) {
                Some(only) => vec![*self.t.values.get(only)],
                None => {
                    let mut leaves = Vec::new();
                    self.d.leaves(d, &mut leaves);
                    leaves.into_iter().map(|leaf| *self.t.values.get(leaf)).collect()
                }
            },
            v => vec![v],
        }
    }

    /// The devices that one may be.
    pub(crate) fn device_leaves(&self, d: crate::flow::domain::diagram::Dd) -> Vec<(u32, Device, OriginId)> {
        let place = |leaf| {
            let (device, origin) = *self.t.places.get(leaf);
            (leaf, device, origin)
        };
        // Most devices are the same in every world.
        if let Some(only) = self.d.as_leaf(d) {
            return vec![place(only)];
        }
        let mut leaves = Vec::new();
        self.d.leaves(d, &mut leaves);
        leaves.into_iter().map(place).collect()
    }
}
