//! Interpretation of each alternative of a value on its own path.

use std::cell::RefCell;

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{Dd, Literal};
use crate::flow::domain::value::{Host, Value};
use crate::flow::machine::Interp;

/// The function for each alternative of a value.
type Alternative<'a, 'p> = &'a mut dyn FnMut(&mut Interp<'p>, Value) -> Value;

impl<'p> Interp<'p> {
    /// Applies `f` to each alternative of a value, each on its own path, and joins results and effects.
    pub(crate) fn each(&mut self, v: Value, f: Alternative<'_, 'p>) -> Value {
        match v {
            Value::Choice(d) => {
                let first = if self.is_in_two_formats(d) { Some(true) } else { None };
                self.each_below(d, first, &RefCell::new(f))
            }
            v => f(self, v),
        }
    }

    /// Whether the value is a tensor on some paths and an array on others. A program with both formats tests the format
    /// repeatedly, with tests that the engine does not understand. These tests always agree, so the engine must not
    /// combine different outcomes.
    fn is_in_two_formats(&self, d: Dd) -> bool {
        let value = |leaf| *self.t.values.get(leaf);
        self.d.any_leaf(d, &|leaf| matches!(value(leaf), Value::Tensor(_)))
            && self.d.any_leaf(d, &|leaf| {
                matches!(value(leaf), Value::Host(Host::Array | Host::Doubles | Host::Numbers))
            })
    }

    /// `first` is set if the alternatives are formats. It is true until a non-hardware atom has decided between them.
    fn each_below(&mut self, d: Dd, first: Option<bool>, f: &RefCell<Alternative<'_, 'p>>) -> Value {
        if let Some(payload) = self.d.as_leaf(d) {
            let v = *self.t.values.get(payload);
            // Code inside cannot reach this closure again.
            return f.try_borrow_mut().map_or(Value::Unknown, |mut f| f(self, v));
        }
        let (atom, hi, lo) = self.d.root(d);
        let cond = self.d.atom(atom);
        // The split between alternatives is no evidence that either alternative is likely.
        let chance = matches!(self.atoms.get(atom), Atom::Raised | Atom::Partly | Atom::Caught)
            || first == Some(false) && !atom.is_hardware();
        let open = chance && !self.implied(self.path, atom, true) && !self.implied(self.path, atom, false);
        let split = self.tests.split.len();
        let then = first.map(|first| first && atom.is_hardware());
        self.tests.split.extend(open.then_some(atom));
        let v = self.branch(cond, &mut |i| i.each_where((atom, true), hi, then, f), &mut |i| {
            i.each_where((atom, false), lo, then, f)
        });
        self.tests.split.truncate(split);
        v
    }

    /// Handles the alternatives below this literal.
    fn each_where(
        &mut self,
        taken: Literal,
        d: Dd,
        first: Option<bool>,
        f: &RefCell<Alternative<'_, 'p>>,
    ) -> Value {
        self.tests.taken.push(taken);
        let v = self.each_below(d, first, f);
        self.tests.taken.pop();
        v
    }
}
