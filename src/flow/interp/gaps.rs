//! Tables that are joined: where a row finds no match there is a gap, and whole numbers become 64-bit floating point to hold it.

use super::super::atom::Atom;
use super::super::value::{OuterId, OuterKey, Value};
use super::args::Args;
use super::{Interp, Test};
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::CallFact;

/// The kinds of joins that keep rows without a match.
const WITH_GAPS: &[&str] = &["left", "right", "outer"];

impl Interp<'_> {
    /// The joined table, if rows without a match are kept in it.
    pub(super) fn joined_table(&mut self, fact: &CallFact, args: &Args, e: ExprId) -> Option<Value> {
        let how = fact.gaps_by?;
        let (how, _) = args.get(usize::from(how.position), how.name.as_str())?;
        if !matches!(how, Value::Str(s, _) if WITH_GAPS.contains(&s.as_str())) {
            return None;
        }
        let table = self.result_of(e);
        if let Value::Outer(o) = table {
            self.watch.with_gaps.insert(o);
        }
        Some(table)
    }

    /// The array of a column of such a table: of 64-bit floating point where there is a gap.
    pub(super) fn column_with_gaps(&mut self, o: OuterId, name: Sym) -> Option<Value> {
        if self.watch.with_gaps.is_empty() || !matches!(name.as_str(), "values" | "to_numpy") {
            return None;
        }
        let (OuterKey::Item { base, .. } | OuterKey::Attr { base, .. }) = self.t.get_outer(o).key else {
            return None;
        };
        if !self.watch.with_gaps.contains(&base) {
            return None;
        }
        let test = Test::Compare(22, Value::Outer(base), Value::None);
        let atom = match self.tests.get(&test) {
            Some(&atom) => atom,
            None => {
                let text = "a row finds no match".to_owned();
                let atom = self.atoms.add(Atom::Flag { text, about_devices: true, settable: true, default: None });
                self.tests.insert(test, atom);
                atom
            }
        };
        let gap = self.d.atom(atom);
        Some(self.ite(gap, Self::DOUBLES, Self::ARRAY))
    }
}
