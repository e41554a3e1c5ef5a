//! Decision diagrams: values that depend on facts about the machine and the caller.
//!
//! A diagram asks atoms in a fixed order and ends in a leaf. Conditions are diagrams whose leaves are
//! *false* and *true*; a device that depends on the world is one whose leaves are devices. Diagrams are
//! hash-consed, so equal diagrams are equal numbers, and `if-then-else` is the only operation needed.
//!
//! The theory "at least k+1 GPUs implies at least k" is built in: the atoms for GPU counts come first in
//! the order, and below the negative branch of one, the later ones are known to be false.

use rustc_hash::FxHashMap;

use super::atom::{AtomId, GPU_ATOMS};

/// A diagram. Meaningful only with the [`Diagrams`] that made it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Dd(u32);

/// A condition: a diagram whose leaves are false and true.
pub type Cond = Dd;

/// The condition that never holds.
pub const FALSE: Cond = Dd(0);
/// The condition that always holds.
pub const TRUE: Cond = Dd(1);

const LEAF: u32 = u32::MAX;

/// Diagrams with more paths than this are given up: what they stood for becomes unknown.
const MAX_PATHS: u32 = 16;

/// Steps that one operation may take; past it the result is given up like one that grows past the bound.
const MAX_STEPS: u32 = 160;

#[derive(Clone, Copy)]
struct Node {
    /// The atom asked, or [`LEAF`].
    atom: u32,
    /// Where it holds; a leaf's payload.
    hi: u32,
    /// Where it does not.
    lo: u32,
    /// Number of paths to leaves, saturating.
    paths: u32,
}

/// One atom with the truth that a path through a diagram gives it.
pub type Literal = (AtomId, bool);

/// The arena.
pub struct Diagrams {
    nodes: Vec<Node>,
    unique: FxHashMap<(u32, u32, u32), u32>,
    memo: FxHashMap<(u32, u32, u32), u32>,
    /// Steps left to the present operation.
    fuel: u32,
}

impl Default for Diagrams {
    fn default() -> Self {
        let mut d = Self { nodes: Vec::new(), unique: FxHashMap::default(), memo: FxHashMap::default(), fuel: 0 };
        d.leaf(0);
        d.leaf(1);
        d
    }
}

impl Diagrams {
    /// Number of nodes, for deciding when to start afresh.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The leaf with this payload. Payloads 0 and 1 are *false* and *true*.
    pub fn leaf(&mut self, payload: u32) -> Dd {
        self.insert(LEAF, payload, 0)
    }

    /// The payload, if the diagram is a leaf.
    pub fn as_leaf(&self, d: Dd) -> Option<u32> {
        let n = self.nodes[d.0 as usize];
        (n.atom == LEAF).then_some(n.hi)
    }

    /// The condition that the atom holds.
    pub fn atom(&mut self, atom: AtomId) -> Cond {
        self.make(atom.0, 1, 0)
    }

    /// `then` where the condition holds, `orelse` elsewhere. `None` when the result grows past the bound.
    pub fn ite(&mut self, cond: Cond, then: Dd, orelse: Dd) -> Option<Dd> {
        self.fuel = MAX_STEPS;
        let d = self.ite_raw(cond.0, then.0, orelse.0);
        (self.fuel > 0 && self.nodes[d as usize].paths <= MAX_PATHS).then_some(Dd(d))
    }

    /// Both hold. Past the bound, what is oldest of the first is forgotten: facts about the machine stay.
    pub fn and(&mut self, a: Cond, b: Cond) -> Cond {
        if let Some(both) = self.ite(a, b, FALSE) {
            return both;
        }
        let machine = self.forget(a, &AtomId::is_hardware);
        self.ite(machine, b, FALSE).unwrap_or(machine)
    }

    /// Either holds. Past the bound, nothing is known: true.
    pub fn or(&mut self, a: Cond, b: Cond) -> Cond {
        self.ite(a, TRUE, b).unwrap_or(TRUE)
    }

