//! Tests of one outside value that cannot all have these outcomes: `n > 1` and not `n > 0`, `kind == "a"` and
//! `kind == "b"`.
//!
//! For each outside value, the check tries the few candidate values that the tests can distinguish. If no candidate
//! passes all tests, the path is impossible.

use crate::flow::domain::atom::AtomId;
use crate::flow::domain::diagram::Literal;
use crate::flow::domain::value::{OuterId, Value};
use crate::flow::machine::expressions::flags::by_default;
use crate::flow::machine::expressions::truth::{ORDERED, ordered};
use crate::flow::machine::{Interp, Test};

/// A value that an outside value may have.
#[derive(Clone, Copy)]
enum Candidate {
    /// A number, an integer or not.
    Number(f64),
    /// One of the constants in the comparisons.
    Constant(Value),
    /// Any other value, with this truth.
    Else(bool),
}

impl Interp<'_> {
    /// Stores what a test asks about an outside value, if the outcome can be computed for a given candidate.
    pub(crate) fn note_question(&mut self, atom: AtomId, outer: OuterId, test: Test) {
        let said = match test {
            Test::Truth(v) => v == Value::Outer(outer),
            Test::Compare(0, _, v) => matches!(v, Value::Str(..) | Value::Int(_) | Value::None),
            Test::Compare(n, _, Value::Int(_)) => ordered(n, 0, 0).is_some(),
            _ => false,
        };
        if said {
            self.tests.questions.insert(atom, (outer, test));
        }
    }

    /// Whether all these tests can have these outcomes at the same time.
    pub(crate) fn is_possible(&self, literals: &[Literal]) -> bool {
        let asked: Vec<(OuterId, Test, bool)> = literals
            .iter()
            .filter_map(|&(atom, truth)| self.tests.questions.get(&atom).map(|&(o, test)| (o, test, truth)))
            .collect();
        asked.iter().enumerate().all(|(n, &(o, ..))| {
            let of_it = || asked.iter().filter(|a| a.0 == o).map(|&(_, test, truth)| (test, truth));
            // Each outside value is checked once. A single test on a value can have either outcome.
            asked[..n].iter().any(|a| a.0 == o)
                || of_it().nth(1).is_none()
                || can_be(&of_it().collect::<Vec<_>>())
        })
    }

    /// The literals that the others imply: not `n > 1` follows from not `n > 0`.
    pub(crate) fn idle(&self, literals: &[Literal]) -> Vec<AtomId> {
        let (mut left, mut idle) = (literals.to_vec(), Vec::new());
        let mut at = 0;
        while let Some(&(atom, truth)) = left.get(at) {
            left[at].1 = !truth;
            if self.tests.questions.contains_key(&atom) && !self.is_possible(&left) {
                left.remove(at);
                idle.push(atom);
            } else {
                left[at].1 = truth;
                at += 1;
            }
        }
        idle
    }
}

/// Whether a value exists for which the tests have these outcomes.
fn can_be(tests: &[(Test, bool)]) -> bool {
    let passes =
        |c: Candidate| tests.iter().all(|&(test, truth)| outcome(test, c).is_none_or(|is| is == truth));
    let compared = |&(test, _): &(Test, bool)| match test {
        Test::Compare(n, _, v) => Some((n, v)),
        _ => None,
    };
    // A value that is ordered against a number is a number itself.
    if tests.iter().filter_map(compared).any(|(n, _)| n >= ORDERED) {
        let limits = tests.iter().filter_map(compared).filter_map(|(_, v)| match v {
            Value::Int(i) => Some(i as f64),
            _ => None,
        });
        return limits
            .chain([0.0])
            .any(|n| [n - 0.5, n, n + 0.5].into_iter().any(|n| passes(Candidate::Number(n))));
    }
    tests.iter().filter_map(compared).any(|(_, v)| passes(Candidate::Constant(v)))
        || [true, false].into_iter().any(|truth| passes(Candidate::Else(truth)))
}

/// The outcome of a test for a candidate, if it is known.
fn outcome(test: Test, candidate: Candidate) -> Option<bool> {
    match (candidate, test) {
        (Candidate::Number(n), Test::Truth(_)) => Some(n != 0.0),
        (Candidate::Number(n), Test::Compare(0, _, v)) => Some(matches!(v, Value::Int(i) if i as f64 == n)),
        (Candidate::Number(n), Test::Compare(test, _, Value::Int(limit))) => ordered(test, n, limit as f64),
        (Candidate::Constant(v), test) => by_default(test, v),
        (Candidate::Else(truth), Test::Truth(_)) => Some(truth),
        (Candidate::Else(_), Test::Compare(0, ..)) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::CmpOp;

    const IT: Value = Value::Outer(OuterId(7));

    fn compared(op: CmpOp, limit: i64) -> Test {
        Test::Compare(ORDERED + op as u8, IT, Value::Int(limit))
    }

    fn is(constant: Value) -> Test {
        Test::Compare(0, IT, constant)
    }

    #[test]
    fn numbers_have_one_order() {
        let (one, none) = (compared(CmpOp::Gt, 1), compared(CmpOp::Gt, 0));
        assert!(!can_be(&[(one, true), (none, false)]));
        assert!(can_be(&[(one, false), (none, true)]));
        assert!(!can_be(&[(compared(CmpOp::GtE, 3), true), (compared(CmpOp::Lt, 3), true)]));
        // A fraction may be above 0 and below 1.
        assert!(can_be(&[(none, true), (compared(CmpOp::GtE, 1), false)]));
    }

    #[test]
    fn truth_is_not_zero() {
        assert!(!can_be(&[(Test::Truth(IT), false), (compared(CmpOp::Gt, 0), true)]));
        assert!(!can_be(&[(Test::Truth(IT), true), (is(Value::Int(0)), true)]));
        assert!(can_be(&[(Test::Truth(IT), true), (compared(CmpOp::Gt, 0), false)]));
    }

    #[test]
    fn a_constant_is_no_other_one() {
        assert!(!can_be(&[(is(Value::Int(1)), true), (is(Value::Int(2)), true)]));
        assert!(!can_be(&[(is(Value::None), true), (Test::Truth(IT), true)]));
        assert!(can_be(&[(is(Value::Int(1)), false), (is(Value::Int(2)), false)]));
        assert!(can_be(&[(is(Value::None), false), (Test::Truth(IT), false)]));
    }
}
