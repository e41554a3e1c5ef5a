//! Workers of data loaders and other forks: which code runs in them, and whether it uses CUDA.

use crate::flow::domain::diagram::Cond;
use crate::flow::domain::diagram::Dd;
use crate::flow::domain::event::{Kind, UseKind};
use crate::flow::domain::value::{Device, ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::statements::loops::Iteration;
use crate::flow::models::modules::submodules::Parts;
use crate::ir::ExprId;
use crate::span::Place;
use crate::sym::Sym;

/// A call that starts forked processes.
#[derive(Clone, Copy)]
pub(crate) struct Worker {
    pub(crate) place: Place,
    /// Whether it is a data loader.
    pub(crate) loads: bool,
    /// The condition under which the parent process has used CUDA before.
    pub(crate) ready: Cond,
}

impl Interp<'_> {
    /// The data set and the `collate_fn` of a loader with workers run in forked processes.
    pub(crate) fn check_workers(&mut self, data: Option<Value>, args: &Args, e: ExprId) {
        let workers = match args.get(5, "num_workers").map(|(v, _)| v) {
            Some(Value::Int(n)) => n > 0,
            Some(Value::Outer(o)) => {
                matches!(self.t.get_outer(o).default, Some(Value::Int(n)) if n > 0)
            }
            _ => false,
        };
        let context = args.keyword("multiprocessing_context").is_some_and(|(v, _)| v != Value::None);
        let Some(Value::Object(data)) = data else { return };
        if !workers || context || args.open || self.run.muted > 0 || self.starts_afresh() {
            return;
        }
        let place = self.place(e);
        let worker = Worker { place, loads: true, ready: crate::flow::domain::diagram::TRUE };
        let before = (self.devices.worker.replace(worker), self.devices.worker_told, self.path);
        self.devices.worker_told = false;
        self.run.muted += 1;
        let item = match self.obj(data).kind {
            ObjKind::Instance => {
                let iter =
                    self.obj(data).class.and_then(|k| self.program.find_method(k, Sym::new("__iter__")));
                match iter {
                    Some((m, f)) => {
                        self.call_function(m, f, None, Some(Value::Object(data)), &Args::default(), e)
                    }
                    None => self.index(Value::Object(data), Self::NUMBER, e, e, e),
                }
            }
            ObjKind::Items => self.own(data),
            _ => Value::Unknown,
        };
        if let Some((f, at)) = args.get(6, "collate_fn").filter(|&(f, _)| self.is_followed(f)) {
            let items = self.many(item);
            let args = Args { positional: vec![(items, at)], ..Args::default() };
            self.call_value(f, &args, e);
        }
        self.run.muted -= 1;
        self.path = before.2;
        let told = self.devices.worker_told;
        (self.devices.worker, self.devices.worker_told) = (before.0, before.1);
        if !told {
            self.check_items(item, worker);
        }
    }

    /// Does the engine follow the value as a function: a function of the project, a partial one, or an object with `__call__`?
    fn is_followed(&self, f: Value) -> bool {
        match f {
            Value::Closure(_) | Value::Bound(_) => true,
            Value::Object(id) => match self.obj(id).kind {
                ObjKind::Partial => true,
                ObjKind::Instance => {
                    let call = Sym::new("__call__");
                    self.obj(id).class.is_some_and(|k| self.program.find_method(k, call).is_some())
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// A data set with CUDA tensors as items returns them in the workers.
    fn check_items(&mut self, item: Value, loader: Worker) {
        let mut parts = Parts::default();
        self.parts_of(item, &mut parts, 0);
        for t in parts.tensors {
            let t = self.get_tensor(t);
            if t.certain {
                self.in_worker(t.device, loader.place, loader, true);
            }
        }
    }

    /// The fork that a call here makes, with the condition that the parent has used CUDA. `None` if the start method may not be `fork`.
    fn fork(&mut self, e: ExprId) -> Option<Worker> {
        if self.run.muted > 0 || self.starts_afresh() {
            return None;
        }
        let Value::Bool(used) = self.store.get(self.devices.ready) else { return None };
        let ready = self.d.and(self.path, used);
        Some(Worker { place: self.place(e), loads: false, ready })
    }

    /// A pool of processes: forks of this process, unless the call names another context.
    pub(crate) fn fork_pool(&mut self, args: &Args, e: ExprId) -> Option<Value> {
        let worker = self.fork(e)?;
        if args.open || args.keyword("mp_context").is_some() || args.keyword("context").is_some() {
            return None;
        }
        let id = self.object(ObjKind::Inert, None, Value::Absent);
        self.devices.pools.insert(id, worker);
        Some(Value::Object(id))
    }

    /// `Process(target=f, args=…)`: a process that runs a function.
    pub(crate) fn fork_process(&mut self, args: &Args, e: ExprId) -> Option<Value> {
        let worker = self.fork(e)?;
        if let Some((f, _)) = args.get(1, "target") {
            let given = args.get(3, "args").and_then(|(v, _)| self.exact_elements(v)).unwrap_or_default();
            self.run_in_fork(worker, f, &given, e);
        }
        None
    }

    /// `pool.map(f, rows)` and similar methods.
    pub(crate) fn pool_method(&mut self, id: ObjId, name: Sym, args: &Args, e: ExprId) {
        let Some(&worker) = self.devices.pools.get(&id) else { return };
        let Some((f, _)) = args.get(0, "func") else { return };
        let second = args.get(1, "iterable").map_or(Value::Unknown, |(v, _)| v);
        let given = match name.as_str() {
            "map" | "imap" | "imap_unordered" | "map_async" => {
                let rows = args.positional.iter().skip(1).map(|&(v, _)| v).collect::<Vec<_>>();
                rows.into_iter().map(|v| self.some_row(v, e)).collect()
            }
            "starmap" | "starmap_async" => {
                let row = self.some_row(second, e);
                self.exact_elements(row).unwrap_or_default()
            }
            "apply" | "apply_async" => self.exact_elements(second).unwrap_or_default(),
            "submit" => args.positional.iter().skip(1).map(|&(v, _)| v).collect(),
            _ => return,
        };
        self.run_in_fork(worker, f, &given, e);
        for (v, _) in args.values() {
            self.escape(v, 0);
        }
    }

    fn some_row(&mut self, rows: Value, e: ExprId) -> Value {
        match self.iteration(rows, e) {
            Iteration::Exact(items) => items.first().copied().unwrap_or(Value::Unknown),
            Iteration::Any(v) => v,
        }
    }

    /// Interprets the code of a fork. Its changes stay in the fork.
    fn run_in_fork(&mut self, worker: Worker, f: Value, given: &[Value], e: ExprId) {
        if self.run.muted > 0 || !matches!(f, Value::Closure(_) | Value::Bound(_)) {
            return;
        }
        let before = (self.devices.worker.replace(worker), self.devices.worker_told, self.path);
        self.run.muted += 1;
        let args = Args { positional: given.iter().map(|&v| (v, e)).collect(), ..Args::default() };
        self.call_value(f, &args, e);
        self.run.muted -= 1;
        (self.devices.worker, self.devices.worker_told, self.path) = before;
    }

    /// Does the program choose a start method? Then its workers may not be forks.
    fn starts_afresh(&self) -> bool {
        let named = |ir: &crate::ir::Module| {
            ir.attributes.iter().any(|name| matches!(name.as_str(), "set_start_method" | "get_context"))
                || ir.strings.iter().any(|s| matches!(s.as_str(), "spawn" | "forkserver"))
        };
        named(&self.program.get(self.entry).ir) || named(&self.linked().ir)
    }

    /// Device work, which may be in a worker.
    pub(crate) fn worker_uses(&mut self, device: Dd, how: UseKind, e: ExprId) {
        let Some(loader) = self.devices.worker else { return };
        if matches!(how, UseKind::Transfer | UseKind::Move | UseKind::Factory | UseKind::LegacyType) {
            let place = self.place(e);
            self.in_worker(device, place, loader, false);
        }
    }

    fn in_worker(&mut self, device: Dd, place: Place, worker: Worker, held: bool) {
        for (leaf, d, origin) in self.device_leaves(device) {
            if !matches!(d, Device::Cuda(_) | Device::CudaSome) {
                continue;
            }
            let here = self.d.where_leaf(device, &mut |p| p == leaf);
            let there = self.available(None);
            let bad = self.d.and(here, there);
            let bad = self.d.and(bad, worker.ready);
            let muted = std::mem::take(&mut self.run.muted);
            let bite = self.bite(bad, false);
            self.run.muted = muted;
            if let Some(bite) = bite {
                self.devices.worker_told = true;
                let Worker { place: loader, loads, .. } = worker;
                let chain = if held { self.chain(origin) } else { Vec::new() };
                self.emit(Kind::InWorker { loader, loads, chain }, place, bite, Vec::new());
                return;
            }
        }
    }
}