    /// It does not hold.
    pub fn not(&mut self, a: Cond) -> Cond {
        self.fuel = u32::MAX;
        Dd(self.ite_raw(a.0, 0, 1))
    }

    /// Does `a` imply `b`?
    pub fn implies(&mut self, a: Cond, b: Cond) -> bool {
        let not_b = self.not(b);
        self.fuel = u32::MAX;
        self.ite_raw(a.0, not_b.0, 0) == 0
    }

    fn insert(&mut self, atom: u32, hi: u32, lo: u32) -> Dd {
        let nodes = &mut self.nodes;
        let id = *self.unique.entry((atom, hi, lo)).or_insert_with(|| {
            let paths = if atom == LEAF {
                1
            } else {
                nodes[hi as usize].paths.saturating_add(nodes[lo as usize].paths)
            };
            nodes.push(Node { atom, hi, lo, paths });
            u32::try_from(nodes.len() - 1).unwrap_or(LEAF)
        });
        Dd(id)
    }

    fn make(&mut self, atom: u32, hi: u32, mut lo: u32) -> Dd {
        if atom < GPU_ATOMS {
            while self.nodes[lo as usize].atom < GPU_ATOMS {
                lo = self.nodes[lo as usize].lo;
            }
        }
        if hi == lo { Dd(hi) } else { self.insert(atom, hi, lo) }
    }

    fn split(&self, d: u32, atom: u32) -> (u32, u32) {
        let n = self.nodes[d as usize];
        if n.atom == atom { (n.hi, n.lo) } else { (d, d) }
    }

    fn ite_raw(&mut self, c: u32, t: u32, e: u32) -> u32 {
        if c == 1 || t == e {
            return t;
        }
        if c == 0 {
            return e;
        }
        if t == 1 && e == 0 {
            return c;
        }
        if let Some(&r) = self.memo.get(&(c, t, e)) {
            return r;
        }
        self.fuel = self.fuel.saturating_sub(1);
        if self.fuel == 0 {
            return e;
        }
        let top = [c, t, e].into_iter().map(|d| self.nodes[d as usize].atom).min().unwrap_or(LEAF);
        let ((ch, cl), (th, tl), (eh, el)) = (self.split(c, top), self.split(t, top), self.split(e, top));
        let hi = self.ite_raw(ch, th, eh);
        let lo = self.ite_raw(cl, tl, el);
        let r = self.make(top, hi, lo).0;
        if self.fuel > 0 {
            self.memo.insert((c, t, e), r);
        }
        r
    }

    /// The same diagram with each leaf's payload replaced.
    pub fn map(&mut self, d: Dd, f: &mut dyn FnMut(u32) -> u32) -> Dd {
        let n = self.nodes[d.0 as usize];
        if n.atom == LEAF {
            let payload = f(n.hi);
            return self.leaf(payload);
        }
        let hi = self.map(Dd(n.hi), f);
        let lo = self.map(Dd(n.lo), f);
        self.make(n.atom, hi.0, lo.0)
    }

    /// The condition under which a leaf that satisfies the test is reached.
    pub fn where_leaf(&mut self, d: Dd, test: &mut dyn FnMut(u32) -> bool) -> Cond {
        self.map(d, &mut |p| u32::from(test(p)))
    }

    /// Combines two diagrams leaf by leaf where `path` allows both. `None` past the bound.
    pub fn zip(&mut self, a: Dd, b: Dd, f: &mut dyn FnMut(u32, u32) -> u32) -> Option<Dd> {
        let (na, nb) = (self.nodes[a.0 as usize], self.nodes[b.0 as usize]);
        if na.paths.saturating_mul(nb.paths) > 4096 {
            return None;
        }
        let top = na.atom.min(nb.atom);
        if top == LEAF {
            let payload = f(na.hi, nb.hi);
            return Some(self.leaf(payload));
        }
        let ((ah, al), (bh, bl)) = (self.split(a.0, top), self.split(b.0, top));
        let hi = self.zip(Dd(ah), Dd(bh), f)?;
        let lo = self.zip(Dd(al), Dd(bl), f)?;
        let r = self.make(top, hi.0, lo.0);
        (self.nodes[r.0 as usize].paths <= MAX_PATHS).then_some(r)
    }

