//! Tensors that the program makes on the host and then only moves to a device.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, Reason, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::observers::transfers::host_values::{calls_backward, joins_others};
use crate::ir::{Expr, ExprId, FuncId};
use crate::link::ModIdx;
use crate::sym::Sym;
use crate::words::Words;

/// Methods whose result has the same numbers as the tensor, in another shape or type.
pub(crate) static OF_ITSELF: Words = Words::of("methods that compute from the tensor");

/// Methods that run once for each object or test.
static SETS_UP: Words = Words::of("set up an object or a test");

impl Interp<'_> {
    /// Reports a tensor that the program makes on the host and then moves: `torch.zeros(n).to(device)`, in one statement or in two.
    pub(crate) fn check_created(&mut self, t: Tensor, target: Dd, e: ExprId, base: ExprId) {
        let Some((reason, made)) = self.host_reason(t) else { return };
        let counted =
            matches!(reason, Reason::Default | Reason::Host | Reason::Typed) && self.counts_up(base);
        if !counted && reason != Reason::Default {
            return;
        }
        // An empty tensor needs no copy.
        let kept =
            || self.is_cached() || self.fills_a_cache(e) || self.is_made_anew(e) || self.becomes_weight(e);
        if t.bytes == Some(0) || self.happens_once() || kept() {
            return;
        }
        let at_once = matches!(self.linked().ir.expr(base), Expr::Call(_));
        // If other code works on the tensor first and the target is only a named device, the code may belong to a set-up.
        if !at_once && !self.on_every_call(target) {
            return;
        }
        let value = self.assigned_before(base).unwrap_or(base);
        let every_call = self.on_every_call(target);
        if counted
            || self.comes_from(value, made)
            || at_once && self.copies_array(base)
            || every_call && self.is_put_together(value)
        {
            self.tell_where(target, e, Kind::CreatedThenMoved { counted });
        }
    }

    /// Does the code run once, so that the cost of the copy does not matter: in the set-up of a file or an object, or in a test?
    pub(crate) fn happens_once(&self) -> bool {
        let here = self.linked().ir.function(self.here().func);
        if self.here().loops.is_empty() && joins_others(&self.linked().ir, here) {
            return true;
        }
        let (mut looped, mut trains, mut set_up) = (false, false, false);
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            let ir = &self.program.get(frame.module).ir;
            let function = ir.function(frame.func);
            let around = looped || !frame.loops.is_empty();
            trains |= around && calls_backward(ir, function);
            set_up |= self.sets_up(function.name, frame.module, frame.func);
            // The loops of a constructor build the parts of the object, unless the constructor also does the training.
            looped = match function.name.as_str() {
                "__init__" => looped || trains,
                _ => around,
            };
            at = frame.caller;
        }
        let name = here.name;
        !looped && (set_up || self.here().func.0 == 0 || name.as_str().starts_with("test"))
    }

    /// Does the function run once for each object or test?
    pub(crate) fn sets_up(&self, name: Sym, module: ModIdx, func: FuncId) -> bool {
        SETS_UP.has(name.as_str()) || self.relevance.set_up.contains(module, func)
    }

    /// Reports a variable that moves to the device and back, if no other code uses it on the device.
    pub(crate) fn check_returned(&mut self, t: Tensor, e: ExprId, base: ExprId) {
        let Some(value) = self.assigned_before(base) else { return };
        let went = self.place(value);
        let there: Vec<u32> = self
            .device_leaves(t.device)
            .into_iter()
            .filter(|&(_, d, origin)| {
                let chain = self.chain(origin);
                d != Device::Cpu
                    && chain.first().is_some_and(|s| s.reason == Reason::Moved && s.place == went)
            })
            .map(|(leaf, ..)| leaf)
            .collect();
        let ir = &self.linked().ir;
        let Expr::Call(c) = ir.expr(value) else { return };
        let Expr::Attr { base: from, .. } = ir.expr(ir.call(c).func) else { return };
        let function = ir.function(self.here().func).span;
        let whole = self.here().func.0 == 0;
        let var = ir.expr(base);
        let used =
            ir.exprs.iter().zip(&ir.expr_spans).any(|(x, &at)| {
                *x == var && (whole || function.contains(at)) && at.start > ir.span(base).start
            });
        // The numbers of a batch, or of a tensor that was made here, are on the host already.
        self.run.muted += 1;
        let source = self.eval(from);
        self.run.muted -= 1;
        let on_host = match source {
            Value::Tensor(s) => self.only_host(self.get_tensor(s).device),
            _ => false,
        };
        let renamed = ir.expr(from) == var;
        if used || there.is_empty() || !on_host && !renamed {
            return;
        }
        let here = self.d.where_leaf(t.device, &mut |p| there.contains(&p));
        let available = self.available(None);
        let bad = self.d.and(here, available);
        if let Some(bite) = self.bite(bad, false) {
            let back = self.place(e);
            self.emit(Kind::ThereAndBack { back }, went, bite, Vec::new());
        }
    }

    /// Reports `x.cpu().to(device)` where `x` is on the device already.
    pub(crate) fn check_round_trip(&mut self, target: Dd, e: ExprId, base: ExprId) {
        let ir = &self.linked().ir;
        let Expr::Call(c) = ir.expr(base) else { return };
        let Expr::Attr { base: from, name } = ir.expr(ir.call(c).func) else { return };
        if name.as_str() != "cpu" || !ir.call(c).args.is_empty() {
            return;
        }
        self.run.muted += 1;
        let source = self.eval(from);
        self.run.muted -= 1;
        let Value::Tensor(s) = source else { return };
        let s = self.get_tensor(s);
        if !s.certain {
            return;
        }
        let places = &self.t.places;
        let back = self.d.zip(s.device, target, &mut |x, y| {
            let (x, y) = (places.get(x).0, places.get(y).0);
            u32::from(x == y && matches!(x, Device::Cuda(_)))
        });
        let available = self.available(None);
        let Some(bad) = back.map(|back| self.d.and(back, available)) else { return };
        if let Some(bite) = self.bite(bad, false) {
            let (went, back) = (self.place(base), self.place(e));
            self.emit(Kind::ThereAndBack { back }, went, bite, Vec::new());
        }
    }

    /// Does the code run in a loop, or move the tensor to CUDA or to the device of another tensor?
    fn on_every_call(&self, target: Dd) -> bool {
        !self.here().loops.is_empty()
            || self
                .device_leaves(target)
                .iter()
                .any(|(_, d, _)| matches!(d, Device::Of(_) | Device::Cuda(_) | Device::CudaSome))
    }
}
