//! Decision diagrams: values that depend on facts about the machine and the caller.
//!
//! A diagram asks atoms in a fixed order and ends in a leaf. Conditions are diagrams whose leaves are
//! *false* and *true*; a device that depends on the world is one whose leaves are devices. Diagrams are
//! hash-consed, so equal diagrams are equal numbers, and `if-then-else` is the only operation needed.
//!
//! The theory "at least k+1 GPUs implies at least k" is built in: the atoms for GPU counts come first in
//! the order, and below the negative branch of one, the later ones are known to be false. So is "there is MPS, and
//! CUDA as well": MPS comes with macOS, whose last drivers for CUDA are older than that.

mod leaves;
mod nodes;
mod paths;
mod room;

use std::cell::Cell;

use rustc_hash::{FxHashMap, FxHashSet};

use self::nodes::hash;
use super::atom::{AtomId, backend};
use crate::world::Backend;

/// A diagram. Meaningful only with the [`Diagrams`] that made it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Dd(u32);

/// A condition: a diagram whose leaves are false and true.
pub type Cond = Dd;

/// The condition that never holds.
pub const FALSE: Cond = Dd(0);
/// The condition that always holds.
pub const TRUE: Cond = Dd(1);

/// The level of leaves: below everything.
const LEAF: u32 = u32::MAX;

/// The level of "there is MPS".
const MPS: u32 = level(backend(Backend::Mps));

/// Facts about the machine come first, in their own order; after them the newest condition comes first, so
/// that entering and leaving a branch touches little of a diagram.
const NEWEST: u32 = LEAF - 1;

/// No diagram: the operation was given up.
const GIVEN_UP: u32 = u32::MAX;

/// Diagrams with more paths than this are given up: what they stood for becomes unknown.
const MAX_PATHS: u32 = 16;

/// Steps that one operation may take; past it the result is given up like one that grows past the bound.
const MAX_STEPS: u32 = 160;

/// Results of `if-then-else` that are remembered; a newer one takes an older one's place.
const MEMO: usize = 1 << 12;

#[derive(Clone, Copy)]
struct Node {
    /// The level of the atom asked, or [`LEAF`].
    level: u32,
    /// Where it holds; a leaf's payload.
    hi: u32,
    /// Where it does not.
    lo: u32,
    /// Number of paths to leaves, saturating.
    paths: u32,
}

/// Room for as many nodes as most files need; a power of two.
const USUAL: usize = 1 << 8;

thread_local! {
    /// The memo of the file before, with nothing in it: to clear what few entries there were is quicker than to clear new memory.
    static ROOM: Cell<Vec<[u32; 4]>> = const { Cell::new(Vec::new()) };
}

impl Drop for Diagrams {
    fn drop(&mut self) {
        let mut memo = std::mem::take(&mut self.memo);
        for &slot in &self.remembered {
            memo[usize::from(slot)] = [0; 4];
        }
        if !memo.is_empty() {
            // At the end of a thread there is nobody to leave it to.
            let _ = ROOM.try_with(|room| room.set(memo));
        }
    }
}

/// One atom with the truth that a path through a diagram gives it.
pub type Literal = (AtomId, bool);

/// The arena.
pub struct Diagrams {
    nodes: Vec<Node>,
    /// Open-addressed: numbers of inner nodes by what they are, 0 where there is none.
    unique: Vec<u32>,
    inner: usize,
    /// Numbers of leaves by payload, plus one.
    leaves: Vec<u32>,
    /// Negations of conditions, by node; 0 where not known.
    negations: Vec<u32>,
    /// Empty as long as nothing is remembered. No result stands for the condition *false*, so that 0 is no entry.
    memo: Vec<[u32; 4]>,
    /// Which entries there are.
    remembered: Vec<u16>,
    /// Nodes that operations have taken apart since that was asked last.
    taken: usize,
    /// Steps left to the present operation.
    fuel: u32,
    /// Paths that its result and every part of it may have.
    bound: u32,
    /// Atoms that stay when others are forgotten.
    kept: FxHashSet<AtomId>,
    /// Uses that have raised, which stay longest.
    raised: FxHashSet<AtomId>,
    /// By node: does it choose between values, and not only between true and false?
    chooses: Vec<bool>,
    /// Atoms that such nodes ask.
    deciding: FxHashSet<AtomId>,
    /// What held on a path besides what is left of it, by what is left.
    lost: FxHashMap<Cond, Box<[Literal]>>,
    /// By node, as far as any has: has it lost anything? That is asked all the time.
    loses: Vec<bool>,
    /// Storage for what is said by what is left, and for what that has lost: both are put together again and again.
    still: Vec<Literal>,
    losing: Vec<Literal>,
}

impl Default for Diagrams {
    fn default() -> Self {
        let mut negations = Vec::with_capacity(USUAL);
        negations.extend([1, 0]);
        let mut d = Self {
            nodes: Vec::with_capacity(USUAL),
            unique: vec![0; USUAL],
            inner: 0,
            leaves: Vec::new(),
            negations,
            memo: Vec::new(),
            remembered: Vec::new(),
            taken: 0,
            fuel: 0,
            bound: 0,
            kept: FxHashSet::default(),
            raised: FxHashSet::default(),
            chooses: Vec::with_capacity(USUAL),
            deciding: FxHashSet::default(),
            lost: FxHashMap::default(),
            loses: Vec::new(),
            still: Vec::new(),
            losing: Vec::new(),
        };
        d.leaf(0);
        d.leaf(1);
        d
    }
}

