//! Decision diagrams: values that depend on facts about the machine and the caller.
//!
//! A diagram tests atoms in a fixed order and ends in a leaf. A condition is a diagram whose leaves are *false* and *true*. A device that
//! depends on the world is a diagram whose leaves are devices. Diagrams are hash-consed, so equal diagrams have equal numbers.
//! `if-then-else` is the only operation needed.
//!
//! The theory "at least k+1 GPUs implies at least k" is built in: the atoms for GPU counts come first in the order. Below the negative
//! branch of one of them, the later ones are known to be false. "MPS excludes CUDA" is built in as well: MPS needs a macOS version newer
//! than the last one with CUDA drivers.

mod leaves;
mod nodes;
mod paths;
mod room;

use std::cell::Cell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

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

/// Levels of atoms that are not about the machine count down from here. Facts about the machine come first, in their own order. After
/// them the newest condition comes first, so that entering and leaving a branch changes little of a diagram.
const NEWEST: u32 = LEAF - 1;

/// The result of an operation that gave up.
const GIVEN_UP: u32 = u32::MAX;

/// The maximum number of paths of a diagram. An operation whose result has more paths gives up, and the value becomes unknown.
const MAX_PATHS: u32 = 16;

/// The maximum number of steps of one operation. An operation that needs more gives up, as if its result were too large.
const MAX_STEPS: u32 = 160;

/// The number of `if-then-else` results in the memo table. A newer result overwrites an older one in the same slot.
const MEMO: usize = 1 << 12;

#[derive(Clone, Copy)]
struct Node {
    /// The level of the atom that the node tests, or [`LEAF`].
    level: u32,
    /// The child where the atom holds. For a leaf: its payload.
    hi: u32,
    /// The child where the atom does not hold.
    lo: u32,
    /// The number of the negation; 0 if not computed yet.
    negation: u32,
    /// The number of paths to leaves, saturating.
    paths: u16,
    /// Whether there is a leaf other than *false* and *true*.
    chooses: bool,
    /// Whether `lost` has an entry for it. A quick test, because it is queried often.
    loses: bool,
}

/// The initial capacity, in nodes; enough for most files. A power of two.
const USUAL: usize = 1 << 8;

thread_local! {
    /// The cleared memo table of the previous file. Clearing its few entries is quicker than zeroing new memory.
    static ROOM: Cell<Vec<[u32; 4]>> = const { Cell::new(Vec::new()) };
}

impl Drop for Diagrams {
    fn drop(&mut self) {
        let mut memo = std::mem::take(&mut self.memo);
        for &slot in &self.remembered {
            memo[usize::from(slot)] = [0; 4];
        }
        if !memo.is_empty() {
            // When a thread ends, its thread-local storage may be gone. Then the memo is dropped.
            let _ = ROOM.try_with(|room| room.set(memo));
        }
    }
}

/// An atom and the truth value that a path through a diagram gives it.
pub type Literal = (AtomId, bool);

/// The arena that owns all nodes.
pub struct Diagrams {
    nodes: Vec<Node>,
    /// An open-addressed hash table of inner nodes' numbers, keyed by (level, hi, lo). 0 marks an empty slot.
    unique: Vec<u32>,
    inner: usize,
    /// For each payload, the number of its leaf plus one; 0 if there is no such leaf.
    leaves: Vec<u32>,
    /// The memo table of `if-then-else`. Empty until the first result. No operation is memoized whose condition is *false*, so a first
    /// field of 0 marks an empty slot.
    memo: Vec<[u32; 4]>,
    /// The occupied slots of `memo`.
    remembered: Vec<u16>,
    /// The number of nodes that operations have expanded since the last call of [`Diagrams::taken`].
    taken: usize,
    /// The number of steps that the current operation may still take.
    fuel: u32,
    /// The maximum number of paths in the current operation's result and in every part of it.
    bound: u32,
    /// For each atom: why a condition keeps it if it has room. See [`room::Stays`].
    stays: Vec<room::Stays>,
    /// For each condition that was simplified because of the size limit: the literals that held on its path but are no longer in it, sorted.
    lost: FxHashMap<Cond, Rc<[Literal]>>,
    /// Buffers that [`Diagrams::note_lost`] reuses: the literals still in a condition, and the literals that it has lost.
    still: Vec<Literal>,
    losing: Vec<Literal>,
}

impl Default for Diagrams {
    fn default() -> Self {
        let mut d = Self {
            nodes: Vec::with_capacity(USUAL),
            unique: vec![0; USUAL],
            inner: 0,
            leaves: Vec::new(),
            memo: Vec::new(),
            remembered: Vec::new(),
            taken: 0,
            fuel: 0,
            bound: 0,
            stays: Vec::new(),
            lost: FxHashMap::default(),
            still: Vec::new(),
            losing: Vec::new(),
        };
        d.leaf(0);
        d.leaf(1);
        d.nodes[0].negation = 1;
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
    /// The number of nodes. Callers use it to decide when to start with a new arena.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// The number of nodes that operations have expanded since the last call. Callers charge it to a budget.
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
            self.leaves[at] = self.push(LEAF, payload, 0) + 1;
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

    /// `then` where the condition holds, `orelse` elsewhere. `None` if the result exceeds the size limit.
    pub fn ite(&mut self, cond: Cond, then: Dd, orelse: Dd) -> Option<Dd> {
        self.fuel = MAX_STEPS;
        self.bound = MAX_PATHS;
        let d = self.ite_raw(cond.0, then.0, orelse.0);
        (d != GIVEN_UP && self.paths(Dd(d)) <= MAX_PATHS).then_some(Dd(d))
    }

    /// The negation of the condition.
    pub fn not(&mut self, a: Cond) -> Cond {
        Dd(self.negated(a.0))
    }

    fn negated(&mut self, a: u32) -> u32 {
        let n = self.nodes[a as usize];
        if n.negation != 0 || a == 1 {
            return n.negation;
        }
        let hi = self.negated(n.hi);
        let lo = self.negated(n.lo);
        let r = self.make(n.level, hi, lo);
        self.nodes[a as usize].negation = r;
        r
    }

    /// Whether `a` implies `b`.
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
        if hi == GIVEN_UP || self.paths(Dd(hi)) > self.bound {
            return GIVEN_UP;
        }
        let lo = self.ite_raw(cl, tl, el);
        if lo == GIVEN_UP || self.paths(Dd(lo)) > self.bound {
            return GIVEN_UP;
        }
        let r = self.make(top, hi, lo);
        self.remember(slot, [c, t, e, r]);
        r
    }

    fn remember(&mut self, slot: usize, result: [u32; 4]) {
        if self.memo.is_empty() {
            self.memo = ROOM.take();
            // The first file of a thread has no memo table to reuse.
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
