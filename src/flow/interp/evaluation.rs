//! Models in evaluation mode that are run with gradients.

use super::super::event::Kind;
use super::super::value::{Device, ObjId, OuterId, Value};
use super::args::Args;
use super::{Cond, FALSE, Interp};
use crate::ir::{Expr, ExprId, FuncId, Module, Stmt, StmtId, Var};
use crate::link::ModIdx;
use crate::span::{Place, Span};
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
    "jacobian",
    "vjp",
    "jvp",
];

/// Names that say that a function trains what it has at hand. Around its callers they say nothing of it.
const ABOUT_TRAINING: &[&str] = &["train", "optimizer", "step"];

/// A call that differentiates needs gradients, and so does whoever calls the function that it is in.
const DIFFERENTIATES: &[&str] = &["backward", "manual_backward"];

impl Interp<'_> {
    /// `module.eval()` and `module.train()`.
    pub(super) fn module_mode(&mut self, module: Value, name: &str, args: &Args, e: ExprId) {
        match name {
            "eval" => {
                let place = self.place(e);
                self.watch.evaluated.insert(module, place);
            }
            "train" if args.positional.first().is_some_and(|&(v, _)| v == Value::Bool(FALSE)) => {
                let place = self.place(e);
                self.watch.evaluated.insert(module, place);
            }
            "train" => {
                self.watch.evaluated.remove(&module);
            }
            _ => {}
        }
    }

    /// A module in evaluation mode is called, again and again or besides its training, and nothing around it says
    /// anything about gradients.
    pub(super) fn check_evaluation(&mut self, id: ObjId, e: ExprId) {
        let Some(&since) = self.watch.evaluated.get(&Value::Object(id)) else { return };
        if self.muted > 0 || self.in_module() || !self.has_weights(id, 0) {
            return;
        }
        let looped = self.is_repeated() || self.watch.optimizers.iter().any(|o| o.modules.contains(&id));
        if !looped || self.thinks_of_gradients(since, e) {
            return;
        }
        let device = self.module_device(id, 0);
        let here = self.where_on_cuda(device);
        self.runs_with_graph(here, e);
    }

    /// The same for a model of which only that is known: that it is given tensors on an accelerator, in a function that
    /// cannot be called without gradients.
    pub(super) fn check_outer_evaluation(&mut self, o: OuterId, args: &Args, e: ExprId) {
        let Some(&since) = self.watch.evaluated.get(&Value::Outer(o)) else { return };
        let frame = self.here();
        let differentiates = self.speaks_of(DIFFERENTIATES, frame.module, frame.func, &|_| true);
        if self.muted > 0 || !differentiates || !self.is_repeated() || self.thinks_of_gradients(since, e) {
            return;
        }
        let mut here = FALSE;
        for (v, _) in args.values().collect::<Vec<_>>() {
            if let Value::Tensor(t) = v {
                let on = self.where_on_cuda(self.get_tensor(t).device);
                here = self.d.or(here, on);
            }
        }
        self.runs_with_graph(here, e);
    }

    fn where_on_cuda(&mut self, device: super::Dd) -> Cond {
        let accelerators: Vec<u32> = self
            .device_leaves(device)
            .into_iter()
            .filter(|(_, d, _)| matches!(d, Device::Cuda(_) | Device::CudaSome))
            .map(|(leaf, ..)| leaf)
            .collect();
        if accelerators.is_empty() {
            return FALSE;
        }
        self.d.where_leaf(device, &mut |p| accelerators.contains(&p))
    }

    fn runs_with_graph(&mut self, here: Cond, e: ExprId) {
        let there = self.available(None);
        let bad = self.d.and(here, there);
        if let Some(bite) = self.bite(bad, false) {
            let place = self.place(e);
            self.emit(Kind::EvaluatedWithGraph, place, bite, Vec::new());
        }
    }

    /// Is it reached in a loop, here or further out?
    fn is_repeated(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if !frame.loops.is_empty() {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// Has somebody who is around the call thought about gradients? In the function that has put the model into
    /// evaluation mode that is told by what comes after, and by the blocks around.
    fn thinks_of_gradients(&self, since: Place, e: ExprId) -> bool {
        let call = self.place(e).span;
        let (mut at, mut words) = (Some(self.frame), [ABOUT_GRADIENTS, ABOUT_TRAINING].concat());
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            let ir = &self.program.get(frame.module).ir;
            let function = ir.function(frame.func);
            let local = frame.func.0 != 0
                && since.file == ir.file
                && function.span.contains(since.span)
                && since.span.start < call.start
                && f == self.frame;
            let thinks = if local {
                let until = trained_again(ir, function.span, call);
                let after = |span: Span| span.start >= since.span.start && span.end <= until;
                self.speaks_of(&words, frame.module, frame.func, &after)
                    || self
                        .speaks_of(ABOUT_GRADIENTS, frame.module, frame.func, &|span| heads(ir, span, call))
            } else {
                self.speaks_of(&words, frame.module, frame.func, &|_| true)
            };
            if thinks {
                return true;
            }
            words = ABOUT_GRADIENTS.to_vec();
            at = frame.caller;
        }
        false
    }

    /// Does the function, its decorators included, have one of these names in it, where it matters? Of a file's body only
    /// what is in no function.
    fn speaks_of(
        &self,
        words: &[&str],
        module: ModIdx,
        func: FuncId,
        matters: &dyn Fn(Span) -> bool,
    ) -> bool {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        let about = |name: Sym| words.contains(&name.as_str());
        // What a test runner finds is small; what the program itself calls is its evaluation.
        if function.name.as_str().starts_with("test") && !self.program.get(module).calls.contains_key(&func) {
            return true;
        }
        let decorated = |at: Span| ir.list(function.decorators).iter().any(|&d| ir.span(d).contains(at));
        ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
            let inside = if func.0 == 0 {
                !ir.functions.iter().any(|f| f.parent.is_some() && f.span.contains(at))
            } else {
                function.span.contains(at)
            };
            (inside && matters(at) || func.0 != 0 && decorated(at))
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

/// Where something is put into training mode after the call: what comes then is about other rounds.
fn trained_again(ir: &Module, function: Span, call: Span) -> u32 {
    let trains = ir.exprs.iter().zip(&ir.expr_spans).filter(|&(e, &at)| {
        function.contains(at)
            && at.start > call.end
            && matches!(e, Expr::Attr { name, .. } if name.as_str() == "train")
    });
    trains.map(|(_, at)| at.start).min().unwrap_or(u32::MAX)
}

/// Is the place in the head of a `with` statement around the call?
fn heads(ir: &Module, at: Span, call: Span) -> bool {
    ir.stmts.iter().enumerate().any(|(n, s)| {
        let Stmt::With { items, .. } = s else { return false };
        ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX))).contains(call)
            && items.iter().any(|&(e, _)| ir.span(e).contains(at))
    })
}
