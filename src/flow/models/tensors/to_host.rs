//! Tensors that are turned into NumPy arrays, which must be on the CPU.

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

    /// A tensor is turned into a NumPy array: it must be on the CPU.
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
                // It would have raised elsewhere.
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
        // One GPU or another: it is as wrong on each.
        let bite = self.bite(bad, false).unwrap_or(bite);
        let tensor = Box::new(self.operand(operand, d, origin));
        let place = self.place(at);
        self.emit(Kind::ToHost { what: what.to_owned(), tensor }, place, bite, Vec::new());
    }

    /// Is it the module whose `forward` is interpreted?
    pub(crate) fn is_own(&self, o: OuterId) -> bool {
        let here = self.here();
        let forward = self.program.get(here.module).ir.function(here.func).name == self.known.forward;
        matches!(self.t.get_outer(o).key, OuterKey::Receiver { .. }) && forward && self.in_module()
    }

    /// In `forward`, what is made with a module's own parameters is where the module is: with CUDA, not on the host. What is
    /// cut out of a graph of gradients was made with parameters, too: it is where its model is, wherever that is.
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
            // What the program knows of where it is holds, and that it is a tensor is no coincidence.
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

    /// Is it where a caller wants it, or where the module is whose `forward` is interpreted, and has the function shown that this
    /// may be anywhere? Nobody detaches what comes from a data set (`scores.detach().numpy()`), and who makes tensors where an
    /// argument is has not got it on the host alone.
    fn is_of_graph(&self, o: OuterId, operand: ExprId, at: ExprId) -> bool {
        let (ir, outer) = (&self.linked().ir, self.t.get_outer(o));
        let given = outer.varies && self.is_argument(o);
        // NumPy's functions take arrays as well, its own method is a tensor's alone.
        let method = |call| matches!(ir.expr(ir.call(call).func), Expr::Attr { base, .. } if base == operand);
        let of_tensor = matches!(ir.expr(at), Expr::Call(call) if method(call));
        let followed = || of_tensor && given && outer.with.is_none() && self.marks_a_device(o);
        (given || outer.with.is_some()) && !self.is_tried() && (self.is_cut_from_graph(operand) || followed())
    }

    /// Is this in a `try`, here or where it was called? An error is an answer there.
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

    /// Is it an argument, or an element of one? What an argument has as a field may have been asked for in another one.
    fn is_argument(&self, o: OuterId) -> bool {
        match self.t.get_outer(o).key {
            OuterKey::Param { .. } => true,
            OuterKey::Item { base, .. } => self.is_argument(base),
            _ => false,
        }
    }

    /// Has something been put where it is, or where the whole is that it is an element of?
    fn marks_a_device(&self, o: OuterId) -> bool {
        self.any_followed(&[o])
            || matches!(self.t.get_outer(o).key, OuterKey::Item { base, .. } if self.marks_a_device(base))
    }

    /// `x.detach()`, and what is a view of it: `x.detach()[0].squeeze()`.
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
