//! Items that are removed from lists and dicts, and lists with a maximum length.

use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::ExprId;
use crate::sym::Sym;

/// The attribute that marks a list with a maximum length.
const BOUNDED: &str = " bounded";

impl Interp<'_> {
    /// `items.pop(n)`: removes and gives one element, by default the last.
    pub(crate) fn pop_element(&mut self, id: ObjId, number: Option<Value>, e: ExprId) -> Value {
        let some = self.some_element(Value::Object(id), e);
        let Value::Seq(s) = self.own(id) else { return self.drawn_apart(some) };
        let mut items = self.seq_items(s).to_vec();
        let at = match number {
            None => items.len().checked_sub(1),
            Some(Value::Int(n)) => place_of(n, items.len()),
            Some(_) => None,
        };
        // In a loop the number of removed elements is unknown.
        if let Some(at) = at.filter(|_| self.is_gone_through(id, e)) {
            let item = items.remove(at);
            let rest = self.seq(&items);
            self.set_own(id, rest);
            return item;
        }
        let rest = self.many_of(&items);
        self.set_own(id, rest);
        some
    }

    /// `d.pop(key)` and `del d[key]`: removes the key.
    pub(crate) fn drop_key(&mut self, id: ObjId, key: Value) {
        self.keys_change(id);
        let Value::Seq(s) = self.own(id) else { return };
        let same = |k: Value| match (k, key) {
            (Value::Str(a, _), Value::Str(b, _)) => a == b,
            (a, b) => a == b,
        };
        let items = self.seq_items(s);
        let rest: Vec<Value> = items.chunks(2).filter(|pair| !same(pair[0])).flatten().copied().collect();
        let rest = self.seq(&rest);
        self.set_own(id, rest);
    }

    /// Runs `del base[key]`.
    pub(crate) fn delete_item(&mut self, base: Value, key: Value, e: ExprId) {
        let Value::Object(id) = base else { return };
        match self.obj(id).kind {
            crate::flow::machine::frame::ObjKind::Dict { .. } => self.drop_key(id, key),
            crate::flow::machine::frame::ObjKind::List { .. } => {
                self.pop_element(id, Some(key), e);
            }
            _ => {}
        }
    }

    /// `deque(items, maxlen=n)`: a list that drops elements beyond its maximum length.
    pub(crate) fn make_deque(&mut self, args: &Args, e: ExprId) -> Value {
        let list = self.builtin(Sym::new("list"), &args.only(0, "iterable"), e);
        let bounded = args.get(1, "maxlen").is_some_and(|(v, _)| v != Value::None);
        if let (Value::Object(id), true) = (list, bounded) {
            self.set_field(id, Sym::new(BOUNDED), Value::None);
        }
        list
    }

    /// The content of a list with a maximum length after `v` is added: any of the old and new elements. `None` for a
    /// list without a maximum length.
    pub(crate) fn with_room_for_some(&mut self, id: ObjId, v: Value) -> Option<Value> {
        if self.get_field(id, Sym::new(BOUNDED)) == Value::Absent {
            return None;
        }
        Some(match self.own(id) {
            Value::Seq(s) => {
                let mut items = self.seq_items(s).to_vec();
                items.push(v);
                self.many_of(&items)
            }
            Value::Many(m) => {
                let held = *self.t.values.get(m);
                let held = self.blend(held, v);
                self.many(held)
            }
            _ => self.many(Value::Unknown),
        })
    }
}

/// The position of the element with this index, which may count from the end.
fn place_of(n: i64, len: usize) -> Option<usize> {
    let n = if n < 0 { n + i64::try_from(len).ok()? } else { n };
    usize::try_from(n).ok().filter(|&at| at < len)
}
