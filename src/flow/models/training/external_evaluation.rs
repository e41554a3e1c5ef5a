//! Models of an unknown class in evaluation mode, if they are on an accelerator or receive tensors there.

use crate::flow::domain::diagram::{Cond, FALSE};
use crate::flow::domain::value::{Device, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::observers::modules::result_use::DIFFERENTIATES;
use crate::ir::{ExprId, FuncId};
use crate::link::{ModIdx, Resolved};

impl Interp<'_> {
    /// The model is in evaluation mode and called repeatedly, in a function whose caller certainly has gradients on.
    pub(crate) fn check_outer_evaluation(&mut self, model: Value, args: &Args, e: ExprId) {
        let Some(&since) = self.observed.evaluated.get(&model) else { return };
        let frame = self.here();
        let differentiates = self.speaks_of(DIFFERENTIATES, (frame.module, frame.func), &|_| true);
        if self.run.muted > 0
            || self.is_gradless()
            || !(differentiates || self.is_beside_training() || self.is_part_of_program())
            || !self.is_repeated()
            || self.thinks_of_gradients(since, e)
        {
            return;
        }
        let mut here = self.where_model_is(model, args, e);
        for (v, _) in args.values().collect::<Vec<_>>() {
            // `batch.to(device)` moves a batch of another library in place.
            let moved = if let Value::Outer(given) = v { self.as_moved(given).unwrap_or(v) } else { v };
            if let Value::Tensor(t) = moved {
                let on = self.where_moved(self.get_tensor(t).device);
                here = self.d.or(here, on);
            }
        }
        self.runs_with_graph(here, e);
    }

    /// When the program has moved the model itself to CUDA. A model that receives strings, arrays or numbers prepares its inputs, and may
    /// switch gradients off, too.
    fn where_model_is(&mut self, model: Value, args: &Args, e: ExprId) -> Cond {
        let prepares = |(v, _): (Value, ExprId)| matches!(v, Value::Host(_) | Value::Str(..) | Value::Int(_));
        if args.values().next().is_none() || args.values().any(prepares) {
            return FALSE;
        }
        let device = match model {
            Value::Outer(o) => self.moved_to(o, e),
            Value::Tensor(t) => Some(self.get_tensor(t).device),
            _ => None,
        };
        device.map_or(FALSE, |device| self.where_moved(device))
    }

    /// Does the call stack begin in the body of a file, so that all calls are known?
    fn is_part_of_program(&self) -> bool {
        let mut frame = self.here();
        while let (Some(_), Some(caller)) = (frame.site, frame.caller) {
            frame = &self.frames[caller.0 as usize];
        }
        frame.func.0 == 0
    }

    /// Does a caller on the stack also train? Gradients are on there.
    fn is_beside_training(&self) -> bool {
        let mut frame = self.here();
        while let (Some(_), Some(caller)) = (frame.site, frame.caller) {
            frame = &self.frames[caller.0 as usize];
            if self.trains(frame.module, frame.func) {
                return true;
            }
        }
        false
    }

    /// Does the function, or one that it calls by name, call `backward()`?
    fn trains(&self, module: ModIdx, func: FuncId) -> bool {
        if self.has_word(DIFFERENTIATES, (module, func), &|_| true) {
            return true;
        }
        let ir = &self.program.get(module).ir;
        ir.calls().any(|call| {
            ir.function_around(call.func) == func
                && matches!(self.program.resolve_expr(module, call.func),
                    Some(Resolved::Function(m, f)) if self.has_word(DIFFERENTIATES, (m, f), &|_| true))
        })
    }

    /// The condition under which it is on CUDA, or on a named device.
    fn where_moved(&mut self, device: crate::flow::domain::diagram::Dd) -> Cond {
        let moved: Vec<u32> = self
            .device_leaves(device)
            .into_iter()
            .filter(|(_, d, _)| matches!(d, Device::Cuda(_) | Device::CudaSome | Device::Named(_)))
            .map(|(leaf, ..)| leaf)
            .collect();
        if moved.is_empty() {
            return FALSE;
        }
        self.d.where_leaf(device, &mut |p| moved.contains(&p))
    }
}
