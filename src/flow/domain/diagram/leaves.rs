//! Operations on the leaves of diagrams: replace, combine and query them.

use super::{Cond, Dd, Diagrams, LEAF, MAX_PATHS};

impl Diagrams {
    /// The same diagram with each leaf's payload replaced.
    pub fn map(&mut self, d: Dd, f: &mut dyn FnMut(u32) -> u32) -> Dd {
        let n = self.nodes[d.0 as usize];
        if n.level == LEAF {
            let payload = f(n.hi);
            return self.leaf(payload);
        }
        let hi = self.map(Dd(n.hi), f);
        let lo = self.map(Dd(n.lo), f);
        Dd(self.make(n.level, hi.0, lo.0))
    }

    /// The condition under which a leaf that satisfies the test is reached.
    pub fn where_leaf(&mut self, d: Dd, test: &mut dyn FnMut(u32) -> bool) -> Cond {
        self.map(d, &mut |p| u32::from(test(p)))
    }

    /// Combines two diagrams leaf by leaf, on paths that both allow. `None` if the result exceeds the size limit.
    pub fn zip(&mut self, a: Dd, b: Dd, f: &mut dyn FnMut(u32, u32) -> u32) -> Option<Dd> {
        let (na, nb) = (self.nodes[a.0 as usize], self.nodes[b.0 as usize]);
        if self.paths(a).saturating_mul(self.paths(b)) > 4096 {
            return None;
        }
        let top = na.level.min(nb.level);
        if top == LEAF {
            let payload = f(na.hi, nb.hi);
            return Some(self.leaf(payload));
        }
        let ((ah, al), (bh, bl)) = (self.split(a.0, top), self.split(b.0, top));
        let hi = self.zip(Dd(ah), Dd(bh), f)?;
        let lo = self.zip(Dd(al), Dd(bl), f)?;
        let r = self.make(top, hi.0, lo.0);
        (self.paths(Dd(r)) <= MAX_PATHS).then_some(Dd(r))
    }

    /// Appends the payloads of the diagram's leaves, without duplicates.
    pub fn leaves(&self, d: Dd, out: &mut Vec<u32>) {
        let n = self.nodes[d.0 as usize];
        if n.level == LEAF {
            if !out.contains(&n.hi) {
                out.push(n.hi);
            }
            return;
        }
        self.leaves(Dd(n.hi), out);
        self.leaves(Dd(n.lo), out);
    }

    /// Whether the payload of some leaf satisfies the test.
    pub fn any_leaf(&self, d: Dd, test: &dyn Fn(u32) -> bool) -> bool {
        let n = self.nodes[d.0 as usize];
        if n.level == LEAF {
            return test(n.hi);
        }
        self.any_leaf(Dd(n.hi), test) || self.any_leaf(Dd(n.lo), test)
    }
}
