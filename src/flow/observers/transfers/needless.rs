//! Transfers that cost more than they are worth: a tensor that is made on the host and then moved, that moves again and
//! again, or that is on the device already, and copies that the program does not wait for.

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::Dd;
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, OuterKey, Reason, Tensor, Value};
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::{Interp, Pending};
use crate::ir::{ArgKind, Expr, ExprId, Var};
use crate::link::Resolved;
use crate::span::Place;
use crate::sym::Sym;
use crate::words::Words;

/// The size in bytes up to which a copy from pageable memory returns at once.
const STAGED: u64 = 64 << 10;
/// Functions that make tensors from Python numbers.
pub(crate) static LISTING: Words = Words::of("make tensors from numbers");

impl Interp<'_> {
    /// A tensor is moved by `.to()`, `.cuda()` or `.type_as()`.
    pub(crate) fn watch_transfer(&mut self, t: Tensor, target: Dd, args: &Args, e: ExprId, base: ExprId) {
        if self.run.muted > 0 {
            return;
        }
        if self.differs(t.device, target) {
            let place = self.place(e);
            self.observed.needed.insert(place);
        }
        if !t.certain {
            return;
        }
        if self.leaves_host(target) {
            let before = self.events.len();
            self.check_created(t, target, e, base);
            self.check_pageable(t, target, args, e);
            self.check_invariant(t, target, e, base);
            self.check_round_trip(target, e, base);
            self.events.iter_mut().skip(before).for_each(|pending| pending.event.bytes = t.bytes);
        }
        // With another argument, such as a dtype, the call is there for that argument.
        let only_device = matches!(args.values().count(), 0 | 1)
            || args.values().count() == 2 && args.keyword("non_blocking").is_some();
        let as_other = match self.linked().ir.expr(e) {
            Expr::Call(c) => {
                matches!(self.linked().ir.expr(self.linked().ir.call(c).func), Expr::Attr { name, .. } if name.as_str() == "type_as")
            }
            _ => false,
        };
        if only_device && !as_other && !self.follows_tensor(args) {
            self.check_already_there(t, target, e, base);
        }
        if self.only_host(target) && !nonblocking(args) && self.leaves_host(t.device) {
            // The copy waits for everything before it.
            self.observed.waits += 1;
            self.check_returned(t, e, base);
        }
    }

    /// May the device be a known one that is not among the wanted devices?
    fn differs(&self, device: Dd, wanted: Dd) -> bool {
        let wanted: Vec<Device> = self.device_leaves(wanted).iter().map(|l| l.1).collect();
        let other = |d: &Device| *d != Device::Unknown && !wanted.contains(d);
        !wanted.contains(&Device::Unknown) && self.device_leaves(device).iter().any(|(_, d, _)| other(d))
    }

    /// `.to(other)`, which also converts to the dtype of the other tensor.
    fn follows_tensor(&self, args: &Args) -> bool {
        match args.get(0, "other") {
            Some((Value::Tensor(_), _)) => true,
            Some((Value::Outer(o), _)) => !self.t.get_outer(o).device,
            _ => false,
        }
    }

    /// May the device be another one than the CPU?
    pub(crate) fn leaves_host(&self, d: Dd) -> bool {
        self.device_leaves(d).iter().any(|(_, d, _)| match d {
            Device::Cuda(_) | Device::CudaSome | Device::Other(_) | Device::Of(_) => true,
            Device::Named(o) => self.t.get_outer(*o).device,
            _ => false,
        })
    }

    pub(crate) fn only_host(&self, d: Dd) -> bool {
        self.device_leaves(d).iter().all(|(_, d, _)| *d == Device::Cpu)
    }

    /// The reason and place of the newest origin of a host tensor. `None` if the tensor may be on another device.
    pub(crate) fn host_reason(&self, t: Tensor) -> Option<(Reason, Place)> {
        let mut found = None;
        for (_, d, origin) in self.device_leaves(t.device) {
            let step = self.chain(origin).first().map(|s| (s.reason, s.place));
            if d != Device::Cpu || found.is_some() && found != step {
                return None;
            }
            found = step;
        }
        found
    }

    /// Reports `non_blocking=True` for a tensor whose memory is not pinned.
    fn check_pageable(&mut self, t: Tensor, target: Dd, args: &Args, e: ExprId) {
        let Some((reason @ (Reason::Batch | Reason::Host | Reason::Typed | Reason::Default), made)) =
            self.host_reason(t)
        else {
            return;
        };
        // For so few bytes, the driver takes a copy and returns at once.
        // One number for each item of a batch, such as its labels, is small, too.
        let counted = matches!(reason, Reason::Default | Reason::Batch);
        let few = || counted && t.dims.known().is_some_and(|n| n < 2) || self.is_listed(made);
        if t.bytes.map_or_else(few, |bytes| bytes <= STAGED) {
            return;
        }
        let ir = &self.linked().ir;
        let function = ir.function(self.here().func).span;
        // Code that tests `is_pinned` handles both cases on purpose.
        let asks = ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
            function.contains(at) && matches!(e, Expr::Attr { name, .. } if name.as_str() == "is_pinned")
        });
        if nonblocking(args) && !asks {
            self.tell_where(target, e, Kind::Pageable { made });
        }
    }

    /// Is the tensor so small that its move does not fill the device's memory? Such a move often only tests the device.
    pub(crate) fn is_small(&self, t: Tensor) -> bool {
        match t.bytes {
            Some(bytes) => bytes <= crate::flow::models::tensors::sizes::SMALL,
            None => self.host_reason(t).is_some_and(|(_, made)| self.is_listed(made)),
        }
    }

    /// `torch.tensor(ids)`: made from Python numbers, one by one. Such tensors are small, because that takes longer than the copy.
    fn is_listed(&self, made: Place) -> bool {
        let Some(module) = self.program.module_of(made.file) else { return false };
        let ir = &self.program.get(module).ir;
        let lists = |call: crate::ir::Call<'_>| {
            let path = self.program.resolve_expr(module, call.func);
            let listing = matches!(path, Some(Resolved::External(path)) if LISTING.has(crate::torch::canonical(path).as_str()));
            let several = call.args.iter().filter(|a| a.kind == ArgKind::Positional).count() > 1;
            listing
                && !several
                && call.args.first().is_some_and(|a| !matches!(ir.expr(a.value), Expr::Call(_)))
        };
        ir.exprs
            .iter()
            .zip(&ir.expr_spans)
            .any(|(e, &at)| at == made.span && matches!(*e, Expr::Call(call) if lists(ir.call(call))))
    }

    /// The cell of a variable or attribute. `None` for other expressions.
    pub(crate) fn cell_of(&mut self, e: ExprId) -> Option<crate::flow::domain::store::Cell> {
        match self.linked().ir.expr(e) {
            Expr::Var(Var::Local(slot)) => {
                Some(crate::flow::domain::store::Cell(self.here().base.0 + u32::from(slot)))
            }
            Expr::Var(Var::Enclosing { depth, slot }) => self.enclosing(depth, slot),
            Expr::Var(Var::Global(slot)) => Some(self.global_cell(self.here().module, slot)),
            Expr::Attr { base, name } => {
                self.run.muted += 1;
                let b = self.eval(base);
                self.run.muted -= 1;
                let Value::Object(id) = b else { return None };
                self.obj(id).attrs.iter().find(|(n, _)| *n == name).map(|&(_, cell)| cell)
            }
            _ => None,
        }
    }

    /// Does a decorator such as `lru_cache` on a function of the call stack store the result?
    pub(crate) fn is_cached(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            let ir = &self.program.get(frame.module).ir;
            let cached = |name: Sym| name.as_str().contains("cache");
            let found = ir.list(ir.function(frame.func).decorators).iter().any(|&d| {
                let target = match ir.expr(d) {
                    Expr::Call(c) => ir.call(c).func,
                    _ => d,
                };
                match ir.expr(target) {
                    Expr::Attr { name, .. } => cached(name),
                    Expr::Var(_) => match self.program.resolve_expr(frame.module, target) {
                        Some(Resolved::External(path)) => cached(path),
                        Some(Resolved::Function(m, f)) => cached(self.program.get(m).ir.function(f).name),
                        _ => false,
                    },
                    _ => false,
                }
            });
            if found {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// The tensor may already be on the target device. A move that another round or call needs is no finding.
    fn check_already_there(&mut self, t: Tensor, target: Dd, e: ExprId, base: ExprId) {
        let place = self.place(e);
        let known: Vec<Device> = self.device_leaves(target).iter().map(|l| l.1).collect();
        let places = &self.t.places;
        let same = self.d.zip(t.device, target, &mut |x, y| u32::from(places.get(x).0 == places.get(y).0));
        let there = same == Some(crate::flow::domain::diagram::TRUE)
            && known.iter().any(|d| !matches!(d, Device::Cpu))
            && !known.iter().any(|d| matches!(d, Device::Of(o) if matches!(self.t.get_outer(*o).key, OuterKey::Receiver { .. })))
            && !known.iter().any(|d| matches!(d, Device::Unknown | Device::CudaSome | Device::Meta));
        // A module may be spread over several GPUs, so a tensor on the device of a module need not be where another one is.
        let symbols = known.iter().all(|d| match d {
            Device::Named(_) => true,
            Device::Of(o) => {
                let outer = self.t.get_outer(*o);
                outer.with.is_none() && !matches!(outer.key, OuterKey::Receiver { .. })
            }
            _ => false,
        });
        let local = self.is_own_result(base);
        // All elements of a list have the same name here, but may be on different devices.
        let any_of_them =
            known.iter().any(|d| matches!(*d, Device::Of(o) | Device::Named(o) if self.is_one_of(o)));
        // The parts of a large module may be on several GPUs, and its methods move tensors between them on purpose.
        let spread = self.in_module() && known.iter().any(|d| matches!(d, Device::Of(_) | Device::Named(_)));
        // With `if x.device != device:` around it, the move happens only where it is needed.
        let mut decisive = Vec::new();
        self.d.support(self.path, &mut decisive);
        let asked = decisive.iter().any(|a| {
            self.tests.places_asked.contains(a) && matches!(self.atoms.get(*a), Atom::Opaque { .. })
        });
        if !there
            || spread
            || asked
            || any_of_them
            || !local
            || !(symbols || t.device == target || !self.made_elsewhere(t))
        {
            self.observed.needless.insert(place, None);
            return;
        }
        if self.observed.needless.contains_key(&place) {
            return;
        }
        let available = self.available(None);
        if let Some(bite) = self.bite(available, false) {
            self.emit(Kind::AlreadyThere, place, bite, Vec::new());
            let event = self.events.pop();
            self.observed.needless.insert(place, event);
        }
    }

    /// Is it an unspecified element of a container, or a part of one?
    pub(crate) fn is_one_of(&self, mut o: crate::flow::domain::value::OuterId) -> bool {
        loop {
            match self.t.get_outer(o).key {
                OuterKey::Item { key: None, .. } => return true,
                OuterKey::Item { base, .. } | OuterKey::Attr { base, .. } => o = base,
                _ => return false,
            }
        }
    }

    /// Marks the move as needed: on another path, the tensor may be on another device.
    pub(crate) fn is_needed(&mut self, e: ExprId) {
        let place = self.place(e);
        self.observed.needless.insert(place, None);
    }

    /// Is it a call, or a local variable that is not a parameter?
    fn is_own_result(&self, base: ExprId) -> bool {
        let ir = &self.linked().ir;
        match ir.expr(base) {
            Expr::Call(_) => true,
            Expr::Var(Var::Local(slot)) => {
                !ir.function(self.here().func).params.iter().any(|p| p.slot == slot)
            }
            _ => false,
        }
    }

    /// Does the tensor or its device come from another function? Then other callers may need the move.
    fn made_elsewhere(&self, t: Tensor) -> bool {
        let ir = &self.linked().ir;
        let function = ir.function(self.here().func).span;
        let whole = self.here().func.0 == 0;
        self.device_leaves(t.device).into_iter().any(|(_, _, origin)| {
            self.chain(origin).first().is_none_or(|s| {
                s.place.file != ir.file
                    || !whole && !function.contains(s.place.span)
                    || s.reason == Reason::Given
            })
        })
    }

    /// An entry point has ended. Emits the moves that were never needed.
    pub(crate) fn end_transfers(&mut self) {
        let mut found: Vec<Pending> =
            std::mem::take(&mut self.observed.needless).into_values().flatten().collect();
        found.sort_by_key(|p| (p.event.place.file, p.event.place.span.start));
        self.events.extend(found);
    }
}

/// Is `non_blocking=True` given?
pub(crate) fn nonblocking(args: &Args) -> bool {
    args.keyword("non_blocking").is_some_and(|(v, _)| v == Value::Bool(crate::flow::domain::diagram::TRUE))
}
