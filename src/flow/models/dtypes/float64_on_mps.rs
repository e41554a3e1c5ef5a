//! Tensors of 64-bit floating-point numbers that move to a device that may be MPS.

use crate::finding::Code;
use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{Cond, Dd, FALSE, TRUE};
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, OuterId, Value};
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::{Interp, Test};
use crate::flow::models::dtypes::float64::Doubles;
use crate::ir::{Expr, ExprId};
use crate::world::Backend;

impl Interp<'_> {
    /// 64-bit numbers reach a device. Returns the condition that they are there, which is false after a report.
    pub(crate) fn doubles_go(&mut self, device: Dd, double: Cond, e: ExprId) -> Cond {
        if double == FALSE
            || self.run.muted > 0
            || self.run.exhausted
            || self.caught_around()
            || self.is_read_at_once(e)
        {
            return double;
        }
        // The check assumes that the device is MPS, for each device that it may be. That needs no guess.
        let before = self.path;
        let (mut bad, mut first) = (FALSE, None);
        for (leaf, d, _) in self.device_leaves(device) {
            let Some(on) = self.may_be_mps(d) else { continue };
            let here = self.d.where_leaf(device, &mut |p| p == leaf);
            let elsewhere = self.d.not(here);
            let fine = self.d.or(elsewhere, on);
            self.path = self.d.and(self.path, fine);
            bad = self.d.or(bad, here);
            first = first.or(Some(d));
        }
        let there = self.available(Some(Backend::Mps));
        let both = self.d.and(bad, double);
        let bad = self.d.and(both, there);
        self.path = self.chosen(double);
        let bite = self.bite(bad, false);
        let raises = self.d.and(self.path, bad);
        self.path = before;
        self.doubles_on_gpu(device, double, e);
        let (Some(bite), Some(d)) = (bite, first) else { return double };
        let place = self.place(e);
        let needs = self.needs_proof(d).into_iter().collect();
        // An earlier failure in the same function ends the path before this one.
        let func = (self.here().module, self.here().func);
        let before = |told: &&Doubles| told.on == d && told.func == func && told.place != place;
        let earlier = self.tensors.doubles.iter().filter(before);
        let earlier: Vec<Doubles> = earlier.copied().collect();
        if let Some(told) = earlier.into_iter().find(|told| self.d.implies(raises, told.raises)) {
            self.emit(Kind::Shadowed { first: told.place, origin: None }, place, bite, needs);
            return FALSE;
        }
        if !self.is_silenced(&[Code(701)], place, None) {
            self.tensors.doubles.push(Doubles { on: d, raises, place, func });
        }
        let on = self.name_of_device(d);
        self.emit(Kind::DoubleOnMps { on }, place, bite, needs);
        if let (Device::Named(o) | Device::Of(o), Some(pending)) = (d, self.events.last_mut()) {
            pending.about.push(o);
        }
        FALSE
    }

    /// `x.double().numpy()`: the author assumes that the tensor is on the CPU.
    fn is_read_at_once(&self, e: ExprId) -> bool {
        self.linked()
            .ir
            .exprs
            .iter()
            .any(|x| matches!(*x, Expr::Attr { base, name } if base == e && name.as_str() == "numpy"))
    }

    /// The present path, restricted to `double` if that depends only on what the user chooses.
    fn chosen(&mut self, double: Cond) -> Cond {
        let mut atoms = Vec::new();
        self.d.support(double, &mut atoms);
        // A test of a dtype may also be a test of the device, on which there are no 64-bit tensors.
        let all = atoms.iter().all(|&a| match self.atoms.get(a) {
            Atom::Flag { text, .. } => !text.contains("dtype"),
            Atom::On { .. } => true,
            _ => a.is_hardware(),
        });
        if all { self.d.and(self.path, double) } else { self.path }
    }

    /// The condition that the device is MPS: by its name, or because the caller decides it and the program supports MPS.
    fn may_be_mps(&mut self, d: Device) -> Option<Cond> {
        let given = match d {
            Device::Other(Backend::Mps) => return Some(TRUE),
            Device::Named(o) if self.t.get_outer(o).device => o,
            Device::Of(o) if self.comes_from_outside(o) => o,
            _ => return None,
        };
        self.program.mentions_mps(self.entry).then(|| self.given_on_mps(given))
    }

    /// Does the caller decide its device, or is it on the device of a module?
    fn comes_from_outside(&self, o: OuterId) -> bool {
        let outer = self.t.get_outer(o);
        outer.varies
            || outer.with.is_some()
            || matches!(outer.key, crate::flow::domain::value::OuterKey::Receiver { .. })
            || self.tensors.near.contains_key(&o)
    }

    /// `attention.to_q(x)`: the result of an outside layer is on the device of the outside tensor `x`.
    pub(crate) fn lives_near(&mut self, layer: OuterId, args: &Args, result: Value) {
        let Value::Outer(result) = result else { return };
        let given = args.positional.first().and_then(|&(v, _)| match v {
            Value::Outer(o) => Some(o),
            Value::Tensor(t) => match self.device_leaves(self.get_tensor(t).device).as_slice() {
                &[(_, Device::Of(o), _)] => Some(o),
                _ => None,
            },
            _ => None,
        });
        if let Some(given) =
            given.filter(|&o| o != result && self.comes_from_outside(layer) && self.comes_from_outside(o))
        {
            self.tensors.near.insert(result, given);
        }
    }

    /// The condition that an outside value is on MPS, and so on no other device that the program has tested for.
    fn given_on_mps(&mut self, o: OuterId) -> Cond {
        let mut on = self.outer_is_on(o, "mps");
        for atom in self.asked_whether_on(o, "mps") {
            let asked = self.d.atom(atom);
            on = self.d.and(on, asked);
        }
        for (test, there) in
            [(Test::Compare(0, Value::Outer(o), Value::None), false), (Test::Truth(Value::Outer(o)), true)]
        {
            if let Some(&atom) = self.tests.atoms.get(&test) {
                let given = self.d.atom(atom);
                let given = if there { given } else { self.d.not(given) };
                on = self.d.and(on, given);
            }
        }
        if let Some(&near) = self.tensors.near.get(&o) {
            let near = self.given_on_mps(near);
            on = self.d.and(on, near);
        }
        for device in ["cuda", "cpu", "meta", "xpu", "npu", "hpu", "xla", "mlu", "musa"] {
            for atom in self.asked_whether_on(o, device) {
                let other = self.d.atom(atom);
                let not = self.d.not(other);
                on = self.d.and(on, not);
            }
        }
        on
    }
}

pub(crate) fn names_double(dtype: Value) -> bool {
    matches!(dtype, Value::External(path) if matches!(path.as_str(), "torch.float64" | "torch.double" | "builtins.float"))
}