const fn level(atom: AtomId) -> u32 {
    if atom.is_hardware() { atom.0 } else { NEWEST - atom.0 }
}

const fn atom_at(level: u32) -> AtomId {
    AtomId(if AtomId(level).is_hardware() { level } else { NEWEST - level })
}

impl Diagrams {
    /// Number of nodes, for deciding when to start afresh.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// How many nodes operations have looked at since this was asked last, for a budget.
    pub fn taken(&mut self) -> usize {
        std::mem::take(&mut self.taken)
    }

    /// The leaf with this payload. Payloads 0 and 1 are *false* and *true*.
    pub fn leaf(&mut self, payload: u32) -> Dd {
        let at = payload as usize;
        if at >= self.leaves.len() {
            self.leaves.resize(at + 1, 0);
        }
        if self.leaves[at] == 0 {
            self.leaves[at] = self.push(Node { level: LEAF, hi: payload, lo: 0, paths: 1 }) + 1;
        }
        Dd(self.leaves[at] - 1)
    }

    /// The payload, if the diagram is a leaf.
    pub fn as_leaf(&self, d: Dd) -> Option<u32> {
        let n = self.nodes[d.0 as usize];
        (n.level == LEAF).then_some(n.hi)
    }

    /// The condition that the atom holds.
    pub fn atom(&mut self, atom: AtomId) -> Cond {
        Dd(self.make(level(atom), 1, 0))
    }

    /// `then` where the condition holds, `orelse` elsewhere. `None` when the result grows past the bound.
    pub fn ite(&mut self, cond: Cond, then: Dd, orelse: Dd) -> Option<Dd> {
        self.fuel = MAX_STEPS;
        self.bound = MAX_PATHS;
        let d = self.ite_raw(cond.0, then.0, orelse.0);
        (d != GIVEN_UP && self.nodes[d as usize].paths <= MAX_PATHS).then_some(Dd(d))
    }

    /// It does not hold.
    pub fn not(&mut self, a: Cond) -> Cond {
        Dd(self.negated(a.0))
    }

    fn negated(&mut self, a: u32) -> u32 {
        match self.negations[a as usize] {
            0 if a == 1 => 0,
            0 => {
                let n = self.nodes[a as usize];
                let hi = self.negated(n.hi);
                let lo = self.negated(n.lo);
                let r = self.make(n.level, hi, lo);
                self.negations[a as usize] = r;
                r
            }
            r => r,
        }
    }

    /// Does `a` imply `b`?
    pub fn implies(&mut self, a: Cond, b: Cond) -> bool {
        let not_b = self.not(b);
        self.unbounded();
        self.ite_raw(a.0, not_b.0, 0) == 0
    }

    fn unbounded(&mut self) {
        self.fuel = u32::MAX;
        self.bound = u32::MAX;
    }

    fn ite_raw(&mut self, c: u32, mut t: u32, mut e: u32) -> u32 {
        if c == 1 {
            return t;
        }
        if c == 0 {
            return e;
        }
        if t == c {
            t = 1;
        }
        if e == c {
            e = 0;
        }
        if t == e {
            return t;
        }
        match (t, e) {
            (1, 0) => return c,
            (0, 1) => return self.negated(c),
            _ => {}
        }
        let slot = hash(c, t, e) & (MEMO - 1);
        if let Some(m) = self.memo.get(slot)
            && m[0] == c
            && m[1] == t
            && m[2] == e
        {
            return m[3];
        }
        self.taken += 1;
        self.fuel = self.fuel.saturating_sub(1);
        if self.fuel == 0 {
            return GIVEN_UP;
        }
        let of = |d: u32| self.nodes[d as usize].level;
        let top = of(c).min(of(t)).min(of(e));
        let ((ch, cl), (th, tl), (eh, el)) = (self.split(c, top), self.split(t, top), self.split(e, top));
        let hi = self.ite_raw(ch, th, eh);
        if hi == GIVEN_UP || self.nodes[hi as usize].paths > self.bound {
            return GIVEN_UP;
        }
        let lo = self.ite_raw(cl, tl, el);
        if lo == GIVEN_UP || self.nodes[lo as usize].paths > self.bound {
            return GIVEN_UP;
        }
        let r = self.make(top, hi, lo);
        self.remember(slot, [c, t, e, r]);
        r
    }

    fn remember(&mut self, slot: usize, result: [u32; 4]) {
        if self.memo.is_empty() {
            self.memo = ROOM.take();
            // The first file of a thread has nothing to take over.
            self.memo.resize(MEMO, [0; 4]);
        }
        let entry = &mut self.memo[slot];
        if entry[0] == 0
            && let Ok(slot) = u16::try_from(slot)
        {
            self.remembered.push(slot);
        }
        *entry = result;
    }
}

#[cfg(test)]
mod tests;
