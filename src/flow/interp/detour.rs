//! Tensors that go through NumPy and come back: `torch.from_numpy(x.cpu().numpy()).to(x.device)`.
//!
//! An array that only holds what a tensor held on its device remembers that. A tensor that is made of it again, and whatever is
//! made of that on the host, need never have left, if it is sent back there.

use super::super::diagram::Dd;
use super::super::event::Kind;
use super::super::value::{Device, Host, OriginId, Reason, Tensor, Value};
use super::Interp;
use super::args::Args;
use crate::ir::{Arg, ArgKind, Expr, ExprId, FuncId, Module, Slot, Stmt, Var};
use crate::link::{ModIdx, Resolved};
use crate::sym::Sym;

/// Methods of tensors that give the same numbers, perhaps of another type or shape.
const SAME: &[&str] = &[
    "clone",
    "contiguous",
    "detach",
    "double",
    "flatten",
    "float",
    "int",
    "long",
    "reshape",
    "squeeze",
    "unsqueeze",
    "view",
];
/// Methods of arrays that do.
const SAME_ARRAY: &[&str] = &["astype", "copy", "flatten", "ravel", "reshape", "squeeze", "transpose"];
/// Methods of arrays that change them.
const CHANGING: &[&str] = &["sort", "fill", "put", "resize", "partition", "itemset", "setfield", "byteswap"];
/// NumPy's functions that change what they are given.
const CHANGERS: &[&str] = &[
    "numpy.copyto",
    "numpy.fill_diagonal",
    "numpy.place",
    "numpy.put",
    "numpy.put_along_axis",
    "numpy.putmask",
    "numpy.random.shuffle",
];
/// What makes tensors of arrays.
const MAKERS: &[&str] = &["torch.from_numpy", "torch.as_tensor", "torch.asarray", "torch.tensor"];

/// How many functions deep it is looked what becomes of an array.
const MAX_HANDED: u32 = 3;

