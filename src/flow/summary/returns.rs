//! Summaries of function results, computed once for all calls: "a tensor on the device of its first argument".
//!
//! Some calls are not worth following with their arguments, but the function may still create its result on the device of an argument.
//! Such a function is interpreted once with symbolic parameters, and each call substitutes its arguments.

use crate::flow::domain::value::{Device, OuterKey, Reason, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::entry::budget::Budget;
use crate::ir::{ExprId, FuncId};
use crate::link::ModIdx;

/// A part of a function's result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Gives {
    /// Unknown.
    Anything,
    /// A tensor on the device of the argument for this parameter.
    Beside(u16, Tensor),
    /// A sequence of results.
    Several(Box<[Gives]>),
}

impl Interp<'_> {
    /// The result of a call of a function that is not followed; `None` if the summary says nothing.
    pub(crate) fn by_summary(
        &mut self,
        module: ModIdx,
        func: FuncId,
        args: &Args,
        e: ExprId,
    ) -> Option<Value> {
        let function = self.program.get(module).ir.function(func);
        let plain = function.class.is_none() && function.decorators.len == 0 && !function.is_generator;
        if !plain || args.open || !self.relevance.makes_beside(module, func) {
            return None;
        }
        let gives = match self.calls.summaries.get(&(module, func)) {
            Some(known) => known.clone(),
            None => {
                // A recursive call gives an unknown result.
                self.calls.summaries.insert((module, func), Gives::Anything);
                let gives = self.summarized(module, func);
                self.calls.summaries.insert((module, func), gives.clone());
                gives
            }
        };
        (gives != Gives::Anything).then(|| self.given_here(&gives, module, func, args, e))
    }

    /// Interprets the function with symbolic parameters, and reverts all effects.
    fn summarized(&mut self, module: ModIdx, func: FuncId) -> Gives {
        let (mark, frame, frames) = (self.store.mark(), self.frame, self.frames.len());
        let (path, budget, deaf) = (self.path, self.budget, self.calls.callers.deaf);
        self.budget = Budget::of(crate::flow::machine::CALL_STEPS);
        self.run.muted += 1;
        self.calls.callers.deaf = true;
        let v = self.run(module, func, None, None, None, None, None, false);
        let gives = if self.run.exhausted { Gives::Anything } else { self.gives(v, module, func) };
        self.run.exhausted = false;
        self.calls.callers.deaf = deaf;
        self.run.muted -= 1;
        (self.path, self.budget) = (path, budget);
        self.store.undo(mark);
        self.frames.truncate(frames);
        self.frame = frame;
        gives
    }

    fn gives(&self, v: Value, module: ModIdx, func: FuncId) -> Gives {
        match v {
            Value::Tensor(id) => {
                let t = self.get_tensor(id);
                let place = self.d.as_leaf(t.device).map(|leaf| self.t.places.get(leaf).0);
                match place {
                    Some(Device::Of(o)) if t.certain => match self.t.get_outer(o).key {
                        OuterKey::Param { module: m, func: f, index } if (m, f) == (module, func) => {
                            Gives::Beside(index, t)
                        }
                        _ => Gives::Anything,
                    },
                    _ => Gives::Anything,
                }
            }
            Value::Seq(id) => {
                let parts: Box<[Gives]> =
                    self.seq_items(id).iter().map(|&v| self.gives(v, module, func)).collect();
                if parts.iter().all(|p| *p == Gives::Anything) {
                    Gives::Anything
                } else {
                    Gives::Several(parts)
                }
            }
            _ => Gives::Anything,
        }
    }

    fn given_here(&mut self, gives: &Gives, module: ModIdx, func: FuncId, args: &Args, e: ExprId) -> Value {
        match gives {
            Gives::Anything => Value::Unknown,
            Gives::Beside(index, t) => {
                let params = &self.program.get(module).ir.function(func).params;
                let given = params
                    .get(usize::from(*index))
                    .and_then(|p| args.get(usize::from(*index), p.name.as_str()))
                    .and_then(|(v, at)| self.tensor_place(v, at));
                match given {
                    Some((device, _)) => {
                        let device = self.because(device, e, Reason::Made);
                        self.tensor(Tensor { device, ..*t })
                    }
                    None => Value::Unknown,
                }
            }
            Gives::Several(parts) => {
                let values: Vec<Value> =
                    parts.iter().map(|p| self.given_here(p, module, func, args, e)).collect();
                self.seq(&values)
            }
        }
    }
}
