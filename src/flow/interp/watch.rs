//! What is watched besides devices: optimizers, wrappers, autocast regions, the fields of modules.
//!
//! These are facts about objects and places, not about values: they are told once and never taken back, so they are
//! no part of the state that branches join.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::atom::AtomId;
use super::super::diagram::{Cond, Dd};
use super::super::value::{FrameId, ObjId, OriginId, OuterId, TensorId, Value};
use super::autocast::Autocast;
use super::{Cell, Device, Interp, ObjKind, Pending};
use crate::ir::FuncId;
use crate::link::{ClassKey, ModIdx};
use crate::span::Place;
use crate::sym::Sym;
use crate::torch::Arg;

/// See the module.
pub(super) struct Watch {
    /// The condition under which CUDA has been initialised.
    pub(super) ready: Cell,
    /// What the program has put into `CUDA_VISIBLE_DEVICES`.
    pub(super) visible: Cell,
    /// The condition under which gradients are switched off until somebody switches them on.
    pub(super) gradless: Cell,
    /// What has been given attributes.
    pub(super) with_fields: FxHashSet<Value>,
    /// Modules that somebody has given other parameters, under whatever names and conditions.
    pub(super) refilled: FxHashSet<ObjId>,
    /// What may be graphs, and has been moved since it was drawn.
    pub(super) graphs_moved: FxHashSet<TensorId>,
    /// What stands for all tensors of lists that have been added to one, and those tensors.
    pub(super) put_together: FxHashMap<TensorId, Vec<TensorId>>,
    /// What the program has put into other variables of the environment: their names, and what they hold, in turn.
    pub(super) put: Cell,
    /// The condition under which the default process group is NCCL's.
    pub(super) nccl: Cell,
    /// Where CUDA was initialised first, and where that variable was set.
    pub(super) ready_at: Option<Place>,
    pub(super) visible_at: Option<Place>,
    /// Where the environment was set before CUDA was asked, and to what.
    pub(super) in_time: FxHashMap<Place, Value>,
    /// The first import that asks CUDA something.
    pub(super) imported: Option<Place>,
    /// Parts of environment variables.
    pub(super) from_environment: FxHashMap<OuterId, &'static str>,
    /// What the program has made the number of the only visible GPU, and when.
    pub(super) physical: Option<(OuterId, Cond)>,
    /// The NCCL group, the bare `cuda` devices, and whether each process has chosen a device.
    pub(super) group: Option<Group>,
    pub(super) bare: Vec<Place>,
    pub(super) selected: bool,
    /// Something goes to a device with an index, or one that others name.
    pub(super) indexed: bool,
    /// Something in the file may use another GPU than the first.
    pub(super) beyond_first: bool,
    /// Models that are wrapped for one device of each process, and whether that is told by a device and not by a number.
    pub(super) one_each: Vec<(Place, bool)>,
    /// GPUs on which something has met what is where the module is, and when.
    pub(super) module_met: Vec<(Device, Cond)>,
    /// The loader, or what else forks, in whose workers what is interpreted runs; whether something was told of it.
    pub(super) worker: Option<Worker>,
    pub(super) worker_told: bool,
    /// Where parsers of the command line were made, and where one was given a list to parse instead.
    pub(super) parsers: FxHashMap<ObjId, Place>,
    pub(super) lists: FxHashMap<ObjId, Place>,
    /// Pools of forks.
    pub(super) pools: FxHashMap<ObjId, Worker>,
    /// Where the fields of modules under construction were set.
    pub(super) fields: FxHashMap<(ObjId, Sym), Place>,
    /// Forward hooks that are followed.
    pub(super) hooks: Vec<super::hooks::Hook>,
    /// Optimizers, with the modules whose parameters they were given.
    pub(super) optimizers: Vec<Optimizer>,
    /// Modules in `nn.DataParallel`, with where they were wrapped, and when.
    pub(super) wrapped: Vec<(ObjId, Place, Cond)>,
    /// Modules that are wrapped for several devices, and when in `DataParallel` and in `DistributedDataParallel`: the
    /// wrapper and what it wraps are one object.
    pub(super) wraps: FxHashMap<ObjId, [Cond; 2]>,
    /// Where numbers of 64 bits were told to come to be on what may be MPS, by the function that is interpreted for itself.
    pub(super) doubles: Vec<super::double::Doubles>,
    /// Those that are kept as lists and are lists for certain, not sets.
    pub(super) true_lists: FxHashSet<ObjId>,
    /// Moves of what may be there already, by place; nothing for those that some round or call needs.
    pub(super) needless: FxHashMap<Place, Option<Pending>>,
    /// Moves that some entry point needs, whatever others do.
    pub(super) needed: FxHashSet<Place>,
    /// What decides whether two things are in one place, where somebody has asked.
    pub(super) places_asked: FxHashSet<AtomId>,
    /// Imports in functions of files that need CUDA: what is done in their shadow.
    pub(super) kernels_imported: FxHashSet<AtomId>,
    /// Copies to the host that nobody has waited for, with the number of waits before each.
    pub(super) unwaited: FxHashMap<Place, u32>,
    pub(super) waits: u32,
    /// Classes whose instances were moved to an accelerator in sight; true if that may have been CUDA.
    pub(super) accelerated: FxHashMap<ClassKey, bool>,
    /// Objects of `accelerate` that know their device.
    pub(super) accelerates: FxHashMap<OuterId, super::accelerate::Accelerated>,
    /// Attributes of modules that were set where `nn.Module` does not see it.
    pub(super) unseen: FxHashSet<(ObjId, Sym)>,
    /// Objects whose constructors were given up.
    pub(super) half_made: FxHashSet<ObjId>,
    /// Where parameters were before their modules moved.
    pub(super) left_by_parameters: FxHashSet<Dd>,
    /// Parameters that modules have given out, by what is known of their place: the modules, with where they were.
    pub(super) given_out: FxHashMap<Dd, Vec<(ObjId, Dd)>>,
    /// Objects that stand for those that each round of a loop gets: batches of a loader, what a generator makes.
    pub(super) anew: FxHashSet<ObjId>,
    /// How many cells there were before the loop that is looked at.
    pub(super) cells_then: usize,
    /// Modules that bring their inputs to themselves.
    pub(super) scattering: Vec<(ObjId, Cond)>,
    /// Regions and decorators of CUDA autocast around what is interpreted, innermost last.
    pub(super) autocasts: Vec<Autocast>,
    /// CUDA autocasts that were made.
    pub(super) made_autocasts: FxHashMap<OuterId, Autocast>,
    /// What makes CUDA autocasts when it is called, with who says so; and the one that is called.
    pub(super) kept_autocasts: FxHashMap<ObjId, Place>,
    pub(super) called_autocast: Option<Place>,
    /// What `accelerator.prepare(…)` has given for what came from outside, and where that is.
    pub(super) prepared: FxHashMap<OuterId, Dd>,
    /// What has been taken out of files that were read to a known device, with that; and by the reason why something is there.
    pub(super) out_of_files: FxHashMap<OuterId, Dd>,
    pub(super) file_parts: FxHashMap<OriginId, OuterId>,
    /// Lists and dicts that have been asked for a key, with the number of changes since.
    pub(super) asked_keys: FxHashMap<ObjId, i64>,
    /// When keys have been put into dicts, after so many changes.
    pub(super) keys_put: FxHashMap<(ObjId, i64, Value), Cond>,
    /// Dicts, and what stands for several of them, each by the other.
    pub(super) rows: FxHashMap<ObjId, Vec<ObjId>>,
    /// When fixtures let the tests that use them go on.
    pub(super) fixtures: FxHashMap<(ModIdx, FuncId), Cond>,
    /// Where the number of the process among all equals the one on its machine.
    pub(super) ranks_alike: Vec<Cond>,
    /// Modules in evaluation mode, with where they were put into it.
    pub(super) evaluated: FxHashMap<Value, Place>,
    /// Outside things that tell PyTorch the type of numbers.
    pub(super) typed_like: FxHashSet<OuterId>,
    /// Modules in half precision, by where they were made so.
    pub(super) halved: FxHashMap<ObjId, (Place, Cond)>,
    /// CUDA gradient scalers.
    pub(super) scalers: FxHashMap<ObjId, Place>,
    /// What is compared with a device's name, and may be a string in some world or for some caller.
    pub(super) texts: FxHashSet<Place>,
    /// Modules whose constructors have moved them before there was anything to move: where, and by which method.
    pub(super) empty_moves: Vec<(ObjId, Place, Sym)>,
    /// What unknown functions have made of what was read from a file, and of which.
    pub(super) made_of_loaded: FxHashMap<OuterId, OuterId>,
    /// What given layers have made, and of which given tensors.
    pub(super) near: FxHashMap<OuterId, OuterId>,
    /// Parts of outside things into which the program has written something, and whether that was always a number.
    pub(super) numbers: FxHashMap<OuterId, bool>,
    /// That inputs of `forward` are on the CPU, where the program has asked, by the module that they live with.
    pub(super) asked_on_cpu: FxHashMap<OuterId, Vec<AtomId>>,
    /// Outside things whose `.device` the program has read.
    pub(super) asked_for_device: FxHashSet<OuterId>,
    /// Parts of what loops draw that the program moves, by what is drawn; and what is moved as a whole.
    pub(super) moved_parts: FxHashMap<OuterId, Vec<OuterId>>,
    pub(super) moved_wholes: FxHashSet<OuterId>,
    /// Where the global rank was taken for an index, in which frame and when.
    pub(super) ranks_used: Vec<(FrameId, Cond, Place)>,
    /// Where a process has chosen its GPU by a number that nobody knows, in which frame and when.
    pub(super) gpus_chosen: Vec<(FrameId, Cond, Place)>,
    /// Modules that register parameters or buffers under names that are not written down.
    pub(super) registers_by_hand: FxHashSet<ObjId>,
    /// What is given to a module that brings its inputs along.
    pub(super) brought_along: FxHashSet<OuterId>,
    /// Inputs of `forward` that have been given to layers with weights.
    pub(super) with_layers: FxHashSet<OuterId>,
    /// Outside things that have shown to be modules.
    pub(super) shown_modules: FxHashSet<OuterId>,
    /// The same by the moves that they come from.
    pub(super) moved_modules: FxHashSet<OriginId>,
    /// Outside things in wrappers that bring their inputs along.
    pub(super) scattering_outside: FxHashSet<OuterId>,
    /// The same by the moves that they come from.
    pub(super) scattering_moves: FxHashSet<OriginId>,
    /// When variables are bound that only some paths bind.
    pub(super) bound: FxHashMap<Cell, Cond>,
    /// Copies of leaves that nobody else holds, by where they were made.
    pub(super) fresh_copies: Vec<Place>,
    /// Moves of leaves whose copies a loop tells to keep their gradients.
    pub(super) keeps_gradients: FxHashSet<Place>,
    /// When a process group was started, if anything in sight starts one.
    pub(super) group_started: Option<Cond>,
    /// Objects of other libraries that keep tensors, each with the arguments of its call that must be there.
    pub(super) keepers: FxHashMap<ObjId, Vec<Arg>>,
    /// What files gave that are loaded to wherever they were saved from, with where that is.
    pub(super) read: FxHashMap<OuterId, Place>,
    /// Such places, with where something out of the file meets a tensor on a GPU.
    pub(super) read_back: Vec<(Place, Place)>,
}

