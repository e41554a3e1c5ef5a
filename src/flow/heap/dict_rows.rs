//! Rows of a table: dicts with the same keys in one list. Where the row is unknown, one dict stands for all, and each
//! key has the join of the rows' values.

use crate::flow::domain::value::{ObjId, Value};
use crate::flow::heap::containers::plain_key;
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;

impl Interp<'_> {
    pub(crate) fn is_plain_dict(&self, id: ObjId) -> bool {
        self.obj(id).kind == ObjKind::Dict { module: false }
    }

    /// The dict that stands for two dicts, if they have the same keys.
    pub(crate) fn row_of_table(&mut self, x: ObjId, y: ObjId) -> Value {
        let (Value::Seq(a), Value::Seq(b)) = (self.own(x), self.own(y)) else { return Value::Unknown };
        let (a, b) = (self.seq_items(a), self.seq_items(b));
        let named = |v: Value| matches!(v, Value::Str(..));
        let alike = |(p, q): (&[Value], &[Value])| named(p[0]) && plain_key(p[0]) == plain_key(q[0]);
        if a.len() != b.len() || !a.chunks(2).zip(b.chunks(2)).all(alike) {
            return Value::Unknown;
        }
        let mut items = Vec::with_capacity(a.len());
        for (p, q) in a.chunks(2).zip(b.chunks(2)) {
            let value = self.blend(p[1], q[1]);
            items.extend([p[0], value]);
        }
        let row = if items[..] == a[..] && self.heap.rows.contains_key(&x) {
            x
        } else {
            let content = self.seq(&items);
            self.object(ObjKind::Dict { module: false }, None, content)
        };
        for other in [x, y].into_iter().filter(|&other| other != row) {
            self.heap.rows.entry(row).or_default().push(other);
            self.heap.rows.entry(other).or_default().push(row);
        }
        Value::Object(row)
    }

    /// Sets an item of a dict that stands for several rows, and of all those rows, because any of them may be meant.
    /// Gives whether it did.
    pub(crate) fn set_item_of_row(&mut self, id: ObjId, key: Value, value: Value) -> bool {
        if !self.heap.rows.contains_key(&id) {
            return false;
        }
        let (mut rows, mut next) = (vec![id], 0);
        while let Some(&row) = rows.get(next) {
            next += 1;
            for &other in self.heap.rows.get(&row).into_iter().flatten() {
                if !rows.contains(&other) {
                    rows.push(other);
                }
            }
        }
        for row in rows {
            let Value::Seq(s) = self.own(row) else { continue };
            let items = self.seq_items(s);
            let known = items.chunks(2).find(|pair| plain_key(pair[0]) == plain_key(key)).map(|pair| pair[1]);
            let value = match known {
                Some(old) => self.blend(old, value),
                None => Value::Unknown,
            };
            let content = self.with_pair(s, key, value);
            self.set_own(row, content);
        }
        true
    }
}
