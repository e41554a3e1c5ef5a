//! Process groups of NCCL, which need CUDA.

use super::super::diagram::{Cond, FALSE, TRUE};
use super::super::event::{Bite, Kind, UseKind};
use super::super::value::Value;
use super::Interp;
use super::args::Args;
use crate::ir::ExprId;
use crate::span::Place;
use crate::torch;
use crate::world::World;

/// The call by which a process chooses its GPU.
pub(super) const CHOOSES: &str = "torch.cuda.set_device";

impl Interp<'_> {
    /// `init_process_group("nccl")` where no GPU may be. What follows is not reached without one.
    pub(super) fn process_group(&mut self, args: &Args, e: ExprId) {
        let Some((backend, at)) = args.get(0, "backend") else { return };
        let chosen = self.chosen_nccl(backend, at);
        if chosen == FALSE || self.caught_around() {
            return;
        }
        let there = self.available(None);
        let absent = self.d.not(there);
        let bad = self.d.and(chosen, absent);
        // Whatever picks the back end knows about devices.
        self.d.support(chosen, &mut self.deciders);
        let bite = self.bite(bad, true);
        let earlier = if bite.is_none() { self.shadow(bad, true) } else { None };
        self.deciders.clear();
        let place = self.place(e);
        if let Some(bite) = bite {
            let first = self.gpu_chosen_before();
            let kind = first.map_or(Kind::Nccl, |_| Kind::Use {
                what: format!("`{CHOOSES}()`"),
                origin: None,
                index: None,
                backend: None,
                how: UseKind::Query,
                inverted: false,
            });
            self.emit(kind, first.unwrap_or(place), bite, Vec::new());
            self.cast_shadow(first.unwrap_or(place), chosen, there);
            if let Some(first) = first {
                self.emit(Kind::Shadowed { first }, place, Bite::in_world(World::NoCuda), Vec::new());
            }
        } else if let Some(first) = earlier {
            self.emit(Kind::Shadowed { first }, place, Bite::in_world(World::NoCuda), Vec::new());
        }
    }

    /// `torch.cuda.set_device(args.local_rank)`: it raises without CUDA, unless the number is one below zero. In a process of a
    /// group it never is.
    pub(super) fn chooses_gpu(&mut self, path: crate::sym::Sym, e: ExprId) {
        if path.as_str() == CHOOSES && self.muted == 0 && !self.caught_around() {
            let place = self.place(e);
            self.watch.gpus_chosen.push((self.frame, self.path, place));
        }
    }

    /// Where the function has chosen its GPU before, on whatever way here.
    fn gpu_chosen_before(&mut self) -> Option<Place> {
        let chosen = std::mem::take(&mut self.watch.gpus_chosen);
        let (here, path) = (self.frame, self.path);
        let first =
            chosen.iter().find(|&&(frame, when, _)| frame == here && self.d.implies(path, when)).map(|c| c.2);
        self.watch.gpus_chosen = chosen;
        first
    }

    /// Where is this back end NCCL, by what [`Self::is_nccl`] says of each that it may be?
    pub(super) fn chosen_nccl(&mut self, backend: Value, at: ExprId) -> Cond {
        let chosen = match backend {
            Value::Choice(_) => self.each(backend, &mut |i, v| Value::Bool(i.is_nccl(v, at))),
            v => Value::Bool(self.is_nccl(v, at)),
        };
        if let Value::Bool(chosen) = chosen { chosen } else { FALSE }
    }

    /// Is it the name of NCCL, or an option that has that name unless the user says otherwise?
    fn is_nccl(&mut self, v: Value, at: ExprId) -> Cond {
        let nccl = |v| matches!(v, Value::Str(s, _) if torch::is_nccl(s.as_str()));
        match v {
            Value::Outer(o) => match self.t.get_outer(o).default {
                Some(default) if nccl(default) => self.outer_equal(o, default, at),
                _ => FALSE,
            },
            v if nccl(v) => TRUE,
            _ => FALSE,
        }
    }
}
