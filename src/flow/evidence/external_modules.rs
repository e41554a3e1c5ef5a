//! Modules whose class is outside the interpreted code. A value that is moved with `.to()` and then called is a module,
//! and the move has changed it in place.

use rustc_hash::FxHashSet;

use crate::flow::domain::diagram::Cond;
use crate::flow::domain::diagram::Dd;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::Meeting;
use crate::flow::domain::value::Tensor;
use crate::flow::domain::value::{
    Device, NO_ORIGIN, OriginId, Outer, OuterId, OuterKey, Reason, Role, Value,
};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::observers::mismatch::meet::{Party, Rule};
use crate::ir::{ArgKind, Expr, ExprId};
use crate::link::ModIdx;
use crate::sym::Sym;
use crate::words::Words;

/// Methods that modules have and tensors do not have.
static ONLY_MODULES: Words = Words::of("only modules have");

impl Interp<'_> {
    /// Handles `x.name(…)` of an outside value. A value with a method that only modules have is a module, with weights
    /// on some device.
    pub(crate) fn shown_as_module(&mut self, o: OuterId, name: Sym) {
        if ONLY_MODULES.has(name.as_str()) {
            self.evidence.shown_modules.insert(o);
            if let Some(Value::Tensor(moved)) = self.as_moved(o) {
                self.is_module_there(self.get_tensor(moved).device);
            }
        }
    }

    /// The same for the result of a move.
    pub(crate) fn moved_is_module(&mut self, device: Dd, name: Sym) {
        if ONLY_MODULES.has(name.as_str()) {
            self.is_module_there(device);
        }
    }

    /// Whether the outside value may be a module: nothing shows that it is a tensor, a batch or similar data. Loop
    /// items and items with a number as key are data: `.to()` moves all their tensors.
    pub(crate) fn may_be_anything(&self, o: OuterId) -> bool {
        let encodes = |module: ModIdx, e: ExprId| {
            let ir = &self.program.get(module).ir;
            let Expr::Call(call) = ir.expr(e) else { return false };
            ir.call(call)
                .args
                .iter()
                .any(|a| matches!(a.kind, ArgKind::Keyword(name) if name.as_str() == "return_tensors"))
        };
        let data = match self.t.get_outer(o).key {
            OuterKey::Item { key, .. } => !matches!(key, Some(Value::Str(..))),
            OuterKey::Result { module, expr, .. } => encodes(module, expr),
            _ => false,
        };
        self.evidence.shown_modules.contains(&o)
            || !data && !self.is_tensorish(o) && !self.is_of_batch_outside(o) && !self.is_drawn_from(o)
    }

    /// Whether the value is a part, at any depth, of a loop item.
    fn is_drawn_from(&self, o: OuterId) -> bool {
        let mut at = o;
        while let OuterKey::Item { base, key } = self.t.get_outer(at).key {
            if key.is_none() {
                return true;
            }
            at = base;
        }
        false
    }

    /// The result of a move of a value that may be a module.
    pub(crate) fn in_one_piece(&mut self, moved: Value) -> Value {
        match moved {
            Value::Tensor(id) if !self.get_tensor(id).certain => {
                self.tensor(Tensor { role: Role::Whole, ..self.get_tensor(id) })
            }
            moved => moved,
        }
    }

    /// Records that the value that was moved to this device is a module.
    fn is_module_there(&mut self, device: Dd) {
        let origins = self.device_leaves(device).into_iter().map(|(.., origin)| origin);
        self.evidence.moved_modules.extend(origins.filter(|&o| o != NO_ORIGIN));
    }

    /// An outside value is wrapped here. From here on it moves its inputs to its own device.
    pub(crate) fn scatters_outside(&mut self, wrapped: Value) {
        match wrapped {
            Value::Outer(o) => {
                self.evidence.scattering_outside.insert(o);
                if let Some(Value::Tensor(moved)) = self.as_moved(o) {
                    self.scatters_there(self.get_tensor(moved).device);
                }
            }
            Value::Tensor(t) if !self.get_tensor(t).certain => self.scatters_there(self.get_tensor(t).device),
            _ => {}
        }
    }

    /// Handles `nn.DataParallel(model)` of an outside module that a move has left on the CPU. With one GPU, the wrapper
    /// moves the module there. With more, the first call raises (torch/nn/parallel/data_parallel.py). So its results
    /// are never on the CPU.
    pub(crate) fn outside_in_parallel(&mut self, wrapped: Value, e: ExprId) -> Value {
        if wrapped == Value::Unknown {
            let wrapper = self.result_of(e);
            self.scatters_outside(wrapper);
            return wrapper;
        }
        let Value::Tensor(id) = wrapped else { return wrapped };
        let t = self.get_tensor(id);
        if t.certain {
            return wrapped;
        }
        let places = &self.t.places;
        let left = self.d.where_leaf(t.device, &mut |p| places.get(p).0 == Device::Cpu);
        let there = self.at_least(1);
        let moved = self.d.and(left, there);
        let place = self.place(e);
        let origin = self.origin(place, Reason::Moved, NO_ORIGIN);
        let cuda = self.at(Device::Cuda(None), origin);
        let device = self.ite_device(moved, cuda, t.device);
        self.scatters_there(device);
        self.tensor(Tensor { device, ..t })
    }

    /// Records that the value that was moved to this device moves its inputs there as well.
    fn scatters_there(&mut self, device: Dd) {
        let origins = self.device_leaves(device).into_iter().map(|(.., origin)| origin);
        self.evidence.scattering_moves.extend(origins.filter(|&o| o != NO_ORIGIN));
    }

    /// Joins alternatives whose decision diagram would be too large. If each is an outside value, unchanged or moved,
    /// the result is one such value with one device.
    pub(crate) fn joined_outside(&mut self, cond: Cond, then: Dd, orelse: Dd) -> Value {
        let mut leaves = Vec::new();
        self.d.leaves(then, &mut leaves);
        self.d.leaves(orelse, &mut leaves);
        let values: Vec<Value> = leaves.iter().map(|&leaf| *self.t.values.get(leaf)).collect();
        let (mut scatters, mut shown) = (false, true);
        for v in values {
            match v {
                Value::Outer(o) if !self.t.get_outer(o).varies => {
                    scatters |= self.evidence.scattering_outside.contains(&o);
                    shown &= self.evidence.shown_modules.contains(&o);
                }
                Value::Tensor(t) if !self.get_tensor(t).certain => {
                    let device = self.get_tensor(t).device;
                    scatters |= self.is_among(device, &self.evidence.scattering_moves);
                    shown &= self.is_among(device, &self.evidence.moved_modules);
                }
                _ => return Value::Unknown,
            }
        }
        let key = OuterKey::Joined { cond, then, orelse };
        let o = self.t.outer(key.clone(), || Outer::new(key, ""));
        if scatters {
            self.evidence.scattering_outside.insert(o);
        }
        if shown {
            self.evidence.shown_modules.insert(o);
        }
        Value::Outer(o)
    }

    /// Whether one of the moves in `moves` is the origin of one of these devices.
    fn is_among(&self, device: Dd, moves: &FxHashSet<OriginId>) -> bool {
        self.device_leaves(device).iter().any(|(.., origin)| moves.contains(origin))
    }

    /// Records that `model.to(device)` gave `moved`. If the value is a module, its variable refers to the moved module
    /// from here on.
    pub(crate) fn goes_along(&mut self, o: OuterId, moved: Value) {
        let Value::Tensor(id) = moved else { return };
        let device = self.get_tensor(id).device;
        if self.evidence.shown_modules.contains(&o) {
            self.is_module_there(device);
        }
        if self.evidence.scattering_outside.contains(&o) {
            self.scatters_there(device);
        }
        let cell = match self.evidence.outer_moves.get(&o) {
            Some(&cell) => cell,
            // On a path without the move, it stays where it was.
            None => self.store.alloc_with(Value::Outer(o)),
        };
        self.evidence.outer_moves.insert(o, cell);
        self.store.set(cell, moved);
    }

    /// The outside value that is called, in the state after its last move. Tensors cannot be called, so it is a module.
    pub(crate) fn as_moved(&self, o: OuterId) -> Option<Value> {
        let &cell = self.evidence.outer_moves.get(&o)?;
        Some(self.store.get(cell)).filter(|&v| v != Value::Outer(o))
    }

    /// The device of an outside module after the last move of it, or of a module that contains it. `None` if the
    /// program has not moved it.
    pub(crate) fn moved_to(&mut self, o: OuterId, e: ExprId) -> Option<Dd> {
        let mut at = o;
        loop {
            if let Some(moved) = self.as_moved(at) {
                return self.tensor_place(moved, e).map(|(device, _)| device);
            }
            let OuterKey::Attr { base, .. } = self.t.get_outer(at).key else { return None };
            at = base;
        }
    }

    /// The result of `model(x)` for an outside value, if its device is known.
    pub(crate) fn call_outside_module(&mut self, model: OuterId, args: &Args, e: ExprId) -> Option<Value> {
        let device = match self.as_moved(model) {
            Some(moved) => {
                let (device, _) = self.tensor_place(moved, e)?;
                self.call_moved(device, args, e)
            }
            None => self.where_its_inputs_are(model, args)?,
        };
        Some(self.possible_tensor(device))
    }

    /// Handles a call of a value that was moved to this device: it is a module, and its result is on that device. The
    /// inputs must be on it only if more shows that it is a module, because a pipeline moves its inputs itself.
    pub(crate) fn call_moved(&mut self, device: Dd, args: &Args, e: ExprId) -> Dd {
        // A callee that takes a tokenizer's numbers is no pipeline: pipelines take text.
        if !self.is_among(device, &self.evidence.moved_modules) && !self.takes_tokens(args)
            || self.is_among(device, &self.evidence.scattering_moves)
        {
            return device;
        }
        let module = Party { expr: e, device, dims: Dims::SOME, rule: Rule::STRICT };
        let mut parties = vec![module];
        for (v, at) in args.values() {
            let Value::Tensor(t) = v else { continue };
            let t = self.get_tensor(t);
            if t.dims == Dims::ZERO {
                continue;
            }
            // If one argument is on the module's device, the module may want the others on the host, for example
            // lengths.
            if !self.may_clash(device, t.device) {
                return device;
            }
            if t.certain && self.was_left_on_the_host(t.device) {
                parties.extend(self.party(v, at, Rule::STRICT));
            }
        }
        let refused = self.meet(Meeting::ModuleInput, "the module", e, &parties);
        if refused { self.unless_refused(&parties, device) } else { device }
    }

    /// The device on which an outside module must be, because all its arguments are there.
    fn where_its_inputs_are(&mut self, model: OuterId, args: &Args) -> Option<Dd> {
        if !self.evidence.shown_modules.contains(&model) {
            return None;
        }
        let mut place = None;
        for (v, at) in args.values() {
            let device = match v {
                Value::Tensor(_) | Value::Choice(_) => self.tensor_place(v, at)?.0,
                Value::None | Value::Bool(_) | Value::Int(_) | Value::Host(_) | Value::Str(..) => continue,
                _ => return None,
            };
            if !self.was_placed(device) || place.is_some_and(|d| d != device) {
                return None;
            }
            place = Some(device);
        }
        if self.evidence.scattering_outside.contains(&model) {
            return place.map(|device| self.on_accelerators_only(device));
        }
        place
    }

    /// Keeps the devices that are accelerators and makes all others unknown: it is not known where other values are
    /// moved.
    fn on_accelerators_only(&mut self, device: Dd) -> Dd {
        let unknown = self.t.places.add((Device::Unknown, NO_ORIGIN));
        let places = &self.t.places;
        self.d.map(device, &mut |p| if places.get(p).0.is_accelerator() { p } else { unknown })
    }

    /// Whether the value is data that came to the host from outside, such as a batch or an array, and was not moved
    /// since. Tensors that the program creates or moves for an unknown model are excluded: their device may be
    /// intended.
    fn was_left_on_the_host(&self, device: Dd) -> bool {
        self.is_somewhere(device)
            && self.device_leaves(device).iter().all(|&(_, d, origin)| {
                let chain = self.chain(origin);
                let has = |reason: Reason| chain.iter().any(|step| step.reason == reason);
                d != Device::Cpu
                    || (has(Reason::Batch) || has(Reason::Host) || has(Reason::Typed)) && !has(Reason::Moved)
            })
    }

    /// Whether in every world the value is on a device that the program chose, or is a part of a batch.
    fn was_placed(&self, device: Dd) -> bool {
        let known = |d: Device| match d {
            Device::Of(part) => self.drawn_with(part).is_some(),
            d => matches!(d, Device::Cpu | Device::Named(_)) || d.is_accelerator(),
        };
        self.device_leaves(device).iter().all(|&(_, d, _)| known(d))
    }

    /// Whether in every world the value is on the CPU or a CUDA device.
    fn is_somewhere(&self, device: Dd) -> bool {
        let known = |d: Device| matches!(d, Device::Cpu | Device::Cuda(_) | Device::CudaSome);
        self.device_leaves(device).iter().all(|&(_, d, _)| known(d))
    }
}