impl Interp<'_> {
    /// A tensor is moved to the host: remembers from where.
    pub(super) fn leaves_device(&mut self, t: Tensor, there: Dd) {
        let (Some(from), Some(to)) = (self.d.as_leaf(t.device), self.d.as_leaf(there)) else { return };
        let (from, (to, origin)) = (self.t.places.get(from).0, *self.t.places.get(to));
        if to == Device::Cpu && self.may_be_there(from) {
            // A helper moves for several callers.
            let known = self.watch.left.entry(origin).or_insert(from);
            if *known != from {
                *known = Device::Unknown;
            }
        }
    }

    /// Is it a place that is no other one for certain, and not the host?
    fn may_be_there(&self, d: Device) -> bool {
        match d {
            Device::Cuda(_) | Device::Other(_) | Device::Of(_) => true,
            Device::Named(o) => self.t.get_outer(o).device,
            _ => false,
        }
    }

    /// What `.numpy()` of a tensor gives that was just moved to the host: an array that remembers it, unless the function changes
    /// it in place.
    pub(super) fn array_that_left(&self, t: Tensor, e: ExprId, base: ExprId) -> Option<Value> {
        let origin = self.t.places.get(self.d.as_leaf(t.device)?).1;
        if !self.watch.left.contains_key(&origin) || !self.is_moved_by(base, origin) {
            return None;
        }
        let ir = &self.linked().ir;
        let assigned = ir.stmts[ir.stmts_of(ir.function(self.here().func))].iter().find_map(|s| match *s {
            Stmt::Assign { targets, value } if same_numbers(ir, value) == e => Some(ir.list(targets)),
            _ => None,
        });
        let kept = assigned.is_none_or(|targets| match *targets {
            [t] => self.is_left_alone(t),
            _ => false,
        });
        kept.then_some(Value::Host(Host::Left(origin)))
    }

    /// `x.cpu()`, with nothing but other shapes and types after it.
    fn is_moved_by(&self, mut e: ExprId, origin: OriginId) -> bool {
        let ir = &self.linked().ir;
        let moved = self.t.origins.get(origin.0).place;
        loop {
            if self.place(e) == moved {
                return true;
            }
            let Expr::Call(call) = ir.expr(e) else { return false };
            match ir.expr(ir.call(call).func) {
                Expr::Attr { base, name } if SAME.contains(&name.as_str()) => e = base,
                _ => return false,
            }
        }
    }

    /// Does nothing in the function change the array that a variable holds, or hand it to somebody who may?
    fn is_left_alone(&self, var: ExprId) -> bool {
        let here = self.here();
        match self.linked().ir.expr(var) {
            Expr::Var(Var::Local(slot)) => self.leaves_alone(here.module, here.func, slot, MAX_HANDED),
            _ => false,
        }
    }

    /// The same of any function, and of those of the project that it hands the array to.
    fn leaves_alone(&self, module: ModIdx, func: FuncId, slot: Slot, depth: u32) -> bool {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        let it = |e: ExprId| ir.expr(same_numbers(ir, e)) == Expr::Var(Var::Local(slot));
        let changes = |s: &Stmt| match *s {
            Stmt::Assign { targets, .. } => {
                ir.list(targets).iter().any(|&t| matches!(ir.expr(t), Expr::Index { base, .. } if it(base)))
            }
            Stmt::AugAssign { target, .. } => it(target),
            _ => false,
        };
        let may_change = |n: usize| {
            let Expr::Call(call) = ir.exprs[n] else { return false };
            let call = ir.call(call);
            let changed = matches!(ir.expr(call.func), Expr::Attr { base, name } if CHANGING.contains(&name.as_str()) && it(base));
            let handed =
                |(i, a): (usize, &Arg)| it(a.value) && !self.only_looks(module, call.func, i, a.kind, depth);
            changed || call.args.iter().enumerate().any(handed)
        };
        !ir.stmts[ir.stmts_of(function)].iter().any(changes) && !ir.exprs_of(function).any(may_change)
    }

    /// Does a function change no array that it is given as this argument, as far as is known?
    fn only_looks(&self, module: ModIdx, func: ExprId, index: usize, kind: ArgKind, depth: u32) -> bool {
        match self.program.resolve_expr(module, func) {
            Some(Resolved::Function(m, f)) => {
                let params = &self.program.get(m).ir.function(f).params;
                let param = match kind {
                    ArgKind::Positional => params.get(index),
                    ArgKind::Keyword(name) => params.iter().find(|p| p.name == name),
                    _ => None,
                };
                depth > 0 && param.is_some_and(|p| self.leaves_alone(m, f, p.slot, depth - 1))
            }
            Some(Resolved::External(path)) => {
                let text = path.as_str();
                let known = ["torch.", "numpy.", "builtins."].iter().any(|p| text.starts_with(p));
                known && !CHANGERS.contains(&text)
            }
            _ => false,
        }
    }

    /// The same array in another shape or type.
    pub(super) fn same_array(receiver: Value, name: Sym) -> Option<Value> {
        let same = matches!(receiver, Value::Host(Host::Left(_))) && SAME_ARRAY.contains(&name.as_str());
        same.then_some(receiver)
    }

    /// A tensor is made of an array that is what another tensor was on its device.
    pub(super) fn made_of_left(&mut self, name: &str, device: Dd, args: &Args, e: ExprId) -> Dd {
        let Some(&(Value::Host(Host::Left(left)), at)) = args.positional.first() else { return device };
        let here = self.d.as_leaf(device).map(|leaf| self.t.places.get(leaf).0);
        if !MAKERS.contains(&name) || here != Some(Device::Cpu) {
            return device;
        }
        let ir = &self.linked().ir;
        let whole = same_numbers(ir, at);
        if matches!(ir.expr(whole), Expr::Var(_)) && !self.is_left_alone(whole) {
            return device;
        }
        let place = self.place(e);
        let origin = self.origin(place, Reason::Host, left);
        self.watch.came_back.insert(origin, left);
        self.at(Device::Cpu, origin)
    }

    /// Sent to the host, where it is: it has still come from the device.
    pub(super) fn stays_on_host(&mut self, t: Tensor, there: Dd, e: ExprId) -> Dd {
        let (Some(here), Some(to)) = (self.d.as_leaf(t.device), self.d.as_leaf(there)) else { return there };
        let ((from, origin), to) = (*self.t.places.get(here), self.t.places.get(to).0);
        if (from, to) != (Device::Cpu, Device::Cpu) || self.made_again(origin).is_none() {
            return there;
        }
        let place = self.place(e);
        let origin = self.origin(place, Reason::Moved, origin);
        self.at(Device::Cpu, origin)
    }

    /// Where an array was made a tensor again, and why that had left its device, if this is so because of that.
    fn made_again(&self, mut at: OriginId) -> Option<(OriginId, OriginId)> {
        while at != super::NO_ORIGIN {
            if let Some(&left) = self.watch.came_back.get(&at) {
                return Some((at, left));
            }
            at = self.t.origins.get(at.0).from;
        }
        None
    }

    /// What is made of such a tensor is sent to where that was.
    pub(super) fn check_detour(&mut self, t: Tensor, target: Dd, e: ExprId) {
        let (Some(here), Some(to)) = (self.d.as_leaf(t.device), self.d.as_leaf(target)) else { return };
        let Some((again, left)) = self.made_again(self.t.places.get(here).1) else { return };
        let to = self.t.places.get(to).0;
        if to == Device::Unknown || self.watch.left.get(&left) != Some(&to) {
            return;
        }
        let (made, went) = (self.t.origins.get(again.0).place, self.t.origins.get(left.0).place);
        let ir = &self.linked().ir;
        let here = ir.function(self.here().func).span;
        // What moves to the host in another function does so for whoever calls that.
        if went.file != ir.file || self.here().func.0 != 0 && !here.contains(went.span) {
            return;
        }
        let back = self.place(e);
        let there = self.available(None);
        if let Some(bite) = self.bite(there, false) {
            self.emit(Kind::ThroughArray { made, back }, went, bite, Vec::new());
        }
    }
}

/// The array that an expression only looks at in another way: `a` of `a.reshape(-1)[:3]`.
fn same_numbers(ir: &Module, mut e: ExprId) -> ExprId {
    loop {
        e = match ir.expr(e) {
            Expr::Index { base, .. } => base,
            Expr::Attr { base, name } if name.as_str() == "T" => base,
            Expr::Call(call) => match ir.expr(ir.call(call).func) {
                Expr::Attr { base, name } if SAME_ARRAY.contains(&name.as_str()) => base,
                _ => return e,
            },
            _ => return e,
        }
    }
}
