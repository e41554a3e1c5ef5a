//! Copies to the host that the program reads without waiting for them.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, Reason, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::observers::transfers::needless::nonblocking;
use crate::ir::{Expr, ExprId};
use crate::sym::Sym;
use crate::words::Words;

/// Methods that wait for a copy, or ask whether it is over.
static WAITS: Words = Words::of("wait for a stream");

impl Interp<'_> {
    /// `.to("cpu", non_blocking=True)`: returns the result's device with an origin `Unwaited`, and stores the number of waits so far.
    pub(crate) fn unwaited(&mut self, t: Tensor, device: Dd, args: &Args, e: ExprId) -> Dd {
        if !nonblocking(args) || !self.only_host(device) || !self.leaves_host(t.device) {
            return device;
        }
        let place = self.place(e);
        self.observed.unwaited.insert(place, self.observed.waits);
        self.because(device, e, Reason::Unwaited)
    }

    /// `host[i].copy_(x, non_blocking=True)`: the whole tensor `host` must be waited for, not only `host[i]`.
    pub(crate) fn copies_without_waiting(&mut self, t: Tensor, args: &Args, e: ExprId, base: ExprId) {
        let Some((Value::Tensor(source), _)) = args.get(0, "src") else { return };
        let from = self.get_tensor(source).device;
        if self.run.muted > 0 || !nonblocking(args) || !self.only_host(t.device) || !self.leaves_host(from) {
            return;
        }
        let mut whole = base;
        while let Expr::Index { base, .. } = self.linked().ir.expr(whole) {
            whole = base;
        }
        let Some(cell) = self.cell_of(whole) else { return };
        let Value::Tensor(buffer) = self.store.get(cell) else { return };
        let buffer = self.get_tensor(buffer);
        let place = self.place(e);
        self.observed.unwaited.insert(place, self.observed.waits);
        let device = self.because(buffer.device, e, Reason::Unwaited);
        let v = self.tensor(Tensor { device, ..buffer });
        self.store.set(cell, v);
    }

    /// The host reads the numbers of a tensor.
    pub(crate) fn check_read(&mut self, t: Tensor, e: ExprId) {
        for (_, d, origin) in self.device_leaves(t.device) {
            let Some(copy) =
                self.chain(origin).iter().find(|s| s.reason == Reason::Unwaited).map(|s| s.place)
            else {
                continue;
            };
            if d != Device::Cpu || self.observed.unwaited.get(&copy) != Some(&self.observed.waits) {
                continue;
            }
            let there = self.available(None);
            if let Some(bite) = self.bite(there, false) {
                let read = self.place(e);
                self.emit(Kind::ReadTooEarly { read }, copy, bite, Vec::new());
            }
            return;
        }
        if self.leaves_host(t.device) {
            self.observed.waits += 1;
            self.check_sync(t.device, e);
        }
    }

    /// `out.copy_(host)`, `out.add_(host)`, `out[i] = host`: if both are on the CPU, the operation reads `host` at once.
    pub(crate) fn read_into(&mut self, whole: Tensor, given: &[Value], e: ExprId) {
        if self.observed.unwaited.is_empty() || !self.only_host(whole.device) {
            return;
        }
        for &v in given {
            let Value::Tensor(t) = v else { continue };
            let t = self.get_tensor(t);
            if self.only_host(t.device) {
                self.check_read(t, e);
            }
        }
    }

    /// A call of a method whose name says that it waits.
    pub(crate) fn may_wait(&mut self, name: Sym) {
        if WAITS.has(name.as_str()) {
            self.observed.waits += 1;
        }
    }

    pub(crate) fn tell_where(&mut self, target: Dd, e: ExprId, kind: Kind) {
        let accelerators: Vec<u32> = self
            .device_leaves(target)
            .into_iter()
            .filter(|(_, d, _)| !matches!(d, Device::Cpu | Device::Unknown | Device::Meta))
            .map(|(leaf, ..)| leaf)
            .collect();
        let mut bad = crate::flow::domain::diagram::FALSE;
        for &leaf in &accelerators {
            let here = self.d.where_leaf(target, &mut |p| p == leaf);
            let there = match self.t.places.get(leaf).0 {
                // In a `try`, a move to another back end tests whether it is available.
                Device::Other(_) if self.caught_around() => crate::flow::domain::diagram::FALSE,
                Device::Other(b) => self.available(Some(b)),
                _ => self.available(None),
            };
            let there = self.d.and(here, there);
            bad = self.d.or(bad, there);
        }
        // If the target is the device of a value, that value is a tensor.
        let before = self.path;
        let mut tensors = crate::flow::domain::diagram::FALSE;
        for leaf in accelerators {
            let tensor = match self.t.places.get(leaf).0 {
                Device::Of(o) => self.may_be_a_tensor(o),
                _ => crate::flow::domain::diagram::TRUE,
            };
            tensors = self.d.or(tensors, tensor);
        }
        self.path = self.d.and(self.path, tensors);
        let bite = self.bite(bad, false);
        self.path = before;
        if let Some(bite) = bite {
            let place = self.place(e);
            self.emit(kind, place, bite, Vec::new());
        }
    }
}
