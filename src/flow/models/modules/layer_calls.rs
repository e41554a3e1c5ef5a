//! Calls of PyTorch's own layers, and of modules whose class is unknown.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::Meeting;
use crate::flow::domain::value::{Device, NO_ORIGIN, ObjId, OriginId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::modules::calls::INPUTS;
use crate::flow::observers::mismatch::meet::{Party, Rule};
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::{ModuleOp, Share, State};

impl Interp<'_> {
    /// A call of a module without source: its tensor inputs must be on its device.
    pub(crate) fn call_unknown_module(&mut self, id: ObjId, args: &Args, e: ExprId) -> Value {
        let device = self.module_device(id, 0);
        let module = Party { expr: e, device, dims: Dims::SOME, rule: Rule::STRICT };
        let mut parties = vec![module];
        let meets = self.libraries.keepers.get(&id);
        let hidden = matches!(self.obj(id).kind, ObjKind::ForeignModule(None));
        let inputs: Vec<(Value, ExprId)> = match meets {
            Some(those) => {
                those.iter().filter_map(|a| args.get(usize::from(a.position), a.name.as_str())).collect()
            }
            None if hidden => self.plain_inputs(args),
            None => args.values().collect(),
        };
        let what = if meets.is_some() { "its call" } else { "the module" };
        for (v, at) in inputs {
            // Only values that are certainly tensors take part, because unknown modules accept many kinds of values.
            if self.is_certainly_tensor(v) {
                parties.extend(self.party(v, at, Rule::STRICT));
            }
        }
        // For example, a subclass of `nn.Linear` without a `forward` of its own.
        let inherits = self.obj(id).class.is_some_and(|k| {
            let info = self.program.class(k);
            info.externals
                .iter()
                .any(|&p| crate::torch::module(p).is_some_and(|m| m.name.as_str() != "torch.nn.Module"))
                && !info.unknown_base
                && self.program.find_method(k, self.known.forward).is_none()
        });
        let known = inherits || matches!(self.obj(id).kind, ObjKind::ForeignModule(None));
        let refused = known && self.meet(Meeting::ModuleInput, what, e, &parties);
        // A module without weights is on no device, and its device says nothing about its results.
        let rests = self.obj(id).kind == ObjKind::Module && self.is_cpu(device) && !self.has_weights(id, 0);
        let device = match (refused, rests) {
            (true, _) => self.unless_refused(&parties, device),
            (false, true) => self.unknown_device(),
            (false, false) => device,
        };
        self.possible_tensor(device)
    }

    /// The arguments that a module of an unknown class probably computes with: the first one, those with an input's name, and
    /// those with several dimensions. The others may only control the module: a timestep, a flag, sizes, lengths.
    fn plain_inputs(&self, args: &Args) -> Vec<(Value, ExprId)> {
        let ir = &self.linked().ir;
        let input = |name: Sym| {
            let name = name.as_str();
            name == "x" || INPUTS.iter().any(|word| name.contains(word))
        };
        let called = |e: ExprId| ir.last_name(e).is_some_and(input);
        let table = |v: Value| matches!(v, Value::Tensor(t) if self.get_tensor(t).dims.least() > 1);
        let keyword = |e: ExprId| args.keywords.iter().any(|&(name, _, at)| at == e && input(name));
        let first = args.positional.first().copied();
        let wanted = |&(v, e): &(Value, ExprId)| first == Some((v, e)) || called(e) || keyword(e) || table(v);
        // A value that replaces an input of the surrounding module is an input.
        let stands_in = |v: Value| {
            let values = self.values_of(v);
            values.iter().any(|v| matches!(v, Value::Outer(o) if self.t.get_outer(*o).with.is_some()))
        };
        args.values().filter(|given| wanted(given) || stands_in(given.0)).collect()
    }

    /// Is it certainly a tensor and no number? An argument that the caller may omit, so that this function makes it, counts, too.
    fn is_certainly_tensor(&self, v: Value) -> bool {
        let tensor = |t| self.get_tensor(t).certain && self.get_tensor(t).dims != Dims::ZERO;
        match v {
            Value::Tensor(t) => tensor(t),
            Value::Choice(_) => {
                let values = self.values_of(v);
                values.iter().all(|&v| match v {
                    Value::Tensor(t) => tensor(t),
                    Value::Outer(o) => self.t.get_outer(o).varies,
                    _ => false,
                }) && values.iter().any(|v| matches!(v, Value::Tensor(_)))
            }
            _ => false,
        }
    }

    /// The states of a recurrent layer, as single values. A state may be a choice between a tensor that this code made and an element of
    /// an outside tuple.
    fn states(&mut self, v: Value) -> Vec<Value> {
        let Value::Choice(d) = v else { return self.exact_elements(v).unwrap_or_default() };
        let mut leaves = Vec::new();
        self.d.leaves(d, &mut leaves);
        let values: Vec<Value> = leaves.iter().map(|&leaf| *self.t.values.get(leaf)).collect();
        let most = values.iter().filter_map(|&v| self.exact_elements(v)).map(|items| items.len()).max();
        let item = |i: &Self, v: Value, n: usize| {
            i.exact_elements(v).and_then(|items| items.get(n).copied()).unwrap_or(Value::Unknown)
        };
        (0..most.unwrap_or(0)).map(|n| self.each(v, &mut |i, v| item(i, v, n))).collect()
    }

    pub(crate) fn call_torch_module(
        &mut self,
        id: ObjId,
        op: &'static ModuleOp,
        args: &Args,
        e: ExprId,
    ) -> Value {
        let name = crate::flow::models::tensors::functions::short(op.name);
        let mut parties = Vec::new();
        for rule in &op.forward {
            let found = rule.position.and_then(|p| args.get(usize::from(p), rule.name.as_str()));
            let Some((v, at)) = found.or_else(|| args.keyword(rule.name.as_str())) else { continue };
            if let Value::Outer(o) = v
                && !rule.list
            {
                self.evidence.tensor_proofs.insert(o);
            }
            let r = Rule::from(rule);
            let states = self.states(v);
            if states.is_empty() {
                parties.extend(self.party(v, at, r));
            }
            for item in states {
                parties.extend(self.party(item, at, r));
            }
        }
        let inputs = parties.len();
        // A tensor that the constructor received moves with the module, but may have stayed behind.
        let stateful = self.is_stateful(id, op);
        if op.state == State::Yes {
            for (name, cell) in self.obj(id).attrs.clone() {
                let v = self.store.get(cell);
                // The layer does not use any other attribute that the program added.
                if self.is_registered_tensor(v) || op.constructor.iter().any(|p| p.tensor && p.name == name) {
                    parties.extend(self.party(v, e, Rule::STRICT));
                }
            }
        }
        if stateful {
            let device = self.module_device(id, 0);
            parties.insert(0, Party { expr: e, device, dims: Dims::SOME, rule: Rule::STRICT });
        }
        let bound: Vec<Party> =
            parties.iter().filter(|p| p.rule.share != Share::Unknown || stateful).copied().collect();
        if stateful {
            self.lives_with_layers(&bound);
        }
        let refused = self.meet(Meeting::ModuleInput, &format!("`{name}`"), e, &bound);
        let inputs = parties[parties.len() - inputs..].to_vec();
        let device = self.result_device(&inputs);
        let device = if stateful { self.beside_weights(id, device) } else { device };
        let device = if refused { self.unless_refused(&bound, device) } else { device };
        let dims = self.dims_given_by(id, name);
        let out = self.plain_tensor(device, dims);
        match name {
            "LSTM" => {
                let state = self.seq(&[out, out]);
                self.seq(&[out, state])
            }
            "LSTMCell" | "GRU" | "RNN" | "MultiheadAttention" => self.seq(&[out, out]),
            _ => out,
        }
    }

    /// The device of the result of a layer with weights. If the device of its inputs is unknown, it is the device of the weights.
    fn beside_weights(&mut self, id: ObjId, inputs: Dd) -> Dd {
        let weights = self.module_device(id, 0);
        let (places, outers) = (&self.t.places, &self.t.outers);
        let nowhere = |(device, origin): (Device, OriginId)| match device {
            Device::Unknown => origin == NO_ORIGIN,
            // The result of an unknown call.
            Device::Of(o) => !outers[o.0 as usize].varies && outers[o.0 as usize].with.is_none(),
            _ => false,
        };
        let beside = self.d.zip(inputs, weights, &mut |x, y| match places.get(y).0 {
            Device::Cuda(_) | Device::CudaSome if nowhere(*places.get(x)) => y,
            _ => x,
        });
        beside.unwrap_or(inputs)
    }

    /// Inputs of `forward` that are passed to a layer with weights must be on the device of the weights, for every caller.
    fn lives_with_layers(&mut self, parties: &[Party]) {
        for party in parties {
            for (_, device, _) in self.device_leaves(party.device) {
                if let Device::Of(o) = device
                    && self.t.get_outer(o).with.is_some()
                {
                    self.modules.with_layers.insert(o);
                }
            }
        }
    }

    /// `nn.Sequential(…)(x)`: calls its children one after the other.
    pub(crate) fn call_sequential(&mut self, id: ObjId, args: &Args, e: ExprId) -> Value {
        let wrapper = !self.calls_wrapped(id, e);
        if wrapper {
            self.check_wrapped(id);
        }
        self.check_evaluation(id, e);
        let scattered = if wrapper { self.scattered(id, args) } else { None };
        let args = scattered.as_ref().unwrap_or(args);
        let Some(children) = self.exact_elements(self.own(id)) else {
            return self.call_unknown_module(id, args, e);
        };
        let Some(&(mut v, at)) = args.positional.first() else { return self.result_of(e) };
        self.unless_within(id, args, e, &mut |i| {
            for &child in &children {
                let args = Args { positional: vec![(v, at)], ..Args::default() };
                v = i.call_value(child, &args, e);
            }
            v
        })
    }
}
