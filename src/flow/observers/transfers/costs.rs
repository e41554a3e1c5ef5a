//! Observers for the costs whose rules are off by default: SD508, SD509, SD606, SD703, SD704. Many programs have them on purpose.

use crate::flow::domain::diagram::{Cond, Dd, FALSE};
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{Expr, ExprId, Var};
use crate::sym::Sym;
use crate::words::Words;

/// Functions that tell what the GPU supports.
static CAPABILITY: Words = Words::of("ask what a GPU supports");

impl Interp<'_> {
    fn where_on(&mut self, device: Dd, wanted: &dyn Fn(Device) -> bool) -> Cond {
        let leaves: Vec<u32> =
            self.device_leaves(device).into_iter().filter(|l| wanted(l.1)).map(|(leaf, ..)| leaf).collect();
        if leaves.is_empty() {
            return FALSE;
        }
        self.d.where_leaf(device, &mut |p| leaves.contains(&p))
    }

    /// Emits the event in the worlds in which the device is a CUDA device.
    fn tell_on_cuda(&mut self, device: Dd, kind: Kind, e: ExprId) {
        let here = self.where_on(device, &|d| matches!(d, Device::Cuda(_) | Device::CudaSome));
        let there = self.available(None);
        let bad = self.d.and(here, there);
        if let Some(bite) = self.bite(bad, false) {
            let place = self.place(e);
            self.emit(kind, place, bite, Vec::new());
        }
    }

    /// Reports 64-bit numbers on a GPU.
    pub(crate) fn doubles_on_gpu(&mut self, device: Dd, double: Cond, e: ExprId) {
        if double == crate::flow::domain::diagram::TRUE && self.run.muted == 0 {
            self.tell_on_cuda(device, Kind::DoubleOnGpu, e);
        }
    }

    /// Does the file test what the GPU supports?
    fn asks_capability(&self) -> bool {
        self.mentions(CAPABILITY.all())
    }

    fn mentions(&self, names: &[&str]) -> bool {
        let ir = &self.linked().ir;
        ir.exprs.iter().any(|e| match *e {
            Expr::Attr { name, .. } | Expr::Var(Var::Unbound(name)) => names.contains(&name.as_str()),
            _ => false,
        }) || self
            .linked()
            .targets
            .keys()
            .any(|(_, _, name)| name.is_some_and(|n| names.contains(&n.as_str())))
    }

    /// Reports `dtype=torch.bfloat16` on a GPU.
    pub(crate) fn check_bfloat16(&mut self, device: Dd, args: &Args, e: ExprId) {
        let says = |v: Value| matches!(v, Value::External(path) if path.as_str() == "torch.bfloat16");
        if self.run.muted == 0 && args.values().any(|(v, _)| says(v)) && !self.asks_capability() {
            self.tell_on_cuda(device, Kind::Bfloat16, e);
        }
    }

    /// Reports `.bfloat16()` of a tensor or module on a GPU.
    pub(crate) fn cast_to_bfloat16(&mut self, device: Dd, e: ExprId) {
        if self.run.muted == 0 && !self.asks_capability() {
            self.tell_on_cuda(device, Kind::Bfloat16, e);
        }
    }

    /// Reports a cast of a module: `module.to(torch.bfloat16)`.
    pub(crate) fn module_bfloat16(&mut self, id: ObjId, name: &str, args: &Args, e: ExprId) {
        let device = self.module_device(id, 0);
        match name {
            "bfloat16" => self.cast_to_bfloat16(device, e),
            "to" => self.check_bfloat16(device, args, e),
            _ => {}
        }
    }

    /// Reports `torch.cuda.empty_cache()` in a loop.
    pub(crate) fn check_emptied(&mut self, path: Sym, e: ExprId) {
        let empties =
            matches!(path.as_str(), "torch.cuda.empty_cache" | "torch.accelerator.memory.empty_cache");
        if !empties || self.run.muted > 0 || self.here().loops.is_empty() || self.is_in_branch() {
            return;
        }
        let there = self.available(None);
        if let Some(bite) = self.bite(there, false) {
            let place = self.place(e);
            self.emit(Kind::CacheEmptied, place, bite, Vec::new());
        }
    }

    /// Is the code in a branch inside of the innermost loop, so that not every round reaches it?
    fn is_in_branch(&self) -> bool {
        self.here().loops.last().is_some_and(|l| self.here().branches > l.branches)
    }

    /// Reports a number that the program reads in every round of a training.
    pub(crate) fn check_sync(&mut self, device: Dd, e: ExprId) {
        if self.run.muted > 0
            || self.here().loops.is_empty()
            || self.is_in_branch()
            || !self.mentions(&["backward"])
        {
            return;
        }
        let ir = &self.linked().ir;
        let function = ir.function(self.here().func);
        let whole = self.here().func.0 == 0;
        let trains = ir.exprs.iter().zip(&ir.expr_spans).any(|(x, &at)| {
            (whole || function.span.contains(at))
                && matches!(x, Expr::Attr { name, .. } if name.as_str().ends_with("backward"))
        });
        if trains {
            self.tell_on_cuda(device, Kind::SyncInTraining, e);
        }
    }

    /// Reports a result that the program appends to a list in every round, although it needs no gradient.
    pub(crate) fn check_accumulated(&mut self, v: Value, e: ExprId) {
        let Value::Tensor(t) = v else { return };
        if self.run.muted > 0 || self.here().loops.is_empty() {
            return;
        }
        let ir = &self.linked().ir;
        let function = ir.function(self.here().func);
        let whole = self.here().func.0 == 0;
        let spans: Vec<_> = ir.list(function.decorators).iter().map(|&d| ir.span(d)).collect();
        let around = ir.exprs_of(function);
        let inference = ir.exprs[around.clone()].iter().zip(&ir.expr_spans[around]).any(|(x, &at)| {
            matches!(x, Expr::Attr { name, .. } if matches!(name.as_str(), "no_grad" | "inference_mode"))
                && (whole || function.span.contains(at) || spans.iter().any(|s| s.contains(at)))
        });
        let device = self.get_tensor(t).device;
        if inference && self.get_tensor(t).dims.none() != Some(true) {
            self.tell_on_cuda(device, Kind::ResultsKept, e);
        }
    }
}