    /// The leaves' payloads, each once per path that ends in it.
    pub fn leaves(&self, d: Dd, out: &mut Vec<u32>) {
        let n = self.nodes[d.0 as usize];
        if n.atom == LEAF {
            if !out.contains(&n.hi) {
                out.push(n.hi);
            }
            return;
        }
        self.leaves(Dd(n.hi), out);
        self.leaves(Dd(n.lo), out);
    }

    /// Calls `f` with the literals of each way in which the condition holds.
    pub fn cubes(&self, c: Cond, f: &mut dyn FnMut(&[Literal])) {
        let mut literals = Vec::new();
        self.cubes_below(c.0, &mut literals, f);
    }

    fn cubes_below(&self, d: u32, literals: &mut Vec<Literal>, f: &mut dyn FnMut(&[Literal])) {
        let n = self.nodes[d as usize];
        if n.atom == LEAF {
            if n.hi == 1 {
                f(literals);
            }
            return;
        }
        for (child, truth) in [(n.hi, true), (n.lo, false)] {
            literals.push((AtomId(n.atom), truth));
            self.cubes_below(child, literals, f);
            literals.pop();
        }
    }

    /// What is left of the condition when the atoms that fail the test may have either truth.
    pub fn forget(&mut self, c: Cond, keep: &dyn Fn(AtomId) -> bool) -> Cond {
        self.fuel = u32::MAX;
        let n = self.nodes[c.0 as usize];
        if n.atom == LEAF {
            return c;
        }
        let hi = self.forget(Dd(n.hi), keep);
        let lo = self.forget(Dd(n.lo), keep);
        if keep(AtomId(n.atom)) { self.make(n.atom, hi.0, lo.0) } else { Dd(self.ite_raw(hi.0, 1, lo.0)) }
    }

    /// The atom asked first, and the diagrams where it holds and where it does not. Not for leaves.
    pub fn root(&self, d: Dd) -> (AtomId, Dd, Dd) {
        let n = self.nodes[d.0 as usize];
        (AtomId(n.atom), Dd(n.hi), Dd(n.lo))
    }

    /// Number of paths from the root to leaves.
    pub fn paths(&self, d: Dd) -> u32 {
        self.nodes[d.0 as usize].paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::atom::gpus_at_least;

    #[test]
    fn more_gpus_imply_fewer() {
        let mut d = Diagrams::default();
        let (one, two) = (d.atom(gpus_at_least(1)), d.atom(gpus_at_least(2)));
        assert!(d.implies(two, one));
        assert!(!d.implies(one, two));
        let none = d.not(one);
        assert_eq!(d.and(none, two), FALSE);
        let not_two = d.not(two);
        assert_ne!(d.and(one, not_two), FALSE);
    }

    #[test]
    fn conditions_obey_boolean_laws() {
        let mut d = Diagrams::default();
        let atoms: Vec<Cond> = [1, 2, 20, 21, 22].map(|i| d.atom(AtomId(i))).to_vec();
        for &a in &atoms {
            for &b in &atoms {
                let (ab, ba) = (d.and(a, b), d.and(b, a));
                assert_eq!(ab, ba);
                let (na, nb) = (d.not(a), d.not(b));
                let (nab, n_or) = (d.not(ab), d.or(na, nb));
                assert!(d.implies(nab, n_or) && d.implies(n_or, nab), "De Morgan");
                assert_eq!(d.not(na), a);
            }
        }
    }

    #[test]
    fn correlated_choices_stay_correlated() {
        let mut d = Diagrams::default();
        let c = d.atom(AtomId(20));
        let (x, y) = (d.leaf(10), d.leaf(11));
        let a = d.ite(c, x, y).unwrap_or(x);
        let b = d.ite(c, x, y).unwrap_or(y);
        let differ = d.zip(a, b, &mut |p, q| u32::from(p != q));
        assert_eq!(differ, Some(FALSE));
    }
}
