//! What stays of a condition when there is no room for all of it.

use super::{Cond, Dd, Diagrams, FALSE, LEAF, TRUE, atom_at};
use crate::flow::atom::AtomId;

impl Diagrams {
    /// Keeps this atom as long as there is room: what it decides is whether a device is there.
    pub fn keep(&mut self, atom: AtomId) {
        self.kept.insert(atom);
    }

    /// Both hold. Past the bound, of the first stays what decides between values, if there is room for that; else only what is
    /// about the machine, with what guards if there is room.
    pub fn and(&mut self, a: Cond, b: Cond) -> Cond {
        if let Some(both) = self.ite(a, b, FALSE) {
            return both;
        }
        let decides = self.what_decides(a);
        if let Some(both) = self.ite(decides, b, FALSE) {
            return both;
        }
        let kept = std::mem::take(&mut self.kept);
        let guards = self.forget(a, &|atom| atom.is_hardware() || kept.contains(&atom));
        self.kept = kept;
        if let Some(both) = self.ite(guards, b, FALSE) {
            return both;
        }
        let machine = self.machine(a);
        if let Some(both) = self.ite(machine, b, FALSE) {
            return both;
        }
        let of_b = self.machine(b);
        self.ite(machine, of_b, FALSE).unwrap_or(machine)
    }

    /// Either holds. Past the bound, only facts about the machine stay.
    pub fn or(&mut self, a: Cond, b: Cond) -> Cond {
        if let Some(either) = self.ite(a, TRUE, b) {
            return either;
        }
        let (a, b) = (self.machine(a), self.machine(b));
        self.ite(a, TRUE, b).unwrap_or(TRUE)
    }

    /// What a condition says of the machine, of what guards, and of what values hang on. Who forgets those takes one value for
    /// another: of two classes the one whose object was moved under the condition that it was made under.
    fn what_decides(&mut self, c: Cond) -> Cond {
        let (kept, deciding) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.deciding));
        let left =
            self.forget(c, &|atom| atom.is_hardware() || kept.contains(&atom) || deciding.contains(&atom));
        (self.kept, self.deciding) = (kept, deciding);
        left
    }

    /// What a condition says of the machine, whatever else it depends on.
    pub fn machine(&mut self, c: Cond) -> Cond {
        self.forget(c, &AtomId::is_hardware)
    }

    /// What is left of the condition when the atoms that fail the test may have either truth.
    pub fn forget(&mut self, c: Cond, keep: &dyn Fn(AtomId) -> bool) -> Cond {
        let n = self.nodes[c.0 as usize];
        if n.level == LEAF {
            return c;
        }
        let hi = self.forget(Dd(n.hi), keep);
        let lo = self.forget(Dd(n.lo), keep);
        if keep(atom_at(n.level)) {
            return Dd(self.make(n.level, hi.0, lo.0));
        }
        self.unbounded();
        Dd(self.ite_raw(hi.0, 1, lo.0))
    }
}
