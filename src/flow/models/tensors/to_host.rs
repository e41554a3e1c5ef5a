//! Conversions of tensors to NumPy arrays, which need the CPU.

use crate::flow::domain::diagram::{Dd, FALSE, TRUE};
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, OuterId, OuterKey, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{Expr, ExprId};
use crate::sym::Sym;

impl Interp<'_> {
    /// `.numpy()` of a tensor.
    pub(crate) fn numpy_method(
        &mut self,
        t: Tensor,
        name: Sym,
        args: &Args,
        e: ExprId,
        base: ExprId,
    ) -> Value {
        let forced = args.get(0, "force").is_some_and(|(v, _)| v != Value::Bool(FALSE));
        self.check_read(t, e);
        if !forced {
            self.check_host(t.device, base, e, &format!("`.{name}()`"));
        }
        if t.double == TRUE {
            return Self::DOUBLES;
        }
        Self::ARRAY
    }

    /// A conversion to a NumPy array. Reports a tensor that is not on the CPU.
    pub(crate) fn check_host(&mut self, device: Dd, operand: ExprId, at: ExprId, what: &str) {
        let (mut found, mut bad) = (None, FALSE);
        let mut leaves = Vec::new();
        self.d.leaves(device, &mut leaves);
        for leaf in leaves {
            let (d, origin) = *self.t.places.get(leaf);
            if self.check_own_to_host(device, leaf, operand, at, what) {
                return;
            }
            if let (Device::Of(o) | Device::Named(o), 0) = (d, self.run.muted) {
                // After this, the tensor is on the CPU: on another device, the conversion raises.
                self.taken_to_host(d);
                let on_cpu = self.outer_is_on(o, "cpu");
                let elsewhere = self.d.where_leaf(device, &mut |p| p != leaf);
                let fine = self.d.or(on_cpu, elsewhere);
                self.path = self.d.and(self.path, fine);
            }
            if d == Device::Unknown && self.run.muted == 0 {
                self.refused_to_host(origin);
            }
            if matches!(d, Device::Cuda(_) | Device::CudaSome | Device::Other(_)) {
                let here = self.d.where_leaf(device, &mut |p| p == leaf);
                let there = self.accelerator_condition(d, Device::Cpu);
                let here = self.d.and(here, there);
                bad = self.d.or(bad, here);
                found = Some((d, origin, here));
            }
        }
        let Some((d, origin, here)) = found else { return };
        let Some(bite) = self.bite(here, false).filter(|_| !self.for_no_tensors()) else { return };
        // The message names one GPU, but a tensor on any GPU raises.
        let bite = self.bite(bad, false).unwrap_or(bite);
        let tensor = Box::new(self.operand(operand, d, origin));
        let place = self.place(at);
        self.emit(Kind::ToHost { what: what.to_owned(), tensor }, place, bite, Vec::new());
        self.after_failure(bad);
    }

    /// Is it the module whose `forward` is being interpreted?
    pub(crate) fn is_own(&self, o: OuterId) -> bool {
        let here = self.here();
        let forward = self.program.get(here.module).ir.function(here.func).name == self.known.forward;
        matches!(self.t.get_outer(o).key, OuterKey::Receiver { .. }) && forward && self.in_module()
    }

    /// In `forward`, a tensor that is made with the module's own parameters is on the module's device: with CUDA, not on the host. A
    /// detached tensor was also made with parameters, so it is on the device of its model.
    fn check_own_to_host(&mut self, device: Dd, leaf: u32, operand: ExprId, at: ExprId, what: &str) -> bool {
        let (d, origin) = *self.t.places.get(leaf);
        let Device::Of(o) = d else { return false };
        let own = self.is_own(o);
        if self.run.muted > 0 || self.for_no_tensors() {
            return false;
        }
        if !own && !self.is_of_graph(o, operand, at) {
            return false;
        }
        let here = self.d.where_leaf(device, &mut |p| p == leaf);
        let there = self.available(None);
        let bad = self.d.and(here, there);
        let before = self.path;
        if !own {
            // What the program knows about its device holds. That it is a tensor needs no guess.
            for holds in [self.if_on_cuda(o), self.may_be_a_tensor(o)] {
                self.path = self.d.and(self.path, holds);
            }
        }
        let bite = self.bite(bad, false);
        self.path = before;
        let Some(bite) = bite else { return false };
        let tensor = Box::new(self.operand(operand, d, origin));
        let place = self.place(at);
        let needs = self.needs_proof(d).filter(|&o| !self.is_gradient(o));
        self.emit(Kind::ToHost { what: what.to_owned(), tensor }, place, bite, needs.into_iter().collect());
        if !own && let Some(pending) = self.events.last_mut() {
            pending.about = vec![o];
        }
        true
    }

    /// Does the caller or the module of this `forward` decide its device, and does the function show that it may be any device? Code
    /// does not call `detach()` on a tensor from a data set (`scores.detach().numpy()`). Code that makes tensors on the device of
    /// an argument expects that argument on any device, too.
    fn is_of_graph(&self, o: OuterId, operand: ExprId, at: ExprId) -> bool {
        let (ir, outer) = (&self.linked().ir, self.t.get_outer(o));
        let given = outer.varies && self.is_argument(o);
        // NumPy's functions also accept arrays, but `.numpy()` is a method of tensors.
        let method = |call| matches!(ir.expr(ir.call(call).func), Expr::Attr { base, .. } if base == operand);
        let of_tensor = matches!(ir.expr(at), Expr::Call(call) if method(call));
        let followed = || of_tensor && given && outer.with.is_none() && self.marks_a_device(o);
        (given || outer.with.is_some()) && !self.is_tried() && (self.is_cut_from_graph(operand) || followed())
    }

    /// Is the code in a `try`, here or at a caller? There, an error may be the answer to a test.
    fn is_tried(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if !frame.tries.is_empty() {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// Is it an argument, or an element of one? For an attribute of an argument, another attribute may have been tested.
    fn is_argument(&self, o: OuterId) -> bool {
        match self.t.get_outer(o).key {
            OuterKey::Param { .. } => true,
            OuterKey::Item { base, .. } => self.is_argument(base),
            _ => false,
        }
    }

    /// Has the function put something on its device, or on the device of the collection that contains it?
    fn marks_a_device(&self, o: OuterId) -> bool {
        self.any_followed(&[o])
            || matches!(self.t.get_outer(o).key, OuterKey::Item { base, .. } if self.marks_a_device(base))
    }

    /// Is it `x.detach()`, or a view of that: `x.detach()[0].squeeze()`?
    fn is_cut_from_graph(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        match ir.expr(e) {
            Expr::Call(call) => match ir.expr(ir.call(call).func) {
                Expr::Attr { base, name } => name.as_str() == "detach" || self.is_cut_from_graph(base),
                _ => false,
            },
            Expr::Attr { base, name } => name.as_str() == "data" || self.is_cut_from_graph(base),
            Expr::Index { base, .. } => self.is_cut_from_graph(base),
            _ => false,
        }
    }
}
