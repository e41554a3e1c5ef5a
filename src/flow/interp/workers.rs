//! Workers of data loaders: what runs in them, and whether it touches CUDA.

use super::super::diagram::Dd;
use super::super::event::{Kind, UseKind};
use super::super::value::{Device, Value};
use super::args::Args;
use super::watch::Parts;
use super::{Interp, ObjKind};
use crate::ir::{Expr, ExprId};
use crate::span::Place;
use crate::sym::Sym;

impl Interp<'_> {
    /// What the data set and the `collate_fn` of a loader with workers do to CUDA happens in forked processes.
    pub(super) fn check_workers(&mut self, data: Option<Value>, args: &Args, e: ExprId) {
        let workers = match args.get(5, "num_workers").map(|(v, _)| v) {
            Some(Value::Int(n)) => n > 0,
            Some(Value::Outer(o)) => {
                matches!(self.t.get_outer(o).default, Some(Value::Int(n)) if n > 0)
            }
            _ => false,
        };
        let context = args.keyword("multiprocessing_context").is_some_and(|(v, _)| v != Value::None);
        let Some(Value::Object(data)) = data else { return };
        if !workers || context || args.open || self.muted > 0 || self.starts_afresh() {
            return;
        }
        let place = self.place(e);
        let before = (self.watch.worker.replace(place), self.watch.worker_told, self.path);
        self.watch.worker_told = false;
        self.muted += 1;
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
        if let Some((f @ (Value::Closure(_) | Value::Bound(_)), at)) = args.get(6, "collate_fn") {
            let items = self.many(item);
            let args = Args { positional: vec![(items, at)], ..Args::default() };
            self.call_value(f, &args, e);
        }
        self.muted -= 1;
        self.path = before.2;
        let told = self.watch.worker_told;
        (self.watch.worker, self.watch.worker_told) = (before.0, before.1);
        if !told {
            self.check_items(item, place);
        }
    }

    /// A data set that holds CUDA tensors hands them out in the workers.
    fn check_items(&mut self, item: Value, loader: Place) {
        let mut parts = Parts::default();
        self.parts_of(item, &mut parts, 0);
        for t in parts.tensors {
            let t = self.get_tensor(t);
            if t.certain {
                self.in_worker(t.device, loader, loader);
            }
        }
    }

    /// Is the start method set somewhere? Then workers may not be forks.
    fn starts_afresh(&self) -> bool {
        let named = |ir: &crate::ir::Module| {
            ir.exprs.iter().any(|e| {
                matches!(e, Expr::Attr { name, .. } if matches!(name.as_str(), "set_start_method" | "get_context"))
                    || matches!(e, Expr::Str(s) if matches!(s.as_str(), "spawn" | "forkserver"))
            })
        };
        named(&self.program.get(self.entry).ir) || named(&self.linked().ir)
    }

    /// Device work, perhaps in a worker of a loader.
    pub(super) fn worker_uses(&mut self, device: Dd, how: UseKind, e: ExprId) {
        let Some(loader) = self.watch.worker else { return };
        if matches!(how, UseKind::Transfer | UseKind::Move | UseKind::Factory | UseKind::LegacyType) {
            let place = self.place(e);
            self.in_worker(device, place, loader);
        }
    }

    fn in_worker(&mut self, device: Dd, place: Place, loader: Place) {
        for (leaf, d, _) in self.device_leaves(device) {
            if !matches!(d, Device::Cuda(_) | Device::CudaSome) {
                continue;
            }
            let here = self.d.where_leaf(device, &mut |p| p == leaf);
            let there = self.available(None);
            let bad = self.d.and(here, there);
            let muted = std::mem::take(&mut self.muted);
            let bite = self.bite(bad, false);
            self.muted = muted;
            if let Some(bite) = bite {
                self.watch.worker_told = true;
                self.emit(Kind::InWorker { loader }, place, bite, Vec::new());
                return;
            }
        }
    }
}
