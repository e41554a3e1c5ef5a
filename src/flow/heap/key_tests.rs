//! Tests whether a key is in a dict whose keys are not all known. The answer is the same until the program changes the
//! dict, and `not in` is its opposite.

use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::value::{NO_ORIGIN, ObjId, OuterId, OuterKey, Value};
use crate::flow::heap::containers::{is_plain_key, plain_key};
use crate::flow::machine::{Interp, Test};
use crate::ir::{Expr, ExprId};
use crate::sym::Sym;

impl Interp<'_> {
    /// The condition of `key in container`, for a list or dict that the program made. `None` for a key that is not a
    /// literal.
    pub(crate) fn has_key(&mut self, id: ObjId, key: Value, e: ExprId) -> Option<Cond> {
        if !is_plain_key(key) {
            return None;
        }
        let version = *self.heap.asked_keys.entry(id).or_insert(0);
        let key = plain_key(key);
        let asked = self.seq(&[Value::Object(id), Value::Int(version)]);
        let there = self.named_test(Test::Compare(32, asked, key), e);
        let put = self.heap.keys_put.get(&(id, version, key)).copied();
        Some(put.map_or(there, |put| self.d.or(there, put)))
    }

    /// Records that `d[key] = …` ran on a dict whose keys are not all known.
    pub(crate) fn key_is_put(&mut self, id: ObjId, key: Value) {
        if !is_plain_key(key) || !self.is_plain_dict(id) {
            return;
        }
        let version = *self.heap.asked_keys.entry(id).or_insert(0);
        let before = self.heap.keys_put.get(&(id, version, plain_key(key))).copied().unwrap_or(FALSE);
        let put = self.d.or(before, self.path);
        self.heap.keys_put.insert((id, version, plain_key(key)), put);
    }

    /// Records that the content of the list or dict may change here.
    pub(crate) fn keys_change(&mut self, id: ObjId) {
        if !self.heap.asked_keys.is_empty()
            && let Some(version) = self.heap.asked_keys.get_mut(&id)
        {
            *version += 1;
        }
    }

    /// The condition of `"key" in settings`, for an outside value. A key that the program has written is in it.
    pub(crate) fn has_outside(&mut self, o: OuterId, name: Sym, e: ExprId) -> Cond {
        let key = Value::Str(name, NO_ORIGIN);
        let text = format!(" has {:?}", name.as_str());
        let part = self.t.known_outer(&OuterKey::Item { base: o, key: Some(key) });
        let written = part.map(|part| (part, self.read_outside(part)));
        let came = self.flag(Test::Compare(9, Value::Outer(o), key), o, &text, e);
        let Some((part, written)) = written else { return came };
        let was_put = |v: Value| v != Value::Outer(part);
        let put = match written {
            Value::Choice(d) => {
                let values = &self.t.values;
                self.d.where_leaf(d, &mut |leaf| was_put(*values.get(leaf)))
            }
            v if was_put(v) => TRUE,
            _ => return came,
        };
        self.d.or(came, put)
    }

    /// `d` of `key in d.keys()`, which is the same test as `key in d`.
    pub(crate) fn asked_for_keys(&mut self, e: ExprId) -> Option<Value> {
        let ir = &self.linked().ir;
        let Expr::Compare { right, .. } = ir.expr(e) else { return None };
        let Expr::Call(call) = ir.expr(right) else { return None };
        let call = ir.call(call);
        let Expr::Attr { base, name } = ir.expr(call.func) else { return None };
        if name.as_str() != "keys" || !call.args.is_empty() {
            return None;
        }
        self.run.muted += 1;
        let v = self.eval(base);
        self.run.muted -= 1;
        matches!(v, Value::Object(_) | Value::Outer(_)).then_some(v)
    }
}
