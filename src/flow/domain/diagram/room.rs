//! What stays of a condition when there is no room for all of it.

use rustc_hash::FxHashSet;

use super::{Cond, Dd, Diagrams, FALSE, LEAF, Literal, TRUE, atom_at};
use crate::flow::domain::atom::AtomId;

/// Atoms that stay in a condition with those about the machine, if there is room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stays {
    /// What values hang on.
    Deciding,
    /// What guards.
    Kept,
    /// Uses that have raised.
    Raised,
}

/// So much is remembered of what was lost on a path: atoms of later tests have higher numbers, and stay.
const MAX_LOST: usize = 64;

/// One bit for a literal, to tell most apart.
const fn bit((atom, truth): Literal) -> u64 {
    1 << ((atom.0 << 1 | truth as u32) % u64::BITS)
}

impl Diagrams {
    /// Keeps this atom as long as there is room: what it decides is whether a device is there.
    pub fn keep(&mut self, atom: AtomId) {
        self.kept.insert(atom);
    }

    /// The same for longer than any other: it says that an earlier use has raised where there is no device.
    pub fn keep_longest(&mut self, atom: AtomId) {
        self.raised.insert(atom);
    }

    /// Both hold. Past the bound, of the first stays what decides between values, if there is room for that; else only what is
    /// about the machine, with what guards if there is room. What certainly held besides is remembered, see
    /// [`Diagrams::lost_on`].
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

    /// Either holds. Past the bound, only facts about the machine stay, with uses that have raised if there is room.
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
        // Where nothing was lost, what both say is said by what is left as well.
        let lost = |c: Cond| self.loses(c);
        if lost(either) || !one_of_them && (whole.is_none() || lost(a) || lost(b)) {
            let common = self.said_on_both(a, b);
            self.note_lost(either, &[], &common);
        }
        either
    }

    /// What held on a path to here, certainly, and had no room in what is left of it.
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

    /// Remembers for what is left of a path what was lost of those that it was put together of, and what these said.
    fn note_lost(&mut self, left: Cond, of: &[Cond], said: &[Literal]) {
        if left == TRUE || left == FALSE {
            return;
        }
        // Nothing is lost on most paths.
        if said.is_empty() && !of.iter().any(|&c| self.loses(c)) {
            self.forget_lost(left);
            return;
        }
        // One of them is what is left, and has lost something: what is known of it to be lost stays the same.
        if said.is_empty() && of.contains(&left) && self.loses(left) {
            return;
        }
        let (mut still, mut lost) = (std::mem::take(&mut self.still), std::mem::take(&mut self.losing));
        still.clear();
        self.collect_literals(left, &mut still);
        lost.clear();
        let before = of.iter().flat_map(|&c| self.lost_on(c)).chain(said);
        // Most have no bit in common with what is still said.
        let bits = still.iter().fold(0, |bits, &l| bits | bit(l));
        lost.extend(before.filter(|&&l| bits & bit(l) == 0 || !still.contains(&l)));
        self.taken += lost.len();
        // What one path has lost is in order.
        if !lost.is_sorted() {
            lost.sort_unstable();
        }
        lost.dedup();
        // What was lost first is furthest away.
        lost.drain(..lost.len().saturating_sub(MAX_LOST));
        let known = self.lost.get(&left);
        // Equal conditions are one, on whichever paths they are what is left.
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

    /// What is certain on both, as far as it is known.
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

    /// The atoms that have one truth wherever the condition holds.
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

    /// What two conditions both say.
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

    /// What a condition says of the machine, and of those other atoms. Who forgets what values hang on takes one value for another:
    /// of two classes the one whose object was moved under the condition that it was made under.
    fn what_stays(&mut self, c: Cond, stays: &[Stays]) -> Cond {
        let sets = [&mut self.deciding, &mut self.kept, &mut self.raised].map(std::mem::take);
        let kinds = [Stays::Deciding, Stays::Kept, Stays::Raised];
        let known: Vec<&FxHashSet<AtomId>> =
            kinds.iter().zip(&sets).filter(|(kind, _)| stays.contains(kind)).map(|(_, set)| set).collect();
        let left = self.forget(c, &|atom| atom.is_hardware() || known.iter().any(|set| set.contains(&atom)));
        [self.deciding, self.kept, self.raised] = sets;
        left
    }

    /// What a condition says of the machine and of uses that have raised.
    pub fn what_raises(&mut self, c: Cond) -> Cond {
        self.what_stays(c, &[Stays::Raised])
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
