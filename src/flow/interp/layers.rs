//! Layers that came from outside: `nn.ModuleList(layers)` of a parameter, `self.net = net`.
//!
//! Nothing is known of what they compute. But they live with the module that holds them, and what is computed from tensors
//! that are there, too, is there as well.

use super::super::diagram::Dd;
use super::super::value::{Device, ObjId, OuterId, Value};
use super::args::Args;
use super::outside_modules::ONLY_MODULES;
use super::{Cell, Interp, ObjKind};
use crate::ir::{Expr, ExprId};
use crate::sym::Sym;

impl Interp<'_> {
    /// The device of a module that is wherever its user wants it: one whose methods are interpreted for themselves.
    fn home(&self, module: ObjId) -> Option<Dd> {
        let Value::Device(d) = self.own(module) else { return None };
        let leaf = self.d.as_leaf(d)?;
        matches!(self.t.places.get(leaf).0, Device::Of(_)).then_some(d)
    }

    /// A layer out of a list of them: if nothing is known of it, a module that lives with the one that holds the list.
    pub(super) fn layer(&self, list: ObjId, item: Value) -> Option<Dd> {
        let kind = self.obj(list).kind;
        if !matches!(kind, ObjKind::List { module: true } | ObjKind::Dict { module: true })
            || !matches!(item, Value::Unknown | Value::Outer(_))
        {
            return None;
        }
        self.holder_here(list).and_then(|holder| self.home(holder))
    }

    /// The module among those whose methods are running that has this for an attribute.
    fn holder_here(&self, part: ObjId) -> Option<ObjId> {
        self.holder_of(Value::Object(part))
    }

    fn holder_of(&self, part: Value) -> Option<ObjId> {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if let Value::Object(id) = frame.receiver
                && self.obj(id).kind == ObjKind::Module
                && self.obj(id).attrs.iter().any(|&(_, cell)| self.store.get(cell) == part)
            {
                return Some(id);
            }
            at = frame.caller;
        }
        None
    }

    /// The same of a method of such an attribute: `self.prior.log_prob(x)`.
    pub(super) fn given_by_part(&mut self, part: OuterId, args: &Args, out: Value) -> Value {
        match self.holder_of(Value::Outer(part)) {
            Some(module) => self.given_by_layer(module, Value::Outer(part), args, out),
            None => out,
        }
    }

    /// What a module's attribute from outside gives, called with tensors that live with the module, and with nothing that
    /// is elsewhere: a tensor, if anything, that does so, too.
    pub(super) fn given_by_layer(&mut self, module: ObjId, layer: Value, args: &Args, out: Value) -> Value {
        if self.obj(module).kind != ObjKind::Module
            || !matches!((layer, out), (Value::Outer(_), Value::Outer(_)))
        {
            return out;
        }
        let Some(home) = self.home(module) else { return out };
        let mut any = false;
        for (v, at) in args.values() {
            match self.is_at(v, at, home) {
                Some(true) => any = true,
                Some(false) => return out,
                None => {}
            }
        }
        if any || self.is_kept_module(module, layer) { self.possible_tensor(home) } else { out }
    }

    /// Does the class that keeps it ask it for what only modules have: `self.net.parameters()`?
    fn is_kept_module(&self, holder: ObjId, part: Value) -> bool {
        let Some(key) = self.obj(holder).class else { return false };
        let kept = |&&(_, cell): &&(Sym, Cell)| self.store.get(cell) == part;
        let names: Vec<Sym> = self.obj(holder).attrs.iter().filter(kept).map(|&(name, _)| name).collect();
        self.program.class(key).mro.iter().any(|k| {
            let ir = &self.program.get(k.module).ir;
            let is_it = |e: ExprId| matches!(ir.expr(e), Expr::Attr { name, .. } if names.contains(&name));
            let asks = |e: &Expr| match *e {
                Expr::Attr { base, name } => is_it(base) && ONLY_MODULES.contains(&name.as_str()),
                _ => false,
            };
            names.iter().any(|&name| ir.has_attribute(name)) && ir.exprs.iter().any(asks)
        })
    }

    /// Does it live there? Not known of what may be no tensor.
    fn is_at(&mut self, v: Value, at: ExprId, home: Dd) -> Option<bool> {
        let device = |i: &Self, d: Dd| i.d.as_leaf(d).map(|p| i.t.places.get(p).0);
        let there = device(self, home);
        match v {
            Value::Tensor(_) | Value::Choice(_) => {
                let (d, _) = self.tensor_place(v, at)?;
                match device(self, d) {
                    Some(Device::Unknown) => None,
                    d => Some(d == there),
                }
            }
            Value::Outer(o) => match (self.t.get_outer(o).with, there) {
                (Some(with), Some(Device::Of(module))) => Some(with == module),
                _ => None,
            },
            _ => None,
        }
    }

    /// What a layer of an `nn.Sequential` gives of which nothing is known: it is where its input is.
    pub(super) fn given_by_unknown_layer(
        &mut self,
        layer: Value,
        (input, at): (Value, ExprId),
        out: Value,
    ) -> Value {
        let unknown = |v| matches!(v, Value::Outer(_) | Value::Unknown);
        if !unknown(layer) || !unknown(out) {
            return out;
        }
        match self.tensor_place(input, at) {
            Some((d, _)) => self.possible_tensor(d),
            None => out,
        }
    }
}
