//! Methods of lists, sets and dicts.

use crate::flow::domain::value::{NO_ORIGIN, ObjId, Reason, Tensor, Value};
use crate::flow::heap::containers::MAX_REPEATED;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{BinOp, ExprId};
use crate::sym::Sym;
use crate::words::Words;

static ONLY_READ: Words = Words::of("only read a dict");

/// Where a new element goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Last,
    /// Before the element with this index. A negative index counts from the end.
    At(i64),
    Unknown,
}

impl Place {
    /// The index of the new element in a list of this length. `list.insert` clamps indices that are out of range.
    fn index(self, length: usize) -> Option<usize> {
        match self {
            Self::Last => Some(length),
            Self::At(n) => match usize::try_from(n) {
                Ok(n) => Some(n.min(length)),
                Err(_) => {
                    Some(length.saturating_sub(usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX)))
                }
            },
            Self::Unknown => None,
        }
    }
}

impl Interp<'_> {
    pub(crate) fn list_method(&mut self, id: ObjId, name: Sym, args: &Args, e: ExprId) -> Value {
        let first = args.positional.first().copied();
        match (name.as_str(), first) {
            ("append", Some(new)) => {
                self.check_accumulated(new.0, e);
                self.add_element(id, new, Place::Last, e)
            }
            ("appendleft", Some(new)) => self.add_element(id, new, Place::At(0), e),
            ("add", Some(new)) => self.add_element(id, new, Place::Unknown, e),
            ("insert", Some((index, _))) if let Some(&new) = args.positional.get(1) => {
                let place = if let Value::Int(n) = index { Place::At(n) } else { Place::Unknown };
                self.add_element(id, new, place, e)
            }
            ("extend", Some((v, at))) => {
                self.extend_list(id, v, at);
                Value::None
            }
            // `update` of a set.
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

    /// Adds an element to a list, or to a set, which has no order.
    fn add_element(&mut self, id: ObjId, (v, at): (Value, ExprId), place: Place, e: ExprId) -> Value {
        let v = match self.is_module_object(id) {
            // `ParameterList` makes parameters from tensors.
            true => self.as_parameters(v),
            false if self.constructing() => self.kept(v, at, 1),
            false => v,
        };
        if let Some(new) = self.with_room_for_some(id, v) {
            self.set_own(id, new);
            return Value::None;
        }
        let new = match self.own(id) {
            Value::Seq(s) => {
                let mut items = self.seq_items(s).to_vec();
                // Inside a loop the number of elements is unknown, unless the same round has made the list.
                let index = place.index(items.len()).filter(|_| self.is_gone_through(id, e));
                items.insert(index.unwrap_or(items.len()), v);
                if index.is_some() { self.seq(&items) } else { self.many_beside(&items) }
            }
            Value::Many(m) => {
                let old = *self.t.values.get(m);
                self.many_beside(&[old, v])
            }
            _ => self.many(Value::Unknown),
        };
        self.set_own(id, new);
        Value::None
    }

    pub(crate) fn dict_method(&mut self, id: ObjId, name: Sym, args: &Args, e: ExprId) -> Value {
        if !ONLY_READ.has(name.as_str()) {
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
                // A batch encoding moves in place and returns itself.
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

    /// Applies `f` to each value in `v`: to the elements of sequences, at any depth, and to all alternatives. `f`
    /// handles objects itself.
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
        // `defaults | {"device": device}`: the right operand wins.
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

    /// Records values that certainly are in a list together, whatever else is in it. For tensors of added lists, the
    /// first may stand for all of them.
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