/// An optimizer.
pub(super) struct Optimizer {
    pub(super) id: ObjId,
    pub(super) modules: Vec<ObjId>,
    /// The same of modules that came from outside.
    pub(super) outside: Vec<OuterId>,
    pub(super) place: Place,
    /// Its class.
    pub(super) name: &'static str,
    /// It makes its state in the constructor, where the parameters are then.
    pub(super) eager: bool,
    /// It has a state from the first step on; that state, once it is there.
    pub(super) stateful: bool,
    pub(super) state: Option<State>,
    /// Where some of the parameters it was given were replaced.
    pub(super) replaced: Option<Place>,
}

/// An optimizer's state: where the parameters were when it was made or loaded.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) device: super::Dd,
    pub(super) place: Place,
    /// When that was reached.
    pub(super) path: super::Cond,
}

/// What starts forks.
#[derive(Clone, Copy)]
pub(super) struct Worker {
    pub(super) place: Place,
    /// A data loader.
    pub(super) loads: bool,
    /// When the process that is forked has used CUDA.
    pub(super) ready: super::Cond,
}

/// An NCCL process group: the event that it becomes if no device is chosen.
pub(super) struct Group {
    pub(super) event: Pending,
}

impl Watch {
    pub(super) fn new([ready, visible, nccl, put, gradless]: [Cell; 5]) -> Self {
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
    pub(super) fn rewind(&mut self, objects: usize, cells: usize) {
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
pub(super) struct Parts {
    pub(super) modules: Vec<ObjId>,
    pub(super) tensors: Vec<TensorId>,
    /// There may be more.
    pub(super) open: bool,
}

/// How deep containers in containers are looked into.
const MAX_NESTING: u32 = 6;

impl Interp<'_> {
    /// What is in a value: containers are looked into, modules with all that is registered in them.
    pub(super) fn parts_of(&self, v: Value, parts: &mut Parts, depth: u32) {
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
    pub(super) fn registered_parts(&self, id: ObjId, parts: &mut Parts, depth: u32) {
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
    pub(super) fn note_accelerator(&mut self, id: ObjId, device: super::Dd) {
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
    pub(super) fn values_of(&self, v: Value) -> Vec<Value> {
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
    pub(super) fn device_leaves(&self, d: super::Dd) -> Vec<(u32, Device, OriginId)> {
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
