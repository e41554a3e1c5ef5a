//! Decision diagrams: values that depend on facts about the machine and the caller.
//!
//! A diagram asks atoms in a fixed order and ends in a leaf. Conditions are diagrams whose leaves are
//! *false* and *true*; a device that depends on the world is one whose leaves are devices. Diagrams are
//! hash-consed, so equal diagrams are equal numbers, and `if-then-else` is the only operation needed.
//!
//! The theory "at least k+1 GPUs implies at least k" is built in: the atoms for GPU counts come first in
//! the order, and below the negative branch of one, the later ones are known to be false. So is "there is MPS, and
//! CUDA as well": MPS comes with macOS, whose last drivers for CUDA are older than that.

mod room;

use std::cell::Cell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::atom::{AtomId, GPU_ATOMS, backend};
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

const fn is_gpus(level: u32) -> bool {
    level < GPU_ATOMS
}

const fn hash(a: u32, b: u32, c: u32) -> usize {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let x = (((a as u64) << 32) | b as u64).wrapping_mul(K);
    let x = ((x ^ (x >> 32)).wrapping_add(c as u64)).wrapping_mul(K);
    (x >> 32) as usize
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

    fn push(&mut self, node: Node) -> u32 {
        let chooses = match node.level {
            LEAF => node.hi > 1,
            _ => self.chooses[node.hi as usize] || self.chooses[node.lo as usize],
        };
        if chooses && node.level != LEAF {
            self.deciding.insert(atom_at(node.level));
        }
        self.chooses.push(chooses);
        self.nodes.push(node);
        self.negations.resize(self.nodes.len().max(2), 0);
        u32::try_from(self.nodes.len() - 1).unwrap_or(GIVEN_UP)
    }

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
        let paths = self.nodes[hi as usize].paths.saturating_add(self.nodes[lo as usize].paths);
        let id = self.push(Node { level, hi, lo, paths });
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

    fn make(&mut self, level: u32, mut hi: u32, mut lo: u32) -> u32 {
        if is_gpus(level) {
            hi = self.without_mps(hi);
            while is_gpus(self.nodes[lo as usize].level) {
                lo = self.nodes[lo as usize].lo;
            }
        }
        self.insert_or(level, hi, lo)
    }

    /// What a diagram is on a machine with CUDA.
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

    fn split(&self, d: u32, level: u32) -> (u32, u32) {
        let n = &self.nodes[d as usize];
        if n.level == level { (n.hi, n.lo) } else { (d, d) }
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

    /// Combines two diagrams leaf by leaf where `path` allows both. `None` past the bound.
    pub fn zip(&mut self, a: Dd, b: Dd, f: &mut dyn FnMut(u32, u32) -> u32) -> Option<Dd> {
        let (na, nb) = (self.nodes[a.0 as usize], self.nodes[b.0 as usize]);
        if na.paths.saturating_mul(nb.paths) > 4096 {
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
        (self.nodes[r as usize].paths <= MAX_PATHS).then_some(Dd(r))
    }

    /// The leaves' payloads, each once per path that ends in it.
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

    /// Does a leaf's payload satisfy the test?
    pub fn any_leaf(&self, d: Dd, test: &dyn Fn(u32) -> bool) -> bool {
        let n = self.nodes[d.0 as usize];
        if n.level == LEAF {
            return test(n.hi);
        }
        self.any_leaf(Dd(n.hi), test) || self.any_leaf(Dd(n.lo), test)
    }

    /// Calls `f` with the literals of each way in which the condition holds, in the atoms' order.
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

    /// What is left of the condition where the atoms that pass the test do not hold.
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

    /// The atoms that the diagram depends on.
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

    /// The atom asked first, and the diagrams where it holds and where it does not. Not for leaves.
    pub fn root(&self, d: Dd) -> (AtomId, Dd, Dd) {
        let n = self.nodes[d.0 as usize];
        (atom_at(n.level), Dd(n.hi), Dd(n.lo))
    }

    /// Number of paths from the root to leaves.
    pub fn paths(&self, d: Dd) -> u32 {
        self.nodes[d.0 as usize].paths
    }
}

#[cfg(test)]
mod tests;
