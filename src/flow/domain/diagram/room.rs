//! Approximation of conditions that exceed the size limit: which atoms are kept, and which literals are remembered separately.

use rustc_hash::FxHashSet;

use super::{Cond, Dd, Diagrams, FALSE, LEAF, Literal, TRUE, atom_at};
use crate::flow::domain::atom::AtomId;

/// Kinds of atoms that a condition keeps if there is room. Atoms about the machine are always kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stays {
    /// Atoms that values depend on.
    Deciding,
    /// Guards: see [`Diagrams::keep`].
    Kept,
    /// Uses that have raised: see [`Diagrams::keep_longest`].
    Raised,
}

/// The maximum number of lost literals that are remembered for a path. The newest are kept, because later tests have higher atom numbers.
const MAX_LOST: usize = 64;

/// A bit for each literal, by hash, for a quick disjointness test.
const fn bit((atom, truth): Literal) -> u64 {
    1 << ((atom.0 << 1 | truth as u32) % u64::BITS)
}

impl Diagrams {
    /// Marks an atom as a guard, which is kept as long as there is room: it decides whether a device is there.
    pub fn keep(&mut self, atom: AtomId) {
        self.kept.insert(atom);
    }

    /// Marks an atom that is kept longer than any other: it says that an earlier use has raised where there is no device.
    pub fn keep_longest(&mut self, atom: AtomId) {
        self.raised.insert(atom);
    }

    /// The conjunction. If it exceeds the size limit, `a` keeps only facts about the machine, and as many kinds of atoms as there is room
    /// for: see `Stays`. Literals that certainly held but were dropped are remembered; see [`Diagrams::lost_on`].
    pub fn and(&mut self, a: Cond, b: Cond) -> Cond {
        if let Some(both) = self.ite(a, b, FALSE) {
            if !self.lost.is_empty() {
                self.note_lost(both, &[a, b], &[]);
            }
            return both;
        }
        let both = self.and_in_part(a, b);
        let mut said = self.literals_of(a);
        said.extend(self.literals_of(b));
        self.note_lost(both, &[a, b], &said);
        both
    }

    fn and_in_part(&mut self, a: Cond, b: Cond) -> Cond {
        let tries: [&[Stays]; 5] = [
            &[Stays::Deciding, Stays::Kept, Stays::Raised],
            &[Stays::Deciding, Stays::Kept],
            &[Stays::Kept, Stays::Raised],
            &[Stays::Kept],
            &[Stays::Raised],
        ];
        for stays in tries {
            let left = self.what_stays(a, stays);
            if let Some(both) = self.ite(left, b, FALSE) {
                return both;
            }
        }
        let raised = (self.what_raises(a), self.what_raises(b));
        if let Some(both) = self.ite(raised.0, raised.1, FALSE) {
            return both;
        }
        let machine = self.machine(a);
        if let Some(both) = self.ite(machine, b, FALSE) {
            return both;
        }
        let of_b = self.machine(b);
        self.ite(machine, of_b, FALSE).unwrap_or(machine)
    }

    /// The disjunction. If it exceeds the size limit, only facts about the machine are kept, and uses that have raised if there is room.
    pub fn or(&mut self, a: Cond, b: Cond) -> Cond {
        let whole = self.ite(a, TRUE, b);
        let either = whole.or_else(|| {
            let (a, b) = (self.what_raises(a), self.what_raises(b));
            self.ite(a, TRUE, b)
        });
        let either = either.unwrap_or_else(|| {
            let (a, b) = (self.machine(a), self.machine(b));
            self.ite(a, TRUE, b).unwrap_or(TRUE)
        });
        let one_of_them = either == a || either == b;
        // If nothing was lost, the literals common to both are still in the result.
        let lost = |c: Cond| self.loses(c);
        if lost(either) || !one_of_them && (whole.is_none() || lost(a) || lost(b)) {
            let common = self.said_on_both(a, b);
            self.note_lost(either, &[], &common);
        }
        either
    }

    /// The literals that certainly held on this path but were dropped from its condition for lack of room.
    pub fn lost_on(&self, path: Cond) -> &[Literal] {
        if self.loses(path) { self.lost.get(&path).map_or(&[], |lost| lost) } else { &[] }
    }

    fn loses(&self, path: Cond) -> bool {
        self.loses.get(path.0 as usize).copied().unwrap_or(false)
    }

    fn forget_lost(&mut self, left: Cond) {
        if self.loses(left) {
            self.loses[left.0 as usize] = false;
            self.lost.remove(&left);
        }
    }

