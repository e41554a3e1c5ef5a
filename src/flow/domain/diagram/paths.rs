//! Paths through a diagram: the cubes of a condition, simplification under another condition, and the atoms in it.

use super::{Cond, Dd, Diagrams, LEAF, Literal, atom_at};
use crate::flow::domain::atom::AtomId;

impl Diagrams {
    /// Calls `f` for each path to *true*, with its literals in the order of atoms.
    pub fn cubes(&self, c: Cond, f: &mut dyn FnMut(&[Literal])) {
        let mut literals = Vec::new();
        self.cubes_below(c.0, &mut literals, &mut |literals| {
            let mut sorted = literals.to_vec();
            sorted.sort_unstable();
            f(&sorted);
        });
    }

    fn cubes_below(&self, d: u32, literals: &mut Vec<Literal>, f: &mut dyn FnMut(&[Literal])) {
        let n = self.nodes[d as usize];
        if n.level == LEAF {
            if n.hi == 1 {
                f(literals);
            }
            return;
        }
        for (child, truth) in [(n.hi, true), (n.lo, false)] {
            literals.push((atom_at(n.level), truth));
            self.cubes_below(child, literals, f);
            literals.pop();
        }
    }

    /// A simpler diagram that is the same wherever `care` holds (Coudert and Madre's *restrict*).
    pub fn given(&mut self, d: Dd, care: Cond) -> Dd {
        Dd(self.given_raw(d.0, care.0))
    }

    fn given_raw(&mut self, d: u32, care: u32) -> u32 {
        let (nd, nc) = (self.nodes[d as usize], self.nodes[care as usize]);
        if nd.level == LEAF || nc.level == LEAF {
            return d;
        }
        let top = nd.level.min(nc.level);
        let ((dh, dl), (ch, cl)) = (self.split(d, top), self.split(care, top));
        if nd.level > top {
            self.unbounded();
            let either = self.ite_raw(ch, 1, cl);
            return self.given_raw(d, either);
        }
        if ch == 0 {
            return self.given_raw(dl, cl);
        }
        if cl == 0 {
            return self.given_raw(dh, ch);
        }
        let (hi, lo) = (self.given_raw(dh, ch), self.given_raw(dl, cl));
        self.make(top, hi, lo)
    }

    /// The condition under the assumption that all atoms that pass the test are false.
    pub fn without(&mut self, c: Cond, gone: &dyn Fn(AtomId) -> bool) -> Cond {
        let n = self.nodes[c.0 as usize];
        if n.level == LEAF {
            return c;
        }
        let lo = self.without(Dd(n.lo), gone);
        if gone(atom_at(n.level)) {
            return lo;
        }
        let hi = self.without(Dd(n.hi), gone);
        Dd(self.make(n.level, hi.0, lo.0))
    }

    /// Appends the atoms that the diagram depends on, without duplicates.
    pub fn support(&self, d: Dd, atoms: &mut Vec<AtomId>) {
        let n = self.nodes[d.0 as usize];
        if n.level == LEAF {
            return;
        }
        let atom = atom_at(n.level);
        if !atoms.contains(&atom) {
            atoms.push(atom);
        }
        self.support(Dd(n.hi), atoms);
        self.support(Dd(n.lo), atoms);
    }

    /// The root's atom, and the diagrams where it holds and where it does not. Must not be called for leaves.
    pub fn root(&self, d: Dd) -> (AtomId, Dd, Dd) {
        let n = self.nodes[d.0 as usize];
        (atom_at(n.level), Dd(n.hi), Dd(n.lo))
    }

    /// The number of paths from the root to leaves.
    pub fn paths(&self, d: Dd) -> u32 {
        u32::from(self.nodes[d.0 as usize].paths)
    }
}
