//! Approximation of conditions that exceed the size limit: which atoms are kept, and which literals are remembered separately.

use std::rc::Rc;

use super::{Cond, Dd, Diagrams, FALSE, LEAF, Literal, TRUE, atom_at};
use crate::flow::domain::atom::AtomId;

/// Why a condition keeps an atom if there is room: a set of reasons. Atoms about the machine are always kept.
#[derive(Clone, Copy, Default)]
pub(super) struct Stays(u8);

impl Stays {
    /// Values depend on it.
    pub(super) const DECIDING: Self = Self(1);
    /// It is a guard: see [`Diagrams::keep`].
    const KEPT: Self = Self(2);
    /// It is a use that has raised: see [`Diagrams::keep_longest`].
    const RAISED: Self = Self(4);

    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
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
        self.mark(atom, Stays::KEPT);
    }

    /// Marks an atom that is kept longer than any other: it says that an earlier use has raised where there is no device.
    pub fn keep_longest(&mut self, atom: AtomId) {
        self.mark(atom, Stays::RAISED);
    }

    /// Adds a reason to keep the atom.
    pub(super) fn mark(&mut self, atom: AtomId, why: Stays) {
        let at = atom.0 as usize;
        if at >= self.stays.len() {
            self.stays.resize(at + 1, Stays::default());
        }
        self.stays[at] = self.stays[at].or(why);
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
        let (deciding, kept, raised) = (Stays::DECIDING, Stays::KEPT, Stays::RAISED);
        let tries = [deciding.or(kept).or(raised), deciding.or(kept), kept.or(raised), kept, raised];
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
        self.nodes[path.0 as usize].loses
    }

    fn forget_lost(&mut self, left: Cond) {
        if self.loses(left) {
            self.nodes[left.0 as usize].loses = false;
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
        if said.is_empty() && self.lost_as_before(left, of, &still) {
            (self.still, self.losing) = (still, lost);
            return;
        }
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
            self.nodes[left.0 as usize].loses = true;
        }
        (self.still, self.losing) = (still, lost);
    }

    /// Records the lost literals of `left` in the usual case: just one of the operands has any, and all of them stay lost. Returns whether
    /// it is this case. `still`: the literals of `left`.
    fn lost_as_before(&mut self, left: Cond, of: &[Cond], still: &[Literal]) -> bool {
        let mut losing = of.iter().filter(|&&c| self.loses(c));
        let (Some(one), None) = (losing.next(), losing.next()) else { return false };
        let Some(before) = self.lost.get(one) else { return false };
        if still.iter().any(|l| before.binary_search(l).is_ok()) {
            return false;
        }
        match self.lost.get(&left) {
            Some(known) if !Rc::ptr_eq(known, before) && known != before => return false,
            Some(_) => self.taken += before.len(),
            None => {
                self.taken += before.len();
                let before = Rc::clone(before);
                self.lost.insert(left, before);
                self.nodes[left.0 as usize].loses = true;
            }
        }
        true
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
    fn what_stays(&mut self, c: Cond, why: Stays) -> Cond {
        let stays = std::mem::take(&mut self.stays);
        let known = |atom: AtomId| stays.get(atom.0 as usize).is_some_and(|s| s.meets(why));
        let left = self.forget(c, &|atom| atom.is_hardware() || known(atom));
        self.stays = stays;
        left
    }

    /// The condition, reduced to facts about the machine and uses that have raised.
    pub fn what_raises(&mut self, c: Cond) -> Cond {
        self.what_stays(c, Stays::RAISED)
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
            let same = hi.0 == n.hi && lo.0 == n.lo;
            return if same { c } else { Dd(self.make(n.level, hi.0, lo.0)) };
        }
        self.unbounded();
        Dd(self.ite_raw(hi.0, 1, lo.0))
    }
}