    /// Records, for an approximated condition `left`, the lost literals of its operands `of` and the literals `said` that the operands
    /// implied.
    fn note_lost(&mut self, left: Cond, of: &[Cond], said: &[Literal]) {
        if left == TRUE || left == FALSE {
            return;
        }
        // The usual case: nothing was lost.
        if said.is_empty() && !of.iter().any(|&c| self.loses(c)) {
            self.forget_lost(left);
            return;
        }
        // The result equals one of the operands, which has lost literals already: its entry stays.
        if said.is_empty() && of.contains(&left) && self.loses(left) {
            return;
        }
        let (mut still, mut lost) = (std::mem::take(&mut self.still), std::mem::take(&mut self.losing));
        still.clear();
        self.collect_literals(left, &mut still);
        lost.clear();
        let before = of.iter().flat_map(|&c| self.lost_on(c)).chain(said);
        // A cheap filter: most lost literals share no bit with the literals that are still in the condition.
        let bits = still.iter().fold(0, |bits, &l| bits | bit(l));
        lost.extend(before.filter(|&&l| bits & bit(l) == 0 || !still.contains(&l)));
        self.taken += lost.len();
        // The lost literals of a single path are already sorted.
        if !lost.is_sorted() {
            lost.sort_unstable();
        }
        lost.dedup();
        // Drop the oldest literals: they are furthest away.
        lost.drain(..lost.len().saturating_sub(MAX_LOST));
        let known = self.lost.get(&left);
        // Equal conditions are the same node, even on different paths. Only literals lost on all of these paths are certain.
        if let Some(known) = known {
            lost.retain(|l| known.binary_search(l).is_ok());
        }
        if lost.is_empty() {
            self.forget_lost(left);
        } else if known.is_none_or(|known| **known != *lost) {
            self.lost.insert(left, lost.as_slice().into());
            let at = left.0 as usize;
            if at >= self.loses.len() {
                self.loses.resize(self.nodes.len(), false);
            }
            self.loses[at] = true;
        }
        (self.still, self.losing) = (still, lost);
    }

    /// The literals that are certain in both conditions, including lost ones.
    fn said_on_both(&self, a: Cond, b: Cond) -> Vec<Literal> {
        let all = |c: Cond| {
            let mut said = self.literals_of(c);
            said.extend_from_slice(self.lost_on(c));
            said
        };
        let (mut of_a, of_b) = (all(a), all(b));
        of_a.retain(|l| of_b.contains(l));
        of_a
    }

    /// The literals that hold wherever the condition holds.
    fn literals_of(&self, c: Cond) -> Vec<Literal> {
        let mut said = Vec::new();
        self.collect_literals(c, &mut said);
        said
    }

    fn collect_literals(&self, mut c: Cond, said: &mut Vec<Literal>) {
        loop {
            let n = self.nodes[c.0 as usize];
            if n.level == LEAF {
                return;
            }
            let (atom, hi, lo) = (atom_at(n.level), Dd(n.hi), Dd(n.lo));
            if hi != FALSE && lo != FALSE {
                return self.collect_common(hi, lo, said);
            }
            said.push((atom, lo == FALSE));
            c = if lo == FALSE { hi } else { lo };
        }
    }

    /// Appends the literals that two conditions have in common.
    fn collect_common(&self, hi: Cond, lo: Cond, said: &mut Vec<Literal>) {
        let from = said.len();
        self.collect_literals(hi, said);
        if said.len() == from {
            return;
        }
        let middle = said.len();
        self.collect_literals(lo, said);
        let mut kept = from;
        for at in from..middle {
            let literal = said[at];
            if said[middle..].contains(&literal) {
                said[kept] = literal;
                kept += 1;
            }
        }
        said.truncate(kept);
    }

    /// The condition, reduced to facts about the machine and these kinds of atoms. Dropping the atoms that values depend on would confuse
    /// values. Example: an object of one of two classes is moved under the same condition under which it was made.
    fn what_stays(&mut self, c: Cond, stays: &[Stays]) -> Cond {
        let sets = [&mut self.deciding, &mut self.kept, &mut self.raised].map(std::mem::take);
        let kinds = [Stays::Deciding, Stays::Kept, Stays::Raised];
        let known: Vec<&FxHashSet<AtomId>> =
            kinds.iter().zip(&sets).filter(|(kind, _)| stays.contains(kind)).map(|(_, set)| set).collect();
        let left = self.forget(c, &|atom| atom.is_hardware() || known.iter().any(|set| set.contains(&atom)));
        [self.deciding, self.kept, self.raised] = sets;
        left
    }

    /// The condition, reduced to facts about the machine and uses that have raised.
    pub fn what_raises(&mut self, c: Cond) -> Cond {
        self.what_stays(c, &[Stays::Raised])
    }

    /// The condition, reduced to facts about the machine.
    pub fn machine(&mut self, c: Cond) -> Cond {
        self.forget(c, &AtomId::is_hardware)
    }

    /// The condition with all atoms that fail the test existentially quantified: they may have either value.
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
