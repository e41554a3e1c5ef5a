//! Construction of nodes. Each node is unique, and implied facts about the machine are simplified away.

use super::room::Stays;
use super::{Diagrams, GIVEN_UP, LEAF, MPS, Node, atom_at};
use crate::flow::domain::atom::GPU_ATOMS;

/// The hash of three numbers that identify a node or an operation.
pub(super) const fn hash(a: u32, b: u32, c: u32) -> usize {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let x = (((a as u64) << 32) | b as u64).wrapping_mul(K);
    let x = ((x ^ (x >> 32)).wrapping_add(c as u64)).wrapping_mul(K);
    (x >> 32) as usize
}

impl Diagrams {
    /// Adds a node.
    pub(super) fn push(&mut self, level: u32, hi: u32, lo: u32) -> u32 {
        let (paths, chooses) = if level == LEAF {
            (1, hi > 1)
        } else {
            let (hi, lo) = (&self.nodes[hi as usize], &self.nodes[lo as usize]);
            (hi.paths.saturating_add(lo.paths), hi.chooses || lo.chooses)
        };
        if chooses && level != LEAF {
            self.mark(atom_at(level), Stays::DECIDING);
        }
        self.nodes.push(Node { level, hi, lo, negation: 0, paths, chooses, loses: false });
        u32::try_from(self.nodes.len() - 1).unwrap_or(GIVEN_UP)
    }

    /// The unique node with this level and these children; a new one if it does not exist yet.
    fn insert(&mut self, level: u32, hi: u32, lo: u32) -> u32 {
        let mask = self.unique.len() - 1;
        let mut at = hash(level, hi, lo) & mask;
        loop {
            let id = self.unique[at];
            if id == 0 {
                break;
            }
            let n = &self.nodes[id as usize];
            if n.level == level && n.hi == hi && n.lo == lo {
                return id;
            }
            at = (at + 1) & mask;
        }
        let id = self.push(level, hi, lo);
        self.unique[at] = id;
        self.inner += 1;
        if self.inner * 2 > self.unique.len() {
            self.grow();
        }
        id
    }

    fn grow(&mut self) {
        let mask = self.unique.len() * 2 - 1;
        let mut unique = vec![0; mask + 1];
        for &id in self.unique.iter().filter(|&&id| id != 0) {
            let n = &self.nodes[id as usize];
            let mut at = hash(n.level, n.hi, n.lo) & mask;
            while unique[at] != 0 {
                at = (at + 1) & mask;
            }
            unique[at] = id;
        }
        self.unique = unique;
    }

    /// The diagram with this root level and these children, without branches that contradict the built-in facts about machines.
    pub(super) fn make(&mut self, level: u32, mut hi: u32, mut lo: u32) -> u32 {
        if is_gpus(level) {
            hi = self.without_mps(hi);
            while is_gpus(self.nodes[lo as usize].level) {
                lo = self.nodes[lo as usize].lo;
            }
        }
        self.insert_or(level, hi, lo)
    }

    /// The diagram, simplified for a machine with CUDA (and thus without MPS).
    fn without_mps(&mut self, d: u32) -> u32 {
        let n = self.nodes[d as usize];
        match n.level {
            MPS => n.lo,
            level if is_gpus(level) => {
                let lo = self.without_mps(n.lo);
                if lo == n.lo { d } else { self.insert_or(level, n.hi, lo) }
            }
            _ => d,
        }
    }

    fn insert_or(&mut self, level: u32, hi: u32, lo: u32) -> u32 {
        if hi == lo { hi } else { self.insert(level, hi, lo) }
    }

    /// The cofactors of a diagram: where the atom of this level holds, and where it does not.
    pub(super) fn split(&self, d: u32, level: u32) -> (u32, u32) {
        let n = &self.nodes[d as usize];
        if n.level == level { (n.hi, n.lo) } else { (d, d) }
    }
}

const fn is_gpus(level: u32) -> bool {
    level < GPU_ATOMS
}
