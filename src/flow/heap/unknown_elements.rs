//! Unknown elements: two elements that are taken out of a container may differ.

use crate::flow::domain::atom::{Atom, AtomId};
use crate::flow::domain::diagram::{Cond, Dd};
use crate::flow::domain::value::{Tensor, Value};
use crate::flow::machine::Interp;

impl Interp<'_> {
    /// An element from a container whose elements are not kept separately. If the elements are on several devices, this
    /// element gets its own choice, independent of the next one.
    pub(crate) fn drawn_apart(&mut self, v: Value) -> Value {
        // Values in a side-by-side list are all present.
        if self.heap.side_by_side.contains_key(&v) {
            return v;
        }
        self.with_alternatives(v, &mut Vec::new())
    }

    /// The value with new, independent choices between its alternatives. All parts of one element use the same choices.
    /// `anew` maps each old choice to its new one.
    fn with_alternatives(&mut self, v: Value, anew: &mut Vec<(AtomId, Cond)>) -> Value {
        match v {
            Value::Tensor(id) => {
                let t = self.get_tensor(id);
                let device = self.placed_anew(t.device, anew);
                if device == t.device { v } else { self.tensor(Tensor { device, ..t }) }
            }
            Value::Seq(s) => {
                let items = self.seq_items(s);
                let new: Vec<Value> = items.iter().map(|&v| self.with_alternatives(v, anew)).collect();
                if *new == *items { v } else { self.seq(&new) }
            }
            v => v,
        }
    }

    fn placed_anew(&mut self, mut device: Dd, anew: &mut Vec<(AtomId, Cond)>) -> Dd {
        let mut atoms = Vec::new();
        self.d.support(device, &mut atoms);
        atoms.retain(|&atom| matches!(self.atoms.get(atom), Atom::Raised));
        for atom in atoms {
            let new = match anew.iter().find(|(old, _)| *old == atom) {
                Some(&(_, new)) => new,
                None => {
                    let new = self.raised_atom();
                    anew.push((atom, new));
                    new
                }
            };
            let one = self.d.atom(atom);
            let other = self.d.not(one);
            let (one, other) = (self.d.given(device, one), self.d.given(device, other));
            device = self.ite_device(new, one, other);
        }
        device
    }
}
