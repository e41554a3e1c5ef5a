//! Tensors that `accelerate` gathers from all processes.
//!
//! If the `Accelerator` uses CUDA, `gather()` and similar methods refuse tensors that are not on its GPU
//! (accelerate/utils/operations.py, `_gpu_gather`).

use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::value::{Device, OuterId};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::sym::Sym;

/// Methods of an `Accelerator` that send a tensor to the other processes.
const GATHERS: &[&str] = &["gather", "gather_for_metrics", "pad_across_processes"];

impl Interp<'_> {
    /// Reports `accelerator.gather(x)` of a CPU tensor.
    pub(crate) fn check_gathered(&mut self, o: OuterId, name: Sym, args: &Args) {
        if !GATHERS.contains(&name.as_str()) || self.run.muted > 0 {
            return;
        }
        let works_on_gpus = match self.libraries.accelerates.get(&o) {
            Some(known) => {
                let device = known.device();
                self.device_leaves(device).iter().any(|&(_, d, _)| matches!(d, Device::Cuda(_)))
            }
            None => self.t.get_outer(o).text.rsplit('.').next() == Some("accelerator"),
        };
        if let (true, Some((v, at))) = (works_on_gpus, args.get(0, "tensor")) {
            let what = format!("accelerator.{name}");
            self.each(v, &mut |i, v| {
                i.check_carried(v, at, &what, TRUE);
                v
            });
        }
    }
}
