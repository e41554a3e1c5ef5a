//! Half precision on a device that may be the CPU.

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{Cond, Dd, FALSE, TRUE};
use crate::flow::domain::event::{Bite, Kind};
use crate::flow::domain::value::{Device, ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::query::flag_words::speaks_of_precision;
use crate::ir::ExprId;
use crate::span::Place;

/// Keywords with which libraries choose the dtype of a model that they load.
const DTYPE_KEYWORDS: &[&str] = &["torch_dtype", "dtype"];

impl Interp<'_> {
    fn names_half(&self, v: Value) -> bool {
        matches!(v, Value::External(path) if matches!(path.as_str(), "torch.float16" | "torch.half"))
    }

    /// A call makes a module. Stores whether its weights are in half precision.
    pub(crate) fn made_in_half(&mut self, id: ObjId, args: &Args, e: ExprId) {
        if DTYPE_KEYWORDS.iter().any(|k| args.keyword(k).is_some_and(|(v, _)| self.names_half(v))) {
            self.halve(id, e);
        }
    }

    /// From here on, its weights are in half precision on this path.
    fn halve(&mut self, id: ObjId, e: ExprId) {
        let before = self.modules.halved.get(&id).map_or(FALSE, |&(_, when)| when);
        let when = self.d.or(before, self.path);
        let place = self.place(e);
        self.modules.halved.insert(id, (place, when));
    }

    /// From here on, its weights are in another precision on this path.
    fn no_longer_halved(&mut self, id: ObjId) {
        if let Some(&(place, when)) = self.modules.halved.get(&id) {
            let elsewhere = self.d.not(self.path);
            let when = self.d.and(when, elsewhere);
            self.modules.halved.insert(id, (place, when));
        }
    }

    /// `module.half()` and `module.to(torch.float16)`. `module.float()` undoes them.
    pub(crate) fn module_precision(&mut self, id: ObjId, name: &str, args: &Args, e: ExprId) {
        self.module_bfloat16(id, name, args, e);
        match name {
            "half" => {}
            "to" if args.values().any(|(v, _)| self.names_half(v)) => {}
            "float" | "double" | "bfloat16" | "type" => {
                self.no_longer_halved(id);
                return;
            }
            _ => return,
        }
        self.halve(id, e);
        let device = self.module_device(id, 0);
        let place = self.place(e);
        self.check_half(device, (place, TRUE), None);
    }

    /// A module moves. Checks whether it is in half precision.
    pub(crate) fn half_moves(&mut self, id: ObjId, device: Dd, e: ExprId) {
        if let Some(&halved) = self.modules.halved.get(&id) {
            let moved = self.place(e);
            self.check_half(device, halved, Some(moved));
        }
    }

    /// The event data for a machine without CUDA on which the device has this leaf, under the condition `when`.
    pub(crate) fn bite_without_cuda(&mut self, device: Dd, leaf: u32, when: Cond) -> Option<Bite> {
        let here = self.d.where_leaf(device, &mut |p| p == leaf);
        let there = self.available(None);
        let absent = self.d.not(there);
        let bad = self.d.and(here, absent);
        let bad = self.d.and(bad, when);
        self.bite(bad, true)
    }

    /// Reports half precision on a device that is the CPU on a machine without CUDA, because the program tested for CUDA.
    fn check_half(&mut self, device: Dd, (place, halved): (Place, Cond), moved: Option<Place>) {
        let leaves = self.device_leaves(device);
        if !leaves.iter().any(|(_, d, _)| matches!(d, Device::Cuda(_) | Device::CudaSome)) {
            return;
        }
        if self.precision_is_chosen(halved) {
            return;
        }
        for (leaf, d, _) in leaves {
            if d != Device::Cpu {
                continue;
            }
            if let Some(bite) = self.bite_without_cuda(device, leaf, halved) {
                self.emit(Kind::HalfOnCpu { moved }, place, bite, Vec::new());
                return;
            }
        }
    }

    /// Does half precision depend on a flag for the precision that is not on by default?
    fn precision_is_chosen(&mut self, halved: Cond) -> bool {
        let when = self.d.and(self.path, halved);
        let mut atoms = Vec::new();
        self.d.support(when, &mut atoms);
        atoms.into_iter().any(|atom| {
            matches!(self.atoms.get(atom), Atom::Flag { text, default, .. }
                if *default != Some(true) && speaks_of_precision(text))
        })
    }
}
