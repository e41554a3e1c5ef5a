//! What `accelerate` and the `Trainer` of Transformers gather from all processes.
//!
//! `gather()` and its kin refuse what is not on the GPU where the `Accelerator` works with CUDA (accelerate/utils/operations.py,
//! `_gpu_gather`). A `Trainer` gathers the loss, the logits and the labels that `prediction_step` gives (transformers/trainer.py,
//! `evaluation_loop`).

use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::value::{Device, OuterId, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{ExprId, FuncId};
use crate::link::{ClassKey, ModIdx};
use crate::sym::Sym;

/// Methods of an `Accelerator` that send a tensor to the other processes.
const GATHERS: &[&str] = &["gather", "gather_for_metrics", "pad_across_processes"];
/// The method of a `Trainer` whose results are gathered.
const STEP: &str = "prediction_step";
/// The loss, the logits and the labels.
const RESULTS: usize = 3;

impl Interp<'_> {
    /// `accelerator.gather(x)` of a tensor on the CPU.
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

    /// What a method of a `Trainer` has given, which gathers it.
    pub(crate) fn check_step(
        &mut self,
        (module, func): (ModIdx, FuncId),
        class: Option<ClassKey>,
        given: Value,
    ) {
        let step = self.program.get(module).ir.function(func).name.as_str() == STEP;
        if !step || !class.is_some_and(|class| self.is_gathered(class)) {
            return;
        }
        self.each(given, &mut |i, given| {
            let Value::Seq(results) = given else { return given };
            let results = i.seq_items(results);
            if results.len() == RESULTS {
                results.iter().for_each(|&v| i.check_result((module, func), v));
            }
            given
        });
    }

    /// One of them.
    fn check_result(&mut self, function: (ModIdx, FuncId), v: Value) {
        self.each(v, &mut |i, v| {
            if let Some(made) = i.brought_to_host(function, v) {
                i.check_carried(v, made, "Trainer.gather_function", TRUE);
            }
            v
        });
    }

    /// Does the framework behind the class gather what its methods give?
    fn is_gathered(&self, class: ClassKey) -> bool {
        let externals = &self.program.class(class).externals;
        externals.iter().any(|&path| crate::torch::base_class(path).is_some_and(|b| b.gathers))
    }

    /// The expression of the function by which a tensor came to the CPU, if there is one.
    fn brought_to_host(&self, (module, func): (ModIdx, FuncId), v: Value) -> Option<ExprId> {
        let Value::Tensor(t) = v else { return None };
        let t = self.get_tensor(t);
        let (_, _, origin) =
            self.device_leaves(t.device).into_iter().find(|&(_, device, _)| device == Device::Cpu)?;
        let chain = self.chain(origin);
        let step = chain
            .first()
            .filter(|step| matches!(step.reason, Reason::Default | Reason::Moved | Reason::Host))?;
        let ir = &self.program.get(module).ir;
        let within = ir.exprs_of(ir.function(func));
        if step.place.file != ir.file {
            return None;
        }
        let n = within.into_iter().find(|&n| ir.expr_spans[n] == step.place.span)?;
        Some(ExprId(u32::try_from(n).ok()?))
    }
}
