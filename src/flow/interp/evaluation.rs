//! Models in evaluation mode that are run with gradients.

use super::super::event::Kind;
use super::super::value::{Device, ObjId};
use super::Interp;
use crate::ir::{Expr, ExprId, FuncId, Var};
use crate::link::ModIdx;
use crate::sym::Sym;

/// Names that say that somebody has thought about gradients, one way or the other.
const ABOUT_GRADIENTS: &[&str] = &[
    "no_grad",
    "inference_mode",
    "set_grad_enabled",
    "requires_grad",
    "requires_grad_",
    "backward",
    "manual_backward",
    "autograd",
    "grad",
    "enable_grad",
    "train",
    "jacobian",
    "vjp",
    "jvp",
    "optimizer",
    "step",
];

impl Interp<'_> {
    /// `module.eval()` and `module.train()`.
    pub(super) fn module_mode(&mut self, id: ObjId, name: &str) {
        match name {
            "eval" => {
                self.watch.evaluated.insert(id);
            }
            "train" => {
                self.watch.evaluated.remove(&id);
            }
            _ => {}
        }
    }

    /// A module in evaluation mode is called in a loop, and nothing around it says anything about gradients.
    pub(super) fn check_evaluation(&mut self, id: ObjId, e: ExprId) {
        if self.muted > 0
            || !self.watch.evaluated.contains(&id)
            || self.in_module()
            || !self.has_weights(id, 0)
        {
            return;
        }
        let mut looped = false;
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            looped |= !frame.loops.is_empty();
            if self.speaks_of_gradients(frame.module, frame.func) {
                return;
            }
            at = frame.caller;
        }
        let device = self.module_device(id, 0);
        let accelerators: Vec<u32> = self
            .device_leaves(device)
            .into_iter()
            .filter(|(_, d, _)| matches!(d, Device::Cuda(_) | Device::CudaSome))
            .map(|(leaf, ..)| leaf)
            .collect();
        if !looped || accelerators.is_empty() {
            return;
        }
        let here = self.d.where_leaf(device, &mut |p| accelerators.contains(&p));
        let there = self.available(None);
        let bad = self.d.and(here, there);
        if let Some(bite) = self.bite(bad, false) {
            let place = self.place(e);
            self.emit(Kind::EvaluatedWithGraph, place, bite, Vec::new());
        }
    }

    /// Does the function, its decorators included, mention gradients? Of a file's body only what is in no function.
    fn speaks_of_gradients(&self, module: ModIdx, func: FuncId) -> bool {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        let about = |name: Sym| ABOUT_GRADIENTS.contains(&name.as_str());
        if function.name.as_str().starts_with("test") {
            return true;
        }
        ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
            let inside = if func.0 == 0 {
                !ir.functions.iter().any(|f| f.parent.is_some() && f.span.contains(at))
            } else {
                function.span.contains(at)
            };
            inside
                && match *e {
                    Expr::Attr { name, .. } => about(name),
                    Expr::Var(Var::Unbound(name)) => about(name),
                    Expr::Var(Var::Global(slot)) => ir
                        .functions
                        .first()
                        .and_then(|f| f.slots.get(usize::from(slot)))
                        .is_some_and(|&name| about(name)),
                    _ => false,
                }
        })
    }
}
