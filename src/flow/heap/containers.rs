//! Sequences, lists, dicts: elements, indexing, iteration.

use crate::flow::domain::value::{Host, NO_ORIGIN, ObjId, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::statements::loops::Iteration;
use crate::ir::ExprId;

/// The maximum number of different values of a list that are kept separately.
const MAX_BESIDE: usize = 4;

/// The maximum number of elements of a repeated list that are kept separately.
pub(crate) const MAX_REPEATED: usize = 8;

impl Interp<'_> {
    /// A container's content as a value: `Seq`, `Many` or an unknown value.
    pub(crate) fn content(&self, v: Value) -> Value {
        match v {
            Value::Object(id) if matches!(self.obj(id).kind, ObjKind::List { .. }) => self.own(id),
            Value::Object(id) if matches!(self.obj(id).kind, ObjKind::Dict { .. }) => match self.own(id) {
                Value::Seq(_) => Value::Unknown,
                m => m,
            },
            v => v,
        }
    }

    /// The elements, when each is known. A dict's are its keys.
    pub(crate) fn exact_elements(&self, v: Value) -> Option<Vec<Value>> {
        match v {
            Value::Seq(id) => Some(self.seq_items(id).to_vec()),
            Value::Object(id) => match (self.obj(id).kind, self.own(id)) {
                (ObjKind::List { .. } | ObjKind::Instance, Value::Seq(s)) => Some(self.seq_items(s).to_vec()),
                (ObjKind::Dict { .. }, Value::Seq(s)) => {
                    Some(self.seq_items(s).iter().step_by(2).copied().collect())
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Alternating keys and values of a dict, when each is known.
    pub(crate) fn dict_items(&self, v: Value) -> Option<Vec<Value>> {
        match v {
            Value::Object(id) => match (self.obj(id).kind, self.own(id)) {
                (ObjKind::Dict { .. }, Value::Seq(s)) => Some(self.seq_items(s).to_vec()),
                _ => None,
            },
            _ => None,
        }
    }

    /// The items of a loop over a dict whose keys depend on conditions. The result has each key set with its condition.
    /// Unknown if the items contain objects: a move of an object has no effect on a path where the dict does not have
    /// it. A condition on the move would have to be matched at each use.
    pub(crate) fn listed_either(&mut self, content: Value, pairs: bool) -> Value {
        self.each(content, &mut |i, c| {
            let Value::Seq(s) = c else { return Value::Unknown };
            let items = i.seq_items(s);
            if items.iter().any(|item| matches!(item, Value::Object(_))) {
                return Value::Unknown;
            }
            let listed: Vec<Value> = match pairs {
                true => items.chunks(2).map(|pair| i.seq(pair)).collect(),
                false => items.iter().skip(1).step_by(2).copied().collect(),
            };
            i.seq(&listed)
        })
    }

    /// All key-value pairs that such a dict may have.
    pub(crate) fn all_pairs(&self, id: ObjId) -> Option<Vec<Value>> {
        let Value::Choice(_) = self.own(id) else { return self.dict_items(Value::Object(id)) };
        let mut pairs: Vec<Value> = Vec::new();
        for content in self.values_of(self.own(id)) {
            let Value::Seq(s) = content else { return None };
            for pair in self.seq_items(s).chunks(2) {
                if !pairs.chunks(2).any(|known| known == pair) {
                    pairs.extend(pair);
                }
            }
        }
        Some(pairs)
    }

    /// The elements for a target list of `wanted` variables.
    pub(crate) fn elements(&mut self, v: Value, wanted: usize, at: ExprId) -> Vec<Value> {
        if let Some(items) = self.exact_elements(v) {
            if items.len() == wanted {
                return items;
            }
            return vec![Value::Unknown; wanted];
        }
        match v {
            Value::Choice(_) => {
                let mut columns = Vec::with_capacity(wanted);
                for n in 0..wanted {
                    let column = self.each(v, &mut |i, v| {
                        let items = i.elements_plain(v, wanted, at);
                        items.get(n).copied().unwrap_or(Value::Unknown)
                    });
                    columns.push(column);
                }
                columns
            }
            v => self.elements_plain(v, wanted, at),
        }
    }

    pub(crate) fn elements_plain(&mut self, v: Value, wanted: usize, at: ExprId) -> Vec<Value> {
        if let Some(items) = self.exact_elements(v) {
            return if items.len() == wanted { items } else { vec![Value::Unknown; wanted] };
        }
        match v {
            Value::Outer(o) => (0..wanted)
                .map(|n| Value::Outer(self.outer_item(o, Value::Int(i64::try_from(n).unwrap_or(0)))))
                .collect(),
            Value::Host(h @ (Host::Number | Host::Memory)) => vec![Value::Host(h); wanted],
            v => {
                let item = self.some_element(v, at);
                (0..wanted).map(|_| self.drawn_apart(item)).collect()
            }
        }
    }

    /// An arbitrary element.
    pub(crate) fn some_element(&mut self, v: Value, at: ExprId) -> Value {
        match self.iteration(v, at) {
            Iteration::Any(v) => v,
            Iteration::Exact(items) => {
                let mut joined = Value::Absent;
                for v in items {
                    joined = self.blend(joined, v);
                }
                if joined == Value::Absent { Value::Unknown } else { joined }
            }
        }
    }

    /// The value of each element of a container of unknown length.
    pub(crate) fn each_of(&self, many: u32) -> Value {
        match *self.t.values.get(many) {
            Value::Absent => Value::Unknown,
            v => v,
        }
    }

    /// The items of a loop over the value.
    pub(crate) fn iteration(&mut self, v: Value, at: ExprId) -> Iteration {
        if let Some(items) = self.exact_elements(v) {
            return Iteration::Exact(items);
        }
        if let Value::Object(id) = v
            && let Some(rounds) = self.own_iteration(id, at)
        {
            return rounds;
        }
        let item = match v {
            Value::Many(m) => self.each_of(m),
            // Several alternatives with different elements.
            Value::Choice(_) => {
                let before = self.path;
                let item = self.each(v, &mut |i, v| i.some_element(v, at));
                self.path = before;
                item
            }
            Value::Tensor(id) => {
                let t = self.get_tensor(id);
                if t.certain {
                    self.tensor(Tensor { dims: t.dims.minus(1), role: Role::Plain, bytes: None, ..t })
                } else if self.is_out_of_file(t) {
                    self.part_of_file(t, at)
                } else {
                    self.part_of(t)
                }
            }
            Value::Outer(o) if self.has_rows(o) => self.row_outside(o, at),
            Value::Outer(o) => Value::Outer(self.outer_item(o, Value::Unknown)),
            Value::Object(id) => match (self.obj(id).kind, self.own(id)) {
                (ObjKind::List { .. } | ObjKind::Dict { .. }, Value::Many(m)) => self.each_of(m),
                (ObjKind::Loader | ObjKind::Items, item) => item,
                // The list has different lengths on different paths.
                (ObjKind::List { .. } | ObjKind::Dict { .. }, _) => Value::Unknown,
                _ => Value::Unknown,
            },
            Value::Host(Host::Text | Host::Number) | Value::Str(..) => Self::TEXT,
            // An item is a number or a row.
            Value::Host(Host::Array) => Self::NUMBERS,
            Value::Host(h) => Value::Host(h),
            _ => Value::Unknown,
        };
        Iteration::Any(match item {
            // An arbitrary element: it differs from the element that another expression gives.
            Value::Unknown => match self.result_of(at) {
                Value::Outer(o) => Value::Outer(self.outer_item(o, Value::Unknown)),
                v => v,
            },
            item => item,
        })
    }

    /// The element in the second pass of a loop. Outside containers give another element.
    pub(crate) fn next_item(&mut self, iterable: Value, item: Value, at: ExprId) -> Value {
        match (iterable, item) {
            (Value::Object(id), _) if self.obj(id).class.is_some() => item,
            (_, Value::Outer(_)) => match self.iteration(iterable, at) {
                Iteration::Any(v) => v,
                Iteration::Exact(_) => item,
            },
            _ => item,
        }
    }

    pub(crate) fn extend_list(&mut self, id: ObjId, more: Value, at: ExprId) {
        let more = self.next_round(more);
        let new = match (self.exact_elements(self.own(id)), self.exact_elements(more)) {
            (Some(mut a), Some(b)) => {
                a.extend(b);
                self.seq(&a)
            }
            (a, _) => {
                let item = self.some_element(more, at);
                let mut items = a.unwrap_or_default();
                if let Value::Many(m) = self.own(id) {
                    items.push(*self.t.values.get(m));
                }
                items.push(item);
                self.many_beside(&items)
            }
        };
        self.set_own(id, new);
    }

    /// Any number of values like these, each of which is present: a value appended in a loop is kept beside the others.
    pub(crate) fn many_beside(&mut self, items: &[Value]) -> Value {
        if let &[a, b] = items
            && a != b
            && self.blend(a, b) == a
        {
            return self.many(a);
        }
        let mut members: Vec<Value> = Vec::new();
        for v in items {
            let known = self.heap.side_by_side.get(v).map_or_else(|| vec![*v], Clone::clone);
            for v in known {
                if !members.contains(&v) {
                    members.push(v);
                }
            }
        }
        if let Some(&all) =
            items.iter().find(|v| self.heap.side_by_side.get(v).is_some_and(|m| m.len() == members.len()))
        {
            return self.many(all);
        }
        let mut joined = Value::Absent;
        for &v in members.iter().take(crate::flow::machine::MAX_ELEMENTS) {
            joined = self.blend(joined, v);
        }
        if matches!(joined, Value::Choice(_) | Value::Tensor(_)) && members.len() <= MAX_BESIDE {
            self.heap.side_by_side.insert(joined, members);
        }
        self.many(joined)
    }

    /// The values that are certainly among many values like this one.
    pub(crate) fn members(&self, v: Value) -> Vec<Value> {
        self.heap.side_by_side.get(&v).map_or_else(|| vec![v], Clone::clone)
    }
}

/// Whether the value is a literal key.
pub(crate) fn is_plain_key(v: Value) -> bool {
    matches!(v, Value::Str(..) | Value::Int(_))
}

/// The key without its origin.
pub(crate) fn plain_key(v: Value) -> Value {
    match v {
        Value::Str(s, _) => Value::Str(s, NO_ORIGIN),
        v => v,
    }
}

/// The maximum length of the pairs list, keys and values together, in which a repeated key is searched.
const MANY_KEYS: usize = 128;

/// `{"device": "cpu", **options}`: a repeated key has the last value, at the position of the first.
pub(crate) fn last_of_each_key(items: Vec<Value>) -> Vec<Value> {
    let mut pairs: Vec<Value> = Vec::with_capacity(items.len());
    for pair in items.chunks_exact(2) {
        let plain = is_plain_key(pair[0]);
        let same = |k: Value| plain && is_plain_key(k) && plain_key(k) == plain_key(pair[0]);
        match (0..pairs.len()).step_by(2).find(|&n| pairs.len() <= MANY_KEYS && same(pairs[n])) {
            Some(n) => pairs[n + 1] = pair[1],
            None => pairs.extend(pair),
        }
    }
    pairs
}
