//! Modules in lists and dicts of which nobody knows any more what is in them: `[model] + others`.
//!
//! What a loop takes out of such a list may be any of them. Where it is moved in place, they have moved, or have not.

use super::super::value::{ObjId, Value};
use super::module::MOVES;
use super::{Interp, ObjKind};
use crate::ir::{Expr, ExprId};

/// How deep values are looked into.
const MAX_DEPTH: u32 = 3;

impl Interp<'_> {
    /// The value is somewhere where nobody finds it again.
    pub(super) fn mingles(&mut self, v: Value) {
        self.mingle(v, 0);
    }

    fn mingle(&mut self, v: Value, depth: u32) {
        match v {
            _ if depth > MAX_DEPTH => {}
            Value::Object(id) if self.watch.mingled.contains(&id) => {}
            Value::Object(id) if matches!(self.obj(id).kind, ObjKind::Module | ObjKind::ForeignModule(_)) => {
                self.watch.mingled.push(id);
            }
            Value::Object(id) if matches!(self.obj(id).kind, ObjKind::List { .. } | ObjKind::Dict { .. }) => {
                self.mingle(self.own(id), depth + 1);
            }
            Value::Seq(s) => self.seq_items(s).iter().for_each(|&v| self.mingle(v, depth + 1)),
            Value::Many(m) => self.mingle(*self.t.values.get(m), depth + 1),
            Value::Choice(_) => self.values_of(v).into_iter().for_each(|v| self.mingle(v, depth + 1)),
            _ => {}
        }
    }

    /// The modules that an object has under names: `getattr(self, "net_" + name)` may be any of them.
    pub(super) fn mingles_parts(&mut self, object: Value) {
        let Value::Object(id) = object else { return };
        if matches!(self.obj(id).kind, ObjKind::Instance | ObjKind::Module) {
            let held: Vec<Value> = self.obj(id).attrs.iter().map(|&(_, cell)| self.store.get(cell)).collect();
            held.into_iter().for_each(|v| self.mingles(v));
        }
    }

    /// `net.to(device)` for its effect alone, of which nobody knows what it is: it may be any module that was lost sight of.
    pub(super) fn moves_mingled(&mut self, e: ExprId) {
        if self.watch.mingled.is_empty() {
            return;
        }
        let ir = &self.linked().ir;
        let Expr::Call(call) = ir.expr(e) else { return };
        let Expr::Attr { base, name } = ir.expr(ir.call(call).func) else { return };
        if !MOVES.contains(&name.as_str()) || matches!(ir.expr(base), Expr::Call(_)) {
            return;
        }
        self.muted += 1;
        let moved = self.eval(base);
        self.muted -= 1;
        let unknown = |v: &Value| match *v {
            Value::Unknown | Value::Outer(_) => true,
            Value::Tensor(t) => !self.get_tensor(t).certain,
            _ => false,
        };
        if self.values_of(moved).iter().any(unknown) {
            let lost: Vec<ObjId> = self.watch.mingled.clone();
            lost.into_iter().for_each(|id| self.escape(Value::Object(id), 0));
        }
    }
}
