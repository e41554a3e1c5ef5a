//! Lists that each round of a loop adds to, one way where there is nothing in it and another way where there is.
//!
//! `losses.append(torch.tensor(0.))` for an image without boxes and `losses.append(loss)` for the others: which of the
//! two a round does is a matter of the data, so that after the loop the list has both kinds side by side. Two branches
//! that depend on anything else, a flag or the type of what is given, exclude each other as a rule.

use super::super::atom::{Atom, AtomId};
use super::super::diagram::Cond;
use super::super::value::{ObjId, Value};
use super::frame::LoopFrame;
use super::{Interp, ObjKind};
use crate::ir::{CmpOp, Expr, Whole};
use crate::span::Place;

/// More than these are not looked at.
const MAX_APPENDED: usize = 8;

impl Interp<'_> {
    /// Something is put into a list in a round of a loop.
    pub(super) fn note_appended(&mut self, id: ObjId, v: Value) {
        let path = self.path;
        let Some(l) = self.here_mut().loops.last_mut() else { return };
        if !l.exact && l.appended.len() < MAX_APPENDED && !l.appended.contains(&(id, v, path)) {
            l.appended.push((id, v, path));
        }
    }

    /// After a loop: what its rounds have put into a list in turn stands side by side in it.
    pub(super) fn side_by_side_after(&mut self, frame: &LoopFrame, before: Cond) {
        let mut lists: Vec<ObjId> = frame.appended.iter().map(|&(id, ..)| id).collect();
        lists.dedup();
        for id in lists {
            let of_it: Vec<(Value, Cond)> =
                frame.appended.iter().filter(|a| a.0 == id).map(|&(_, v, path)| (v, path)).collect();
            let different = of_it.iter().any(|&(v, _)| v != of_it[0].0);
            if !different || !of_it.iter().all(|&(_, path)| self.depends_on_emptiness(path, before)) {
                continue;
            }
            let (ObjKind::List { .. }, Value::Many(_) | Value::Choice(_)) = (self.obj(id).kind, self.own(id))
            else {
                continue;
            };
            let Some(mut items) = frame.entered.and_then(|m| self.items_at(id, m)) else { continue };
            items.extend(of_it.iter().map(|&(v, _)| v));
            let all = self.many_beside(&items);
            self.set_own(id, all);
        }
    }

    /// What was in a list at that time.
    fn items_at(&self, id: ObjId, then: super::Mark) -> Option<Vec<Value>> {
        match self.store.at(then, self.obj(id).own) {
            Value::Seq(s) => Some(self.seq_items(s).to_vec()),
            Value::Many(m) => Some(vec![*self.t.values.get(m)]),
            _ => None,
        }
    }

    /// Is there nothing that a path depends on, beyond another, but whether something is empty?
    fn depends_on_emptiness(&mut self, path: Cond, before: Cond) -> bool {
        let beyond = self.d.given(path, before);
        let mut atoms: Vec<AtomId> = Vec::new();
        self.d.support(beyond, &mut atoms);
        atoms.iter().all(|&a| match *self.atoms.get(a) {
            Atom::Opaque { place } => self.asks_for_emptiness(place),
            Atom::Past => true,
            _ => false,
        })
    }

    /// `boxes.shape[0] == 0`, `len(boxes) > 0`
    fn asks_for_emptiness(&self, place: Place) -> bool {
        let ir = &self.linked().ir;
        let asked = ir
            .exprs
            .iter()
            .zip(&ir.expr_spans)
            .find(|&(e, &at)| at == place.span && matches!(e, Expr::Compare { .. }));
        let (true, Some((&Expr::Compare { op, left, right }, _))) = (place.file == ir.file, asked) else {
            return false;
        };
        let counts = match ir.expr(left) {
            Expr::Attr { name, .. } => name.as_str() != "ndim",
            Expr::Call(c) => {
                !matches!(ir.expr(ir.call(c).func), Expr::Attr { name, .. } if name.as_str() == "dim")
            }
            _ => true,
        };
        let number = ir.expr(right);
        counts
            && match op {
                CmpOp::Eq | CmpOp::NotEq | CmpOp::Gt | CmpOp::LtE => number == Expr::Int(Whole(0)),
                CmpOp::Lt | CmpOp::GtE => number == Expr::Int(Whole(1)),
                _ => false,
            }
    }
}
