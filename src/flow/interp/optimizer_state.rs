//! The state of optimizers: it stays where the parameters were when it was made or loaded.

use super::super::event::{Kind, LeftBehind};
use super::super::value::{Device, ObjId, Reason};
use super::Interp;
use super::watch::State;
use crate::ir::{Expr, ExprId};

/// Optimizers that have a state for each parameter from the first step on, whatever they are given.
pub(super) const STATEFUL: &[&str] =
    &["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adadelta", "RMSprop", "Rprop", "ASGD", "Adafactor"];

impl Interp<'_> {
    /// An optimizer has a state from here on, where the parameters are now.
    pub(super) fn state_made(&mut self, id: ObjId, e: ExprId) {
        let place = self.place(e);
        let Some(n) = self.watch.optimizers.iter().position(|o| o.id == id && o.stateful) else { return };
        let Some(&module) = self.watch.optimizers[n].modules.first() else { return };
        if self.muted > 0 || !self.has_weights(module, 0) {
            return;
        }
        let device = self.module_device(module, 0);
        self.watch.optimizers[n].state = Some(State { device, place, path: self.path });
    }

    /// A step with a state that is on the CPU still, of parameters that have been moved since.
    pub(super) fn steps_with_state(&mut self, id: ObjId, e: ExprId) {
        let Some(n) = self.watch.optimizers.iter().position(|o| o.id == id) else { return };
        let Some(State { device, place, path }) = self.watch.optimizers[n].state else {
            if self.differentiates_here() {
                self.state_made(id, e);
            }
            return;
        };
        let Some(&module) = self.watch.optimizers[n].modules.first() else { return };
        let now = self.module_device(module, 0);
        let accelerator =
            |d| matches!(d, Device::Cuda(_) | Device::CudaSome | Device::Other(_) | Device::Named(_));
        let moved =
            self.device_leaves(now).into_iter().filter(|&(_, d, _)| accelerator(d)).find_map(
                |(_, _, origin)| self.chain(origin).into_iter().find(|s| s.reason == Reason::Moved),
            );
        let places = &self.t.places;
        let left = self.d.zip(device, now, &mut |x, y| {
            u32::from(places.get(x).0 == Device::Cpu && accelerator(places.get(y).0))
        });
        let (Some(moved), Some(left)) = (moved, left) else { return };
        let there = self.available(None);
        let bad = self.d.and(left, there);
        // Only where the state was there.
        let before = self.path;
        self.path = self.d.and(before, path);
        if let Some(bite) = self.bite(bad, false) {
            let optimizer = self.watch.optimizers[n].name;
            let kind = Kind::OptimizerFirst { optimizer, then: moved.place, left: LeftBehind::LaterState };
            self.emit(kind, place, bite, Vec::new());
            self.optimizer_escapes(id);
        }
        self.path = before;
    }

    /// Without a gradient a step makes no state.
    fn differentiates_here(&self) -> bool {
        self.linked().ir.exprs.iter().any(|e| {
            matches!(e, Expr::Attr { name, .. } if matches!(name.as_str(), "backward" | "manual_backward"))
        })
    }

    /// Unknown code has the optimizer, or looks at its state: it may move that.
    pub(super) fn optimizer_escapes(&mut self, id: ObjId) {
        for o in self.watch.optimizers.iter_mut().filter(|o| o.id == id) {
            (o.stateful, o.state) = (false, None);
        }
    }
}
