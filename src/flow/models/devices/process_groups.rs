//! Process groups of NCCL, which need CUDA and a GPU of its own for each process.

use crate::finding::Code;
use crate::flow::domain::diagram::{Cond, Dd, FALSE, TRUE};
use crate::flow::domain::event::{Bite, Kind, UseKind};
use crate::flow::domain::value::{Device, Value};
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::{Interp, Pending, Test};
use crate::flow::models::devices::processes::VISIBLE;
use crate::ir::{Arg, ArgKind, Expr, ExprId};
use crate::link::ModIdx;
use crate::span::Place;
use crate::sym::Sym;
use crate::torch;
use crate::world::World;

/// An NCCL process group, with the event to emit if the processes select no device.
pub(crate) struct Group {
    pub(crate) event: Pending,
}

/// The function with which a process selects its GPU.
pub(crate) const CHOOSES: &str = "torch.cuda.set_device";

/// Functions that use the current GPU without an argument for it: NCCL's own work, pinned memory, the allocator, objects that are sent.
const ON_CURRENT: &[&str] = &[
    "barrier",
    "monitored_barrier",
    "pin_memory",
    "empty_cache",
    "synchronize",
    "current_device",
    "current_stream",
    "all_gather_object",
    "gather_object",
    "broadcast_object_list",
    "scatter_object_list",
];

