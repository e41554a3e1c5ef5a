//! The current GPU: the first one, unless some code makes another one current.

use rustc_hash::FxHashSet;

use crate::flow::domain::diagram::{Cond, Dd};
use crate::flow::domain::value::{Device, OuterKey};
use crate::flow::machine::Interp;
use crate::ir::{Expr, Var};
use crate::link::{ModIdx, Target};

/// Libraries that start several processes and make a GPU current in each.
const LAUNCHED: &[&str] = &[
    "accelerate",
    "apex",
    "composer",
    "deepspeed",
    "fairscale",
    "horovod",
    "ignite",
    "lightning",
    "megatron",
    "mmcv",
    "mmengine",
    "pytorch_lightning",
    "ray",
    "torch_xla",
    "vllm",
];

impl Interp<'_> {
    /// Is `cuda` the first GPU? True in a script if neither the script nor the project files that it imports make another GPU
    /// current, and none of them imports a library that starts processes.
    pub(crate) fn first_is_current(&mut self) -> bool {
        !self.run.symbolic && self.keeps_gpu()
    }

    /// Is there no code that makes another GPU current?
    fn keeps_gpu(&mut self) -> bool {
        if let Some(known) = self.devices.first_gpu {
            return known;
        }
        let known = !self.changes_gpu(self.entry, &mut FxHashSet::default());
        self.devices.first_gpu = Some(known);
        known
    }

    /// Does the file, or a project file that it imports, make a GPU current, or import a library that may?
    fn changes_gpu(&self, module: ModIdx, seen: &mut FxHashSet<ModIdx>) -> bool {
        if !seen.insert(module) {
            return false;
        }
        let linked = self.program.get(module);
        let ir = &linked.ir;
        let of_cuda = |base| match ir.expr(base) {
            Expr::Attr { name, .. } => name.as_str() == "cuda",
            Expr::Var(Var::Unbound(_)) => false,
            Expr::Var(_) => ir.variable_of(base).is_some_and(|name| name.as_str() == "cuda"),
            _ => false,
        };
        let spoken = ir.exprs.iter().any(|e| match *e {
            Expr::Attr { base, name } => match name.as_str() {
                "set_device" | "device_of" | "_exchange_device" => true,
                "device" | "stream" => of_cuda(base),
                _ => false,
            },
            _ => false,
        });
        let launched = ir.imports.iter().any(|import| {
            let path = import.whole();
            let mut parts = path.as_str().split('.');
            let top = parts.next().unwrap_or_default();
            LAUNCHED.contains(&top)
                || parts.any(|part| matches!(part, "distributed" | "set_device" | "multiprocessing"))
                || path.as_str() == "torch.cuda.device"
        });
        spoken
            || launched
            || linked.targets.values().any(|target| match *target {
                Target::Module(m) | Target::Member(m, _) => self.changes_gpu(m, seen),
                Target::External(_) => false,
            })
    }

    /// A tensor on one GPU meets a tensor on the module's device. Either that raises, or the module is on that GPU.
    pub(crate) fn note_module_met(&mut self, a: Dd, b: Dd) {
        if self.run.muted > 0 || self.caught_around() {
            return;
        }
        let device = |d: Dd| self.d.as_leaf(d).map(|leaf| self.t.places.get(leaf).0);
        let (Some(a), Some(b)) = (device(a), device(b)) else { return };
        let of_module = |d: Device| matches!(d, Device::Of(o) if matches!(self.t.get_outer(o).key, OuterKey::Receiver { .. }));
        match (a, b) {
            (gpu @ Device::Cuda(_), module) | (module, gpu @ Device::Cuda(_)) if of_module(module) => {
                self.devices.module_met.push((gpu, self.path));
            }
            _ => {}
        }
    }

    /// Has a tensor on this GPU met a tensor on the module's device, on every path to this point? Not if the current GPU may have changed.
    pub(crate) fn is_module_on(&mut self, gpu: Device) -> bool {
        let met: Vec<Cond> = self.devices.module_met.iter().filter(|m| m.0 == gpu).map(|m| m.1).collect();
        met.into_iter().any(|when| self.d.implies(self.path, when)) && self.keeps_gpu()
    }

    /// Is one of the two devices the current GPU, and the other one a GPU with an index greater than 0?
    pub(crate) fn have_bare_and_other(&self, a: Dd, b: Dd) -> bool {
        let places = &self.t.places;
        let has = |d: Dd, wanted: &dyn Fn(Device) -> bool| self.d.any_leaf(d, &|p| wanted(places.get(p).0));
        let bare = |d: Device| d == Device::Cuda(None);
        let other = |d: Device| matches!(d, Device::Cuda(Some(n)) if n > 0);
        has(a, &bare) && has(b, &other) || has(b, &bare) && has(a, &other)
    }
}

/// Gives the current GPU its index, if it is the first one.
pub(crate) fn with_index(d: Device, first: bool) -> Device {
    if first && d == Device::Cuda(None) { Device::Cuda(Some(0)) } else { d }
}
