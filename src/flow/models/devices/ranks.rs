//! Process numbers and physical GPU numbers as device indices.

use crate::finding::Code;
use crate::flow::domain::diagram::Cond;
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Host, Value};
use crate::flow::machine::{Interp, Test};
use crate::ir::{Expr, ExprId};
use crate::span::Place;
use crate::sym::Sym;
use crate::world::Backend;

impl Interp<'_> {
    /// Do the program's processes connect to the local machine? Then the global rank equals the local rank.
    fn on_one_machine(&self) -> bool {
        let here = |s: &str| {
            matches!(s, "localhost" | "127.0.0.1") || s.contains("://localhost") || s.contains("://127.")
        };
        let files = [&self.program.get(self.entry).ir, &self.linked().ir];
        files.into_iter().any(|ir| ir.strings.iter().any(|s| here(s.as_str())))
    }

    /// Does the path imply `rank == 0`? Rank 0 is also a valid index on its machine.
    fn is_first_process(&mut self) -> bool {
        let first = Test::Compare(0, Value::Host(Host::Rank), Value::Int(0));
        let Some(&first) = self.tests.atoms.get(&first) else { return false };
        let first = self.d.atom(first);
        self.d.implies(self.path, first)
    }

    /// `rank == args.local_rank`, which holds under the condition `same`: there the two numbers are equal.
    pub(crate) fn ranks_compared(&mut self, (a, b): (Value, Value), same: Cond, e: ExprId) {
        let global = |v: Value| v == Value::Host(Host::Rank);
        let ir = &self.linked().ir;
        let Expr::Compare { left, right, .. } = ir.expr(e) else { return };
        let other = match (global(a), global(b)) {
            (true, false) => right,
            (false, true) => left,
            _ => return,
        };
        let local = |name: Sym| name.as_str().to_ascii_lowercase().contains("local");
        let says = |e: ExprId| match ir.expr(e) {
            Expr::Attr { name, .. } | Expr::Str(name) => local(name),
            Expr::Var(_) => ir.variable_of(e).is_some_and(local),
            _ => false,
        };
        let parts = ir.exprs_in(other).filter_map(|n| u32::try_from(n).ok()).map(ExprId);
        if parts.into_iter().any(says) {
            self.devices.ranks_alike.push(same);
        }
    }

    /// Does the path imply that the global rank equals the local rank?
    fn is_local_rank(&mut self) -> bool {
        let alike = self.devices.ranks_alike.clone();
        alike.into_iter().any(|same| self.d.implies(self.path, same))
    }

    /// A number is used as the index of a device of CUDA or of another back end.
    pub(crate) fn check_index_meaning(&mut self, v: Value, e: ExprId, backend: Option<Backend>) {
        let kind = match v {
            Value::Choice(_) if self.is_plainly_rank(v) => {
                self.each(v, &mut |i, v| {
                    i.check_index_meaning(v, e, backend);
                    Value::Absent
                });
                return;
            }
            Value::Host(Host::Rank)
                if !self.on_one_machine() && !self.is_first_process() && !self.is_local_rank() =>
            {
                Kind::GlobalRank
            }
            // Visible numbers exist only for GPUs.
            _ if backend.is_some() => return,
            // The program has just made this number the only visible GPU.
            Value::Outer(o) if self.is_physical(o) => {
                Kind::OutsideVisible { index: None, visible: None, set: self.devices.visible_at }
            }
            Value::Host(Host::PhysicalGpu) => {
                if self.visible_in_order() {
                    return;
                }
                Kind::OutsideVisible { index: None, visible: None, set: self.devices.visible_at }
            }
            _ => return,
        };
        let there = self.available(backend);
        if let Some(bite) = self.bite(there, false) {
            let place = self.place(e);
            let first = matches!(kind, Kind::GlobalRank).then(|| self.rank_used_before(place)).flatten();
            let kind = first.map_or(kind, |first| Kind::Shadowed { first, origin: None });
            self.emit(kind, place, bite, Vec::new());
        }
    }

    /// The place where this function or a caller has used the global rank as an index before, on every path to this point.
    /// If there is none, stores `place`.
    fn rank_used_before(&mut self, place: Place) -> Option<Place> {
        let mut around = Some(self.frame);
        while let Some(frame) = around {
            let used: Vec<(Cond, Place)> =
                self.devices.ranks_used.iter().filter(|u| u.0 == frame).map(|u| (u.1, u.2)).collect();
            if let Some(&(_, first)) =
                used.iter().find(|&&(when, at)| at != place && self.d.implies(self.path, when))
            {
                return Some(first);
            }
            around = self.frames[frame.0 as usize].caller;
        }
        if !self.is_silenced(&[Code(405)], place, None) {
            self.devices.ranks_used.push((self.frame, self.path, place));
        }
        None
    }
}
