//! Branches: each is interpreted on its own path, and their writes are joined afterwards.

use crate::flow::domain::diagram::{Cond, FALSE};
use crate::flow::domain::store::{Changes, pair};
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;

/// A branch to interpret.
pub(crate) type Branch<'a, 'p> = &'a mut dyn FnMut(&mut Interp<'p>) -> Value;

impl<'p> Interp<'p> {
    /// Interprets one branch where the condition holds and one where it does not, and joins the two.
    pub(crate) fn branch_with(&mut self, cond: Cond, then: Branch<'_, 'p>, orelse: Branch<'_, 'p>) -> Value {
        let before = self.path;
        let not = self.d.not(cond);
        let (yes, no) = (self.d.and(before, cond), self.d.and(before, not));
        if no == FALSE {
            self.path = yes;
            return then(self);
        }
        if yes == FALSE {
            self.path = no;
            return orelse(self);
        }
        let mark = self.store.mark();
        self.here_mut().branches += 1;
        let frame = self.frame;
        self.path = yes;
        let a = then(self);
        let path_a = self.path;
        let changes_a = self.store.take(mark);
        self.path = no;
        let b = orelse(self);
        let path_b = self.path;
        self.frames[frame.0 as usize].branches -= 1;
        if path_a == FALSE {
            self.leave_to_handlers(yes, changes_a);
            return b;
        }
        let changes_b = self.store.take(mark);
        if path_b == FALSE {
            self.leave_to_handlers(no, changes_b);
            self.apply(&changes_a);
            self.path = path_a;
            return a;
        }
        self.merge(cond, &changes_a, &changes_b);
        self.path = if path_a == yes && path_b == no { before } else { self.d.or(path_a, path_b) };
        self.ite(cond, a, b)
    }

    /// See [`Interp::branch_with`].
    pub(crate) fn branch(&mut self, cond: Cond, then: Branch<'_, 'p>, orelse: Branch<'_, 'p>) -> Value {
        self.branch_with(cond, then, orelse)
    }

    /// Keeps the changes of a branch that never reaches its end, for the handlers that may catch what it raises.
    fn leave_to_handlers(&mut self, path: Cond, changes: Changes) {
        let mut at = Some(self.frame);
        while let Some(f) = at.filter(|_| !changes.is_empty()) {
            let frame = &mut self.frames[f.0 as usize];
            if let Some(tried) = frame.tries.last_mut() {
                tried.left.push((path, changes));
                return;
            }
            at = frame.caller;
        }
    }

    /// Applies recorded writes to the store.
    pub(crate) fn apply(&mut self, changes: &Changes) {
        for &(cell, v) in changes {
            self.store.set(cell, v);
        }
    }

    /// Writes the join of two branches' writes over the state before both.
    pub(crate) fn merge(&mut self, cond: Cond, a: &Changes, b: &Changes) {
        for (cell, x, y) in pair(a, b) {
            let old = self.store.get(cell);
            let v = self.ite(cond, x.unwrap_or(old), y.unwrap_or(old));
            self.store.set(cell, v);
        }
    }
}
