//! What two outside things give together: if that is a tensor, one of them is, and it is where that one is.

use super::super::diagram::TRUE;
use super::super::value::{Device, NO_ORIGIN, OriginId, Reason, Tensor, Value};
use super::{Dd, Interp};
use crate::ir::ExprId;

impl Interp<'_> {
    /// `(a - b)` of which neither is known to be a tensor: where that is, so that it is known again.
    pub(super) fn given_together(&mut self, device: Dd, x: Dd, y: Dd, e: ExprId) -> Dd {
        let whose = |i: &Self, d: Dd| i.d.as_leaf(d).map(|leaf| *i.t.places.get(leaf));
        let (Some((Device::Of(o), origin)), Some((Device::Of(_), _)), Some((Device::Of(_), _))) =
            (whose(self, device), whose(self, x), whose(self, y))
        else {
            return device;
        };
        // What has been asked by then may have been where the other one is.
        if self.path != TRUE {
            return device;
        }
        // Of a batch it is known which of its parts have been moved.
        if self.was_put_there(origin) || self.drawn_with(o).is_some() {
            return device;
        }
        let place = self.place(e);
        let together = self.origin(place, Reason::Given, NO_ORIGIN);
        self.sums.insert(together);
        self.at(Device::Of(o), together)
    }

    /// Only a tensor can be used like this: if two outside things gave it, one of them is a tensor.
    pub(super) fn shown_together(&mut self, t: Tensor) {
        if let Some(leaf) = self.d.as_leaf(t.device) {
            let origin = self.t.places.get(leaf).1;
            if self.sums.contains(&origin) {
                self.shown_sums.insert(origin);
            }
        }
    }

    /// Is it a tensor where one of two outside things is, whichever of them that may be?
    pub(super) fn is_shown_together(&self, origin: OriginId) -> bool {
        self.shown_sums.contains(&origin)
    }

    /// What has a shape and is computed with a tensor of somebody's is one itself: nobody computes with arrays there.
    pub(super) fn shown_by_shape(&mut self, a: Value, b: Value) {
        for (v, other) in [(a, b), (b, a)] {
            if let (Value::Outer(o), Value::Tensor(t)) = (v, other)
                && self.watch.shaped.contains(&o)
                && self.get_tensor(t).certain
                && self.is_of_somebody(self.get_tensor(t).device)
            {
                self.tensor_proofs.insert(o);
            }
        }
    }

    /// Has nobody here said where it is?
    fn is_of_somebody(&self, device: Dd) -> bool {
        self.d
            .as_leaf(device)
            .is_some_and(|leaf| matches!(self.t.places.get(leaf).0, Device::Of(_) | Device::Unknown))
    }
}
