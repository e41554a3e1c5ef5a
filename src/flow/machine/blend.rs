//! Joins of two values without a known condition.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::value::{Host, ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;

/// The maximum depth of the comparison of two objects.
const MAX_ALIKE: u32 = 4;

impl Interp<'_> {
    /// The join of two values where the condition is unknown.
    pub(crate) fn blend(&mut self, a: Value, b: Value) -> Value {
        match (a, b) {
            (a, b) if a == b => a,
            (Value::Absent, v) | (v, Value::Absent) => v,
            (Value::Tensor(_), Value::Tensor(_)) | (Value::Device(_), Value::Device(_)) => {
                let atom = self.raised_atom();
                self.ite(atom, a, b)
            }
            // Two layers of one kind from two rounds of a loop: one stands for both.
            (Value::Object(x), Value::Object(y))
                if self.obj(x).kind == self.obj(y).kind
                    && self.obj(x).class == self.obj(y).class
                    && self.is_module_object(x) =>
            {
                a
            }
            // A choice of layers, and a choice of the same kinds from the next round.
            (Value::Choice(x), Value::Choice(y)) if self.are_layers_of_rounds(x, y) => a,
            // Two instances with equal content: one stands for both.
            (Value::Object(x), Value::Object(_))
                if self.obj(x).kind == ObjKind::Instance && self.alike(a, b, 0) =>
            {
                a
            }
            // Two lists in a dict under unknown keys: one stands for both.
            (Value::Object(x), Value::Object(y)) if self.is_plain_list(x) && self.is_plain_list(y) => {
                let (Some(mut items), Some(more)) = (self.listed(x), self.listed(y)) else {
                    return Value::Unknown;
                };
                items.extend(more);
                let content = self.many_of(&items);
                self.set_own(x, content);
                a
            }
            (Value::Object(x), Value::Object(y)) if self.is_plain_dict(x) && self.is_plain_dict(y) => {
                self.row_of_table(x, y)
            }
            (Value::Str(x, _), Value::Str(y, _)) if x == y => a,
            (Value::Seq(x), Value::Seq(y)) if self.t.seqs.get(x.0).len() == self.t.seqs.get(y.0).len() => {
                let (x, y) = (self.seq_items(x), self.seq_items(y));
                let items: Vec<Value> = x.iter().zip(y.iter()).map(|(&p, &q)| self.blend(p, q)).collect();
                self.seq(&items)
            }
            (Value::Host(Host::Array), Value::Host(Host::Array)) => Self::ARRAY,
            // `x = 0`, and lists of numbers that a loop makes from it: no tensors.
            (a, b) if self.is_of_numbers(a, 0) && self.is_of_numbers(b, 0) => Value::Host(Host::Other),
            _ => Value::Unknown,
        }
    }

    /// Whether two choices have layers of the same kinds under the same conditions.
    fn are_layers_of_rounds(&mut self, x: Dd, y: Dd) -> bool {
        let mut pairs = Vec::new();
        let zipped = self.d.zip(x, y, &mut |p, q| {
            pairs.push((p, q));
            0
        });
        let value = |p: u32| *self.t.values.get(p);
        zipped.is_some()
            && pairs.into_iter().all(|(p, q)| match (value(p), value(q)) {
                (Value::Object(x), Value::Object(y)) => {
                    let (p, q) = (self.obj(x), self.obj(y));
                    p.kind == q.kind && p.class == q.class && self.is_module_object(x)
                }
                (v, w) => v == w,
            })
    }

    /// Whether the value is a number or contains only numbers.
    fn is_of_numbers(&self, v: Value, depth: u32) -> bool {
        let inside = |v: &Value| self.is_of_numbers(*v, depth + 1);
        match v {
            _ if depth > MAX_ALIKE => false,
            Value::Int(_) | Value::Host(Host::Number | Host::Other) => true,
            Value::Seq(s) => self.seq_items(s).iter().all(inside),
            Value::Many(m) => inside(self.t.values.get(m)),
            Value::Object(id) => self.is_plain_list(id) && inside(&self.own(id)),
            Value::Choice(_) => self.values_of(v).iter().all(inside),
            _ => false,
        }
    }

    fn is_plain_list(&self, id: ObjId) -> bool {
        self.obj(id).kind == ObjKind::List { module: false }
    }

    /// The elements of a list.
    fn listed(&self, id: ObjId) -> Option<Vec<Value>> {
        match self.own(id) {
            Value::Seq(s) => Some(self.seq_items(s).to_vec()),
            Value::Many(m) => Some(vec![*self.t.values.get(m)]),
            _ => None,
        }
    }

    /// Whether two values are equal, apart from the identity of the objects in them.
    fn alike(&self, a: Value, b: Value, depth: u32) -> bool {
        match (a, b) {
            (a, b) if a == b => true,
            _ if depth > MAX_ALIKE => false,
            (Value::Object(x), Value::Object(y)) => {
                let (p, q) = (self.obj(x), self.obj(y));
                p.kind == q.kind
                    && p.class == q.class
                    && p.attrs.len() == q.attrs.len()
                    && self.alike(self.own(x), self.own(y), depth + 1)
                    && p.attrs.iter().all(|&(name, cell)| {
                        self.alike(self.store.get(cell), self.get_field(y, name), depth + 1)
                    })
            }
            (Value::Seq(x), Value::Seq(y)) => {
                let (x, y) = (self.t.seqs.get(x.0), self.t.seqs.get(y.0));
                x.len() == y.len() && x.iter().zip(y).all(|(&p, &q)| self.alike(p, q, depth + 1))
            }
            (Value::Many(x), Value::Many(y)) => {
                self.alike(*self.t.values.get(x), *self.t.values.get(y), depth + 1)
            }
            (Value::Tensor(x), Value::Tensor(y)) => {
                let (x, y) = (self.get_tensor(x), self.get_tensor(y));
                x.device == y.device && x.dims == y.dims && x.certain == y.certain
            }
            // An outside value that varies is a new one in each round.
            (Value::Outer(x), Value::Outer(y)) => !self.t.get_outer(x).varies && !self.t.get_outer(y).varies,
            _ => false,
        }
    }
}
