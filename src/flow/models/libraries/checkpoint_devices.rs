//! Tensors from a file that are no weights: `torch.load` puts them on the GPU they were saved from, where they meet other tensors.

use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::event::{Event, Kind};
use crate::flow::domain::value::{Device, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::ir::ExprId;
use crate::span::Place;

/// The maximum number of places in one finding.
const MAX_MET: usize = 3;

impl Interp<'_> {
    /// Stores that `torch.load` at this place returned this value.
    pub(crate) fn remember_read(&mut self, given: Value, place: Place) {
        if let Value::Outer(o) = given {
            self.libraries.read.insert(o, place);
        }
    }

    /// Two values meet in an operation. If one comes out of a file and the other is a tensor on a GPU, the load affects more than
    /// weights, which are copied anyway.
    pub(crate) fn meets_what_was_read(&mut self, a: Value, b: Value, e: ExprId) {
        if self.libraries.read.is_empty() || self.run.muted > 0 || self.path == FALSE {
            return;
        }
        let place = self.place(e);
        for (read, other) in [(a, b), (b, a)] {
            if !self.values_of(other).into_iter().any(|v| self.is_on_a_gpu(v)) {
                continue;
            }
            let loads: Vec<Place> =
                self.values_of(read).into_iter().filter_map(|v| self.taken_out_of_file(v)).collect();
            for load in loads {
                if !self.libraries.read_back.contains(&(load, place)) {
                    self.libraries.read_back.push((load, place));
                }
            }
        }
    }

    /// The place of the `torch.load` whose result contains this value as an item.
    fn taken_out_of_file(&self, v: Value) -> Option<Place> {
        let Value::Outer(mut at) = v else { return None };
        while let OuterKey::Item { base, .. } = self.t.get_outer(at).key {
            at = base;
            if let Some(&place) = self.libraries.read.get(&at) {
                return Some(place);
            }
        }
        None
    }

    /// Is it certainly a tensor, and on a GPU where there is one? Zero-dimensional tensors count, too, because only those on the CPU
    /// may meet tensors on another device.
    fn is_on_a_gpu(&self, v: Value) -> bool {
        let Value::Tensor(t) = v else { return false };
        let t = self.get_tensor(t);
        let leaves = self.device_leaves(t.device);
        t.certain && leaves.into_iter().any(|(_, d, _)| matches!(d, Device::Cuda(_) | Device::CudaSome))
    }

    /// Adds to the event of a `torch.load` the places where its result meets tensors on a GPU.
    pub(crate) fn with_what_met(&self, event: &mut Event) {
        if let Kind::Load { met, .. } = &mut event.kind {
            let here = self.libraries.read_back.iter().filter(|&&(load, _)| load == event.place);
            met.extend(here.map(|&(_, place)| place).take(MAX_MET));
        }
    }
}
