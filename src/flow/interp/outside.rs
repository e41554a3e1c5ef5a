//! What the program writes into outside things: `args.device = …`, `cfg["gpu"] = …`.

use super::super::value::{OuterId, OuterKey, Value};
use super::{Cell, Interp};

impl Interp<'_> {
    /// Writes an attribute or item of an outside thing. A value of which nothing is known is as good as what it came
    /// with, which has a name.
    pub(super) fn write_outside(&mut self, part: OuterId, value: Value) {
        let named = Value::Outer(part);
        let known = match value {
            Value::Unknown | Value::Host(_) | Value::Absent | Value::Slice => false,
            Value::Outer(o) => self.t.get_outer(o).device || self.is_tensorish(o),
            _ => true,
        };
        if !known && !self.outer_writes.contains_key(&part) {
            return;
        }
        let cell = self.cell_outside(part);
        self.store.set(cell, if known { value } else { named });
    }

    /// An attribute or item of an outside thing: what the program has written there, or whatever it came with.
    pub(super) fn read_outside(&self, part: OuterId) -> Value {
        match self.outer_writes.get(&part) {
            Some(&cell) => self.store.get(cell),
            None => Value::Outer(part),
        }
    }

    /// What the program has written there, if it has on the way here.
    pub(super) fn written_outside(&self, part: OuterId) -> Option<Value> {
        Some(self.read_outside(part)).filter(|&v| v != Value::Outer(part))
    }

    /// The thing is another one in this round of a loop: what was written into the last is not in it.
    pub(super) fn is_new_outside(&mut self, thing: Value) {
        match thing {
            Value::Outer(o) => {
                let written: Vec<(OuterId, Cell)> = self.outer_writes.iter().map(|(&p, &c)| (p, c)).collect();
                for (part, cell) in written {
                    if self.is_part_of(part, o) {
                        self.store.set(cell, Value::Outer(part));
                    }
                }
            }
            Value::Seq(s) => {
                for item in self.seq_items(s).to_vec() {
                    self.is_new_outside(item);
                }
            }
            _ => {}
        }
    }

    fn is_part_of(&self, part: OuterId, whole: OuterId) -> bool {
        let mut at = part;
        loop {
            match self.t.get_outer(at).key {
                OuterKey::Attr { base, .. } | OuterKey::Item { base, .. } if base == whole => return true,
                OuterKey::Attr { base, .. } | OuterKey::Item { base, .. } => at = base,
                _ => return false,
            }
        }
    }

    fn cell_outside(&mut self, part: OuterId) -> Cell {
        if let Some(&cell) = self.outer_writes.get(&part) {
            return cell;
        }
        // Where it is not written it stays what it was.
        let cell = self.store.alloc_with(Value::Outer(part));
        self.outer_writes.insert(part, cell);
        cell
    }
}