impl Interp<'_> {
    /// `init_process_group("nccl")` on a machine that may have no GPU. Code after it has one.
    pub(crate) fn process_group(&mut self, args: &Args, e: ExprId) {
        let Some((backend, at)) = args.get(0, "backend") else { return };
        let chosen = self.group_of(backend, at, torch::starts_nccl);
        if chosen == FALSE || self.caught_around() {
            return;
        }
        let there = self.available(None);
        let absent = self.d.not(there);
        let bad = self.d.and(chosen, absent);
        // Conditions that select the back end are tests of the device.
        self.d.support(chosen, &mut self.tests.deciders);
        let bite = self.bite(bad, true);
        let earlier = if bite.is_none() { self.shadow(bad, true) } else { None };
        self.tests.deciders.clear();
        let place = self.place(e);
        if let Some(bite) = bite {
            let first = self.gpu_chosen_before();
            let kind = first.map_or(Kind::Nccl, |_| Kind::Use {
                what: format!("`{CHOOSES}()`"),
                origin: None,
                index: None,
                backend: None,
                how: UseKind::Query,
                inverted: false,
            });
            self.emit(kind, first.unwrap_or(place), bite, Vec::new());
            let told = first.unwrap_or(place);
            let rule = if first.is_some() { Code(101) } else { Code(108) };
            if !self.is_silenced(&[rule], told, None) {
                self.cast_shadow(told, chosen, there);
            }
            if let Some(first) = first {
                self.emit(
                    Kind::Shadowed { first, origin: None },
                    place,
                    Bite::in_world(World::NoCuda),
                    Vec::new(),
                );
            }
        } else if let Some(first) = earlier {
            self.emit(
                Kind::Shadowed { first, origin: None },
                place,
                Bite::in_world(World::NoCuda),
                Vec::new(),
            );
        }
    }

    /// `dist.is_initialized()`: the condition that the program has made the default group, or that one existed at an earlier test.
    pub(crate) fn has_group(&mut self, path: &str, e: ExprId) -> Cond {
        let elsewhere = Test::Compare(31, Value::External(Sym::new(path)), Value::None);
        let asked = self.tests.atoms.contains_key(&elsewhere);
        match self.devices.group_started {
            Some(made) if !asked => made,
            Some(made) => {
                let elsewhere = self.named_test(elsewhere, e);
                self.d.or(made, elsewhere)
            }
            None => self.named_test(elsewhere, e),
        }
    }

    /// `dist.destroy_process_group()`
    pub(crate) fn leaves_group(&mut self) {
        if let Some(made) = self.devices.group_started {
            let stays = self.d.not(self.path);
            self.devices.group_started = Some(self.d.and(made, stays));
        }
        if self.store.get(self.devices.nccl) != Value::Absent {
            self.store.set(self.devices.nccl, Value::Bool(FALSE));
        }
    }

    /// `torch.cuda.set_device(args.local_rank)`: raises without CUDA, unless the number is negative. In a process of a
    /// group it never is.
    pub(crate) fn chooses_gpu(&mut self, path: Sym, e: ExprId) {
        if path.as_str() == CHOOSES && self.run.muted == 0 && !self.caught_around() {
            let place = self.place(e);
            self.devices.gpus_chosen.push((self.frame, self.path, place));
        }
    }

    /// The place where the function has selected its GPU on every path to this point.
    fn gpu_chosen_before(&mut self) -> Option<Place> {
        let chosen = std::mem::take(&mut self.devices.gpus_chosen);
        let (here, path) = (self.frame, self.path);
        let first =
            chosen.iter().find(|&&(frame, when, _)| frame == here && self.d.implies(path, when)).map(|c| c.2);
        self.devices.gpus_chosen = chosen;
        first
    }

    /// The condition that this back end is NCCL and nothing else.
    pub(crate) fn chosen_nccl(&mut self, backend: Value, at: ExprId) -> Cond {
        self.group_of(backend, at, torch::is_nccl)
    }

    /// The condition that this back end satisfies `wanted`. See [`Self::is_chosen`] for one of its alternatives.
    fn group_of(&mut self, backend: Value, at: ExprId, wanted: fn(&str) -> bool) -> Cond {
        let chosen = match backend {
            Value::Choice(_) => self.each(backend, &mut |i, v| Value::Bool(i.is_chosen(v, at, wanted))),
            v => Value::Bool(self.is_chosen(v, at, wanted)),
        };
        if let Value::Bool(chosen) = chosen { chosen } else { FALSE }
    }

    /// The condition that a back end satisfies `wanted`: by its name, or as the default of an option.
    fn is_chosen(&mut self, v: Value, at: ExprId, wanted: fn(&str) -> bool) -> Cond {
        let nccl = |v| matches!(v, Value::Str(s, _) if wanted(s.as_str()));
        match v {
            Value::Outer(o) => match self.t.get_outer(o).default {
                Some(default) if nccl(default) => self.outer_equal(o, default, at),
                _ => FALSE,
            },
            v if nccl(v) => TRUE,
            _ => FALSE,
        }
    }

    /// Something moves to a device. After `init_process_group("nccl")`, a bare `cuda` is GPU 0 in every process, unless
    /// each process has selected its own GPU.
    pub(crate) fn counts_for_group(&mut self, device: Dd, e: ExprId) {
        if self.run.muted > 0 {
            return;
        }
        for (_, d, origin) in self.device_leaves(device) {
            self.devices.beyond_first |= match d {
                Device::Cuda(index) => index.is_some_and(|index| index > 0),
                d => matches!(d, Device::CudaSome | Device::Named(_)),
            };
            match d {
                Device::Cuda(None) => {
                    let literal = self
                        .chain(origin)
                        .into_iter()
                        .find(|s| s.reason == crate::flow::domain::value::Reason::Literal);
                    let place = literal.map_or_else(|| self.place(e), |s| s.place);
                    if self.devices.bare.len() < 4 && !self.devices.bare.contains(&place) {
                        self.devices.bare.push(place);
                    }
                }
                Device::Cuda(Some(_)) | Device::CudaSome | Device::Named(_) => self.devices.indexed = true,
                _ => {}
            }
        }
    }

    /// `init_process_group("nccl", …)`: stores the group. Only the end of the entry point shows whether the processes select devices.
    pub(crate) fn watch_group(&mut self, args: &Args, e: ExprId) {
        let nccl = match args.get(0, "backend") {
            Some((v, _)) => {
                self.values_of(v).iter().any(|v| matches!(v, Value::Str(s, _) if s.as_str().contains("nccl")))
            }
            None => false,
        };
        let alone = args.keyword("world_size").is_some_and(|(v, _)| v == Value::Int(1));
        self.devices.beyond_first |= !alone;
        if !nccl || alone || args.keyword("device_id").is_some() || self.devices.group.is_some() {
            return;
        }
        let there = self.available(None);
        if let Some(bite) = self.bite(there, false) {
            let place = self.place(e);
            let kind = Kind::NoSetDevice { uses: Vec::new(), indexed: false };
            self.emit(kind, place, bite, Vec::new());
            if let Some(event) = self.events.pop() {
                self.devices.group = Some(Group { event });
            }
        }
    }

    /// An entry point has ended. Reports a group whose processes have not selected a device.
    pub(crate) fn end_group(&mut self) {
        let uses = std::mem::take(&mut self.devices.bare);
        let wrapped = std::mem::take(&mut self.devices.one_each);
        let selected = std::mem::take(&mut self.devices.selected);
        let indexed = std::mem::take(&mut self.devices.indexed);
        self.devices.group_started = None;
        let Some(Group { event: Pending { mut event, needs, about, function } }) = self.devices.group.take()
        else {
            return;
        };
        // If every device has an index, nothing depends on the current GPU. With wrappers that receive a number, only functions that use
        // the current GPU depend on it.
        let asked = |place: Place| self.asks_for_current_gpu([event.place, place]);
        let wrapped: Vec<Place> =
            wrapped.into_iter().filter(|&place| !uses.is_empty() || asked(place)).collect();
        let alike = !uses.is_empty() && !indexed;
        if selected || !alike && wrapped.is_empty() || self.chooses_somewhere() {
            return;
        }
        event.kind = Kind::NoSetDevice { uses: if alike { uses } else { wrapped }, indexed: !alike };
        self.events.push(Pending { event, needs, about, function });
    }

    /// Do this file or its imports select a device for each process in a way that the engine does not follow?
    fn chooses_somewhere(&self) -> bool {
        self.at_hand().into_iter().any(|m| {
            let ir = &self.program.get(m).ir;
            let sets =
                |name: &Sym| matches!(name.as_str(), "set_device" | "set_device_index" | "set_device_idx");
            ir.attributes.iter().any(sets) || ir.strings.iter().any(|s| s.as_str() == VISIBLE)
        })
    }

    /// Does code in the entry's file, or in the file of one of these places, use the current GPU without an argument?
    fn asks_for_current_gpu(&self, places: [Place; 2]) -> bool {
        let files = places.into_iter().filter_map(|place| self.program.module_of(place.file));
        files.chain([self.entry]).any(|m| {
            let ir = &self.program.get(m).ir;
            let pins = |a: &Arg| {
                matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == "pin_memory")
                    && ir.expr(a.value) != Expr::False
            };
            ir.attributes.iter().any(|name| ON_CURRENT.contains(&name.as_str()))
                || ir.calls().any(|call| call.args.iter().any(pins))
        })
    }

    /// The entry's file and the project files that it imports, up to a limit.
    fn at_hand(&self) -> Vec<ModIdx> {
        let mut modules = vec![self.entry];
        let mut at = 0;
        while at < modules.len() && modules.len() < 60 {
            for m in self.program.imports(modules[at]) {
                if !modules.contains(&m) {
                    modules.push(m);
                }
            }
            at += 1;
        }
        modules
    }
}
