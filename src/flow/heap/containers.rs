//! Sequences, lists, dicts: elements, indexing, iteration.

use crate::flow::domain::value::{Host, NO_ORIGIN, ObjId, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::calls::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::loops::Iteration;
use crate::ir::{BinOp, ExprId};
use crate::sym::Sym;

/// With more different values than this a list's are not told apart.
const MAX_BESIDE: usize = 4;

/// A list that is repeated to more elements than this has any number of them.
const MAX_REPEATED: usize = 8;

impl Interp<'_> {
    /// A container's content as a value: `Seq`, `Many` or something unknown.
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

    /// What a loop goes over, of a dict that has other keys here than there: each with its condition. Not where
    /// objects are in it: moving those that nobody has put there changes nothing for anybody, while a condition
    /// on the move would have to be found again wherever they are used.
    fn listed_either(&mut self, content: Value, pairs: bool) -> Value {
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

    /// The same of a dict that has other keys here than there: all that it may have.
    fn all_pairs(&self, id: ObjId) -> Option<Vec<Value>> {
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

    /// As many elements as a target list wants.
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

    /// Any one element.
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

    /// What each element is of a container of nobody knows how many.
    pub(crate) fn each_of(&self, many: u32) -> Value {
        match *self.t.values.get(many) {
            Value::Absent => Value::Unknown,
            v => v,
        }
    }

    /// What a loop over the value goes over.
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
            // One thing or another, whose elements are as different.
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
                // One list here and a longer one there.
                (ObjKind::List { .. } | ObjKind::Dict { .. }, _) => Value::Unknown,
                _ => Value::Unknown,
            },
            Value::Host(Host::Text | Host::Number) | Value::Str(..) => Self::TEXT,
            // A number or a row.
            Value::Host(Host::Array) => Self::NUMBERS,
            Value::Host(h) => Value::Host(h),
            _ => Value::Unknown,
        };
        Iteration::Any(match item {
            // Some element of it: not the one that another look at it gives.
            Value::Unknown => match self.result_of(at) {
                Value::Outer(o) => Value::Outer(self.outer_item(o, Value::Unknown)),
                v => v,
            },
            item => item,
        })
    }

    /// The element of the second pass: outside containers give another one.
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

    /// Any number of values like these, of which each is there: what is appended in a loop stands beside the rest.
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

    /// What is certainly among many values like this one.
    pub(crate) fn members(&self, v: Value) -> Vec<Value> {
        self.heap.side_by_side.get(&v).map_or_else(|| vec![v], Clone::clone)
    }

    pub(crate) fn list_method(&mut self, id: ObjId, name: Sym, args: &Args, e: ExprId) -> Value {
        let first = args.positional.first().copied();
        match (name.as_str(), first) {
            ("append" | "appendleft", Some((v, at))) => {
                let first = name.as_str() == "appendleft";
                self.check_accumulated(v, e);
                let v = match self.is_module_object(id) {
                    // `ParameterList` makes parameters of tensors.
                    true => self.as_parameters(v),
                    false if self.constructing() => self.kept(v, at, 1),
                    false => v,
                };
                if let Some(new) = self.with_room_for_some(id, v) {
                    self.set_own(id, new);
                    return Value::None;
                }
                // Inside a loop the number of elements is not known, but of a list that its round has made.
                let new = match (self.own(id), self.is_gone_through(id, e)) {
                    (Value::Seq(s), true) => {
                        let mut items = self.seq_items(s).to_vec();
                        items.insert(if first { 0 } else { items.len() }, v);
                        self.seq(&items)
                    }
                    (Value::Seq(s), false) => {
                        let mut items = self.seq_items(s).to_vec();
                        items.push(v);
                        self.many_beside(&items)
                    }
                    (Value::Many(m), _) => {
                        let old = *self.t.values.get(m);
                        self.many_beside(&[old, v])
                    }
                    _ => self.many(Value::Unknown),
                };
                self.set_own(id, new);
                Value::None
            }
            ("extend", Some((v, at))) => {
                self.extend_list(id, v, at);
                Value::None
            }
            // Of a set.
            ("update", Some(_)) => {
                for &(v, at) in &args.positional {
                    self.extend_list(id, v, at);
                }
                Value::None
            }
            ("reverse", _) => {
                if let Value::Seq(s) = self.own(id) {
                    let mut items = self.seq_items(s).to_vec();
                    items.reverse();
                    let new =
                        if self.is_gone_through(id, e) { self.seq(&items) } else { self.many_of(&items) };
                    self.set_own(id, new);
                }
                Value::None
            }
            ("pop", number) => self.pop_element(id, number.map(|(v, _)| v), e),
            ("popleft", _) => self.pop_element(id, Some(Value::Int(0)), e),
            ("copy", _) => {
                let content = self.own(id);
                Value::Object(self.object(ObjKind::List { module: false }, None, content))
            }
            ("clear", _) => {
                let empty = self.seq(&[]);
                self.set_own(id, empty);
                Value::None
            }
            _ => {
                let content = self.own(id);
                if let Some(items) = self.exact_elements(content) {
                    let many = self.many_of(&items);
                    self.set_own(id, many);
                }
                self.result_of(e)
            }
        }
    }

    pub(crate) fn dict_method(&mut self, id: ObjId, name: Sym, args: &Args, e: ExprId) -> Value {
        if !matches!(name.as_str(), "items" | "values" | "keys" | "get" | "copy") {
            self.keys_change(id);
        }
        let content = self.own(id);
        let any = |i: &mut Self| match content {
            Value::Many(m) => i.each_of(m),
            _ => Value::Unknown,
        };
        if let ("items" | "values", Value::Choice(_)) = (name.as_str(), content)
            && let listed @ Value::Choice(_) = self.listed_either(content, name.as_str() == "items")
            && self.values_of(listed).iter().all(|way| matches!(way, Value::Seq(_)))
        {
            return listed;
        }
        match name.as_str() {
            "items" => match self.all_pairs(id) {
                Some(items) => {
                    let pairs: Vec<Value> = items.chunks(2).map(|p| self.seq(p)).collect();
                    self.seq(&pairs)
                }
                None => {
                    let v = any(self);
                    let pair = self.seq(&[Self::TEXT, v]);
                    self.many(pair)
                }
            },
            "values" => match self.all_pairs(id) {
                Some(items) => {
                    let values: Vec<Value> = items.iter().skip(1).step_by(2).copied().collect();
                    self.seq(&values)
                }
                None => {
                    let v = any(self);
                    self.many(v)
                }
            },
            "keys" => match self.dict_items(Value::Object(id)) {
                Some(items) => {
                    let keys: Vec<Value> = items.iter().step_by(2).copied().collect();
                    self.seq(&keys)
                }
                None => self.many(Value::Unknown),
            },
            "get" | "pop" if !args.positional.is_empty() => {
                let (key, default) = (args.positional[0].0, args.positional.get(1).map(|&(v, _)| v));
                if let Value::Choice(_) = self.own(id) {
                    let default = default.or((name.as_str() == "get").then_some(Value::None));
                    return self.item_of_either(id, key, default.unwrap_or(Value::Absent));
                }
                let found = match self.missing(
                    id,
                    key,
                    default.or((name.as_str() == "get").then_some(Value::None)),
                    e,
                ) {
                    Some(v) => v,
                    None => self.dict_get(id, key, e),
                };
                if name.as_str() == "pop" {
                    self.drop_key(id, key);
                }
                found
            }
            "setdefault" if !args.positional.is_empty() => {
                let default = args.positional.get(1).map_or(Value::None, |a| a.0);
                self.set_default(id, args.positional[0].0, default, e)
            }
            "update" => {
                for (&(v, _), more) in args.positional.iter().zip(1..) {
                    let _: i32 = more;
                    match self.dict_items(v) {
                        Some(items) => {
                            for pair in items.chunks(2) {
                                self.set_object_item(id, pair[0], pair[1]);
                            }
                        }
                        None => {
                            let unknown = self.many(Value::Unknown);
                            self.set_own(id, unknown);
                        }
                    }
                }
                for &(k, v, _) in &args.keywords {
                    self.set_object_item(id, Value::Str(k, NO_ORIGIN), v);
                }
                Value::None
            }
            "copy" => Value::Object(self.object(ObjKind::Dict { module: false }, None, content)),
            "to" => {
                // A batch encoding moves in place and gives itself.
                if let Some(device) = self.target_of_to(args, e) {
                    self.check_use(device, e, crate::flow::domain::event::UseKind::Transfer, "`.to()`");
                    let device = self.because(device, e, Reason::Moved);
                    let moved = self.move_all(content, device);
                    self.set_own(id, moved);
                }
                Value::Object(id)
            }
            _ => self.result_of(e),
        }
    }

    pub(crate) fn move_all(&mut self, v: Value, device: crate::flow::domain::diagram::Dd) -> Value {
        self.each_within(v, &mut |i, v| match v {
            Value::Tensor(t) => {
                let t = i.get_tensor(t);
                i.tensor(Tensor { device, ..t })
            }
            v => v,
        })
    }

    /// The value with what `f` makes of everything in it: of the elements of sequences, however deep, and of all alternatives.
    /// Objects are left to `f`.
    pub(crate) fn each_within(&mut self, v: Value, f: &mut dyn FnMut(&mut Self, Value) -> Value) -> Value {
        match v {
            Value::Seq(s) => {
                let items: Vec<Value> = self.seq_items(s).iter().map(|&v| self.each_within(v, f)).collect();
                self.seq(&items)
            }
            Value::Many(m) => {
                let item = *self.t.values.get(m);
                let item = self.each_within(item, f);
                self.many(item)
            }
            Value::Choice(_) => self.each(v, &mut |i, v| i.each_within(v, f)),
            v => f(self, v),
        }
    }

    pub(crate) fn object_binary(&mut self, op: BinOp, a: Value, b: Value, e: ExprId) -> Value {
        if let Some(v) = self.own_binary(op, a, b, e) {
            return v;
        }
        // `defaults | {"device": device}`: what is on the right counts.
        if op == BinOp::BitOr
            && let (Some(mut x), Some(y)) = (self.dict_items(a), self.dict_items(b))
        {
            x.extend(y);
            let dict = self.seq(&[]);
            let id = self.object(ObjKind::Dict { module: false }, None, dict);
            for pair in x.chunks(2) {
                self.set_object_item(id, pair[0], pair[1]);
            }
            return Value::Object(id);
        }
        if op == BinOp::Add
            && let (Some(mut x), Some(y)) = (self.exact_elements(a), self.exact_elements(b))
        {
            x.extend(y);
            return self.list(&x);
        }
        if op == BinOp::Add
            && let (Some(mut x), Some(y)) = (self.list_members(a), self.list_members(b))
        {
            x.extend(y);
            self.note_together(&x);
            let content = self.many_beside(&x);
            return Value::Object(self.object(ObjKind::List { module: false }, None, content));
        }
        if op == BinOp::Mul {
            for (v, times) in [(a, b), (b, a)] {
                // `[torch.zeros(1)] * 3`
                if let (Some(items), Value::Int(n)) = (self.exact_elements(v), times)
                    && let Ok(n) = usize::try_from(n)
                    && items.len().saturating_mul(n) <= MAX_REPEATED
                {
                    return self.list(&items.repeat(n));
                }
                if let Some(items) = self.exact_elements(v) {
                    let many = self.many_of(&items);
                    return Value::Object(self.object(ObjKind::List { module: false }, None, many));
                }
            }
        }
        self.result_of(e)
    }
}

impl Interp<'_> {
    /// What is certainly in a list, be there more of it or not.
    /// The tensors of lists that are added to one: the first may stand for all of them.
    fn note_together(&mut self, members: &[Value]) {
        let tensor = |v: &Value| if let Value::Tensor(t) = *v { Some(t) } else { None };
        let mut tensors = members.iter().filter_map(tensor);
        let Some(first) = tensors.next() else { return };
        let others: Vec<_> = tensors.filter(|&t| t != first).collect();
        if !others.is_empty() {
            self.heap.put_together.entry(first).or_default().extend(others);
        }
    }

    fn list_members(&self, v: Value) -> Option<Vec<Value>> {
        match self.content(v) {
            Value::Many(m) => match *self.t.values.get(m) {
                Value::Unknown | Value::Absent => None,
                item => Some(self.members(item)),
            },
            _ => self.exact_elements(v),
        }
    }
}

/// Is it a key that is written down?
pub(crate) fn is_plain_key(v: Value) -> bool {
    matches!(v, Value::Str(..) | Value::Int(_))
}

/// The key without where it was written.
pub(crate) fn plain_key(v: Value) -> Value {
    match v {
        Value::Str(s, _) => Value::Str(s, NO_ORIGIN),
        v => v,
    }
}
