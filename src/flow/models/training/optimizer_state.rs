//! The state of optimizers. It stays on the device that the parameters had when the state was made or loaded.

use crate::flow::domain::diagram::Cond;
use crate::flow::domain::diagram::Dd;
use crate::flow::domain::event::{Kind, LeftBehind};
use crate::flow::domain::value::OuterId;
use crate::flow::domain::value::{Device, NO_ORIGIN, ObjId, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{Expr, ExprId, Real};
use crate::span::Place;

/// An optimizer that the program has made.
pub(crate) struct Optimizer {
    pub(crate) id: ObjId,
    pub(crate) modules: Vec<ObjId>,
    /// Outside values that are modules whose parameters it received.
    pub(crate) outside: Vec<OuterId>,
    pub(crate) place: Place,
    /// The name of its class.
    pub(crate) name: &'static str,
    /// Whether its constructor makes the state, on the parameters' device at that time.
    pub(crate) eager: bool,
    /// Whether it has a state after its first step. `state` is that state.
    pub(crate) stateful: bool,
    pub(crate) state: Option<State>,
    /// Where the program replaced some of its parameters.
    pub(crate) replaced: Option<Place>,
}

/// An optimizer's state. `device` is the parameters' device when the state was made or loaded, at `place`.
#[derive(Clone, Copy)]
pub(crate) struct State {
    pub(crate) device: Dd,
    pub(crate) place: Place,
    /// The path condition at that point.
    pub(crate) path: Cond,
}

/// Optimizers that always have a state for each parameter after the first step.
pub(crate) const STATEFUL: &[&str] =
    &["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adadelta", "RMSprop", "Rprop", "ASGD", "Adafactor"];

impl Interp<'_> {
    /// Has an optimizer of this class a state after its first step? SGD has one only with a momentum.
    pub(crate) fn steps_make_state(&self, name: &str, args: &Args) -> bool {
        let zero = |v: Value, at: ExprId| match self.linked().ir.expr(at) {
            Expr::Float(Real(number)) => number == 0.0,
            _ => matches!(v, Value::Int(0) | Value::None),
        };
        STATEFUL.contains(&name)
            || name == "SGD" && args.get(2, "momentum").is_some_and(|(v, at)| !zero(v, at))
    }

    /// From here on the optimizer has a state, on the parameters' present device.
    pub(crate) fn state_made(&mut self, id: ObjId, e: ExprId) {
        let place = self.place(e);
        let Some(n) = self.modules.optimizers.iter().position(|o| o.id == id && o.stateful) else { return };
        if self.run.muted > 0 {
            return;
        }
        let device = match self.modules.optimizers[n].modules.first() {
            Some(&module) if self.has_weights(module, 0) => self.module_device(module, 0),
            Some(_) => return,
            None => match self.outside_before_move(n, e) {
                Some(device) => device,
                None => return,
            },
        };
        self.modules.optimizers[n].state = Some(State { device, place, path: self.path });
    }

    /// The CPU, if the optimizer is for outside modules that no code has moved yet. A program that moves them later
    /// has them on the CPU until then.
    fn outside_before_move(&mut self, n: usize, e: ExprId) -> Option<Dd> {
        let outside = self.modules.optimizers[n].outside.clone();
        let resting = !outside.is_empty() && outside.iter().all(|&o| self.moved_to(o, e).is_none());
        resting.then(|| self.at(Device::Cpu, NO_ORIGIN))
    }

    /// The present device of the optimizer's parameters.
    fn parameters_now(&mut self, n: usize, e: ExprId) -> Option<Dd> {
        let optimizer = &self.modules.optimizers[n];
        match (optimizer.modules.first(), optimizer.outside.first()) {
            (Some(&module), _) => Some(self.module_device(module, 0)),
            (None, Some(&o)) => self.moved_to(o, e),
            (None, None) => None,
        }
    }

    /// A step of an optimizer. Reports a state that is still on the CPU although the parameters have moved.
    pub(crate) fn steps_with_state(&mut self, id: ObjId, e: ExprId) {
        let Some(n) = self.modules.optimizers.iter().position(|o| o.id == id) else { return };
        let Some(State { device, place, path }) = self.modules.optimizers[n].state else {
            if !self.modules.optimizers[n].modules.is_empty() && self.differentiates_here() {
                self.state_made(id, e);
            }
            return;
        };
        let Some(now) = self.parameters_now(n, e) else { return };
        let accelerator =
            |d| matches!(d, Device::Cuda(_) | Device::CudaSome | Device::Other(_) | Device::Named(_));
        let moved =
            self.device_leaves(now).into_iter().filter(|&(_, d, _)| accelerator(d)).find_map(
                |(_, _, origin)| self.chain(origin).into_iter().find(|s| s.reason == Reason::Moved),
            );
        let places = &self.t.places;
        let left = self.d.zip(device, now, &mut |x, y| {
            u32::from(places.get(x).0 == Device::Cpu && accelerator(places.get(y).0))
        });
        let (Some(moved), Some(left)) = (moved, left) else { return };
        let there = self.available(None);
        let bad = self.d.and(left, there);
        // Only on paths that have made the state.
        let before = self.path;
        self.path = self.d.and(before, path);
        if let Some(bite) = self.bite(bad, false) {
            let optimizer = self.modules.optimizers[n].name;
            let kind = Kind::OptimizerFirst { optimizer, then: moved.place, left: LeftBehind::LaterState };
            self.emit(kind, place, bite, Vec::new());
            self.optimizer_escapes(id);
        }
        self.path = before;
    }

    /// Does the file differentiate? A step without gradients makes no state.
    fn differentiates_here(&self) -> bool {
        let attributes = &self.linked().ir.attributes;
        attributes.iter().any(|name| matches!(name.as_str(), "backward" | "manual_backward"))
    }

    /// Unknown code has the optimizer or reads its state, so it may move the state.
    pub(crate) fn optimizer_escapes(&mut self, id: ObjId) {
        for o in self.modules.optimizers.iter_mut().filter(|o| o.id == id) {
            (o.stateful, o.state) = (false, None);
        }
    }
}
