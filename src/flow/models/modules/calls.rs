//! Calls of modules.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::Meeting;
use crate::flow::domain::value::{Closure, Device, NO_ORIGIN, ObjId, OriginId, OuterId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::calls::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::observers::mixed_devices::{Party, Rule};
use crate::flow::query::file_scan::packs_sequences;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::{ModuleOp, Share, State};

/// What the names of a model's inputs have in them, in Hugging Face's libraries and elsewhere.
const INPUTS: &[&str] = &[
    "input",
    "pixel",
    "image",
    "embeds",
    "hidden_states",
    "features",
    "labels",
    "attention_mask",
    "token_type_ids",
];
/// Modules further inside one another than these are not followed.
const MAX_WITHIN: usize = 64;

impl Interp<'_> {
    /// Is that where a module is whose call leads here, and for the same reason?
    pub(crate) fn is_of_called_module(&self, device: Device, origin: OriginId) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if frame.site.is_none() || !frame.class.is_some_and(|k| self.is_module_class(k)) {
                return false;
            }
            if let (true, Value::Object(id)) = (frame.module_call, frame.receiver)
                && let Value::Device(d) = self.own(id)
                && self.device_leaves(d).iter().any(|&(_, at, why)| at == device && why == origin)
            {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// `module(args)`
    pub(crate) fn call_module(&mut self, id: ObjId, args: &Args, e: ExprId) -> Value {
        let this = Value::Object(id);
        if !self.has_hooks(this) {
            return self.call_module_itself(id, args, e);
        }
        let args = self.hooks_before(this, args, e);
        let out = self.call_module_itself(id, &args, e);
        self.hooks_after(this, &args, out, e)
    }

    fn call_module_itself(&mut self, id: ObjId, args: &Args, e: ExprId) -> Value {
        let kind = self.obj(id).kind;
        self.module_is_called(self.obj(id).class);
        let wrapper = !self.calls_wrapped(id, e);
        if wrapper && !matches!(kind, ObjKind::List { .. }) {
            self.check_wrapped(id);
        }
        self.check_evaluation(id, e);
        if self.modules.hooked.contains(&id) {
            return self.result_of(e);
        }
        let scattered = if wrapper { self.scattered(id, args) } else { None };
        let args = scattered.as_ref().unwrap_or(args);
        let device = self.module_device(id, 0);
        self.device_work(device);
        self.check_timed(id, device, e);
        self.autocast_meets(device, e);
        self.module_in_autocast(device, args, e);
        // `net.forward = function`
        let own = self.get_field(id, self.known.forward);
        if own != Value::Absent {
            return self.unless_within(id, args, e, &mut |i| i.call_value(own, args, e));
        }
        match kind {
            ObjKind::ForeignModule(Some(op)) => return self.call_torch_module(id, op, args, e),
            ObjKind::List { module: true } => return self.call_sequential(id, args, e),
            ObjKind::Module
                if !self.returns_several(id) && !self.demands_lengths(id) && self.nothing_new(id, args) =>
            {
                let device = self.module_device(id, 0);
                return self.possible_tensor(device);
            }
            ObjKind::Module => {
                // Its layers show what they are given to be tensors, and where each of several results is.
                let awaited =
                    args.values().any(|(v, _)| matches!(v, Value::Outer(o) if self.awaits_proof(o)));
                if awaited || self.returns_several(id) || self.is_given_from_elsewhere(id, args) {
                    self.build_now(id, e);
                }
                let key = self.obj(id).class;
                let forward = key.and_then(|k| self.program.find_method(k, self.known.forward));
                if let (Some((m, f)), Some(key)) = (forward, key) {
                    if self.is_moved_for_user(key) && self.obj(id).outer.is_none() {
                        return self.result_of(e);
                    }
                    // `Net.forward = function`
                    if let Some(replaced) = self.replaced_in_class(key, self.known.forward) {
                        let function = self.bind_method(replaced, id, key, self.known.forward, e);
                        return self.call_value(function, args, e);
                    }
                    let called = Closure { module: m, func: f, frame: None };
                    if let Some(v) = self.through_decorators(called, Some(Value::Object(id)), args, e) {
                        return v;
                    }
                    let class = self
                        .program
                        .get(m)
                        .ir
                        .function(f)
                        .class
                        .map(|class| crate::link::ClassKey { module: m, class });
                    if self.run.depth < crate::flow::machine::MAX_DEPTH
                        && !self.is_heavy(m, f)
                        && !(self.run.symbolic
                            && self.relevance.calls(m, f) > crate::flow::machine::MANY_CALLS)
                    {
                        let site = self.place(e);
                        return self.run(
                            m,
                            f,
                            None,
                            Some(Value::Object(id)),
                            class,
                            Some(args),
                            Some(site),
                            true,
                        );
                    }
                    // What takes too many steps to be followed may make its result anywhere.
                    if self.run.depth >= crate::flow::machine::MAX_DEPTH || self.is_heavy(m, f) {
                        return self.result_unfollowed(args, e);
                    }
                }
            }
            _ => {}
        }
        self.call_unknown_module(id, args, e)
    }

    /// What the call of a module gives whose `forward` is in sight and was given up.
    fn result_unfollowed(&mut self, args: &Args, e: ExprId) -> Value {
        let made = self.result_of(e);
        self.is_made_of(made, args);
        made
    }

    /// Does a function of the project have anything to do with devices?
    pub(crate) fn may_move(&self, hook: Value) -> bool {
        let function = match hook {
            Value::Closure(c) => Some(c),
            Value::Bound(b) => self.t.bounds.get(b.0).function,
            _ => return true,
        };
        function.is_none_or(|c| {
            let closure = self.t.closures.get(c.0);
            self.relevance.is_telling(closure.module, closure.func)
        })
    }

    /// Is its class in a file that packs sequences? That wants lengths on the CPU, and those that `forward` is given as they are
    /// may be there: what a caller has made of its own inputs is not.
    fn demands_lengths(&self, id: ObjId) -> bool {
        self.obj(id).class.is_some_and(|key| packs_sequences(&self.program.get(key.module).ir))
    }

    /// Does the call say no more than the module's `forward` says when it is interpreted for itself: everything
    /// on the module's own device, wherever that is?
    pub(crate) fn nothing_new(&mut self, id: ObjId, args: &Args) -> bool {
        let device = self.module_device(id, 0);
        let Some(leaf) = self.d.as_leaf(device) else { return false };
        let Device::Of(module) = self.t.places.get(leaf).0 else { return false };
        args.values().all(|(v, at)| match v {
            Value::Tensor(_) | Value::Choice(_) => match self.tensor_place(v, at) {
                Some((d, _)) => self.d.as_leaf(d).is_some_and(|p| match self.t.places.get(p).0 {
                    Device::Of(o) => o == module || self.t.get_outer(o).with == Some(module),
                    Device::Unknown => true,
                    _ => false,
                }),
                None => true,
            },
            Value::Outer(o) => !self.awaits_proof(o),
            _ => true,
        })
    }

    /// Is it given a tensor that is certainly not where the module is? Only its layers can tell whether that is refused: it
    /// may move its inputs, or have nothing that they meet.
    fn is_given_from_elsewhere(&mut self, id: ObjId, args: &Args) -> bool {
        if !self.calls.unbuilt.contains_key(&id) {
            return false;
        }
        let own = self.module_device(id, 0);
        // A part that its module has not taken along is one that this keeps where `.to()` does not see it.
        if self.in_module() && self.is_as_made(own) {
            return false;
        }
        args.values().any(|(v, at)| match v {
            Value::Tensor(_) | Value::Choice(_) => {
                self.tensor_place(v, at).is_some_and(|(d, _)| self.may_clash(own, d))
            }
            _ => false,
        })
    }

    /// Has something been found that matters only if this is a tensor?
    fn awaits_proof(&self, o: OuterId) -> bool {
        !self.is_tensorish(o) && self.events.iter().any(|p| p.needs.contains(&o))
    }

    /// A module whose code is not in sight: its tensor inputs must be where it is.
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
            // Only what is a tensor for certain: unknown modules take all kinds of things.
            if self.is_certainly_tensor(v) {
                parties.extend(self.party(v, at, Rule::STRICT));
            }
        }
        // A subclass of `nn.Linear`, say, without a `forward` of its own.
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
        // What owns nothing is nowhere, and says nothing of its results.
        let rests = self.obj(id).kind == ObjKind::Module && self.is_cpu(device) && !self.has_weights(id, 0);
        let device = match (refused, rests) {
            (true, _) => self.unless_refused(&parties, device),
            (false, true) => self.unknown_device(),
            (false, false) => device,
        };
        self.possible_tensor(device)
    }

    /// What a module of which nobody sees the class computes with, of what it is given: what comes first, what is called so, and
    /// what has several dimensions. The rest may only steer it: a timestep, a flag, sizes, lengths.
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
        // What stands in for an input of the module around is one.
        let stands_in = |v: Value| {
            let values = self.values_of(v);
            values.iter().any(|v| matches!(v, Value::Outer(o) if self.t.get_outer(*o).with.is_some()))
        };
        args.values().filter(|given| wanted(given) || stands_in(given.0)).collect()
    }

    /// Is it a tensor for certain, and no number, or a tensor that who calls may give or leave to be made here?
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

    /// The states of a recurrent layer, one by one: what has been made here and what has been given together, where it is one or the
    /// other.
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
        // Tensors that the constructor was given live with the module, but may have been left behind.
        let stateful = self.is_stateful(id, op);
        if op.state == State::Yes {
            for (name, cell) in self.obj(id).attrs.clone() {
                let v = self.store.get(cell);
                // It computes with nothing else that somebody has hung on it.
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

    /// Where the result of a layer with weights is, if its inputs are who knows where: these must be where the weights are.
    fn beside_weights(&mut self, id: ObjId, inputs: Dd) -> Dd {
        let weights = self.module_device(id, 0);
        let (places, outers) = (&self.t.places, &self.t.outers);
        let nowhere = |(device, origin): (Device, OriginId)| match device {
            Device::Unknown => origin == NO_ORIGIN,
            // What an unknown call has given.
            Device::Of(o) => !outers[o.0 as usize].varies && outers[o.0 as usize].with.is_none(),
            _ => false,
        };
        let beside = self.d.zip(inputs, weights, &mut |x, y| match places.get(y).0 {
            Device::Cuda(_) | Device::CudaSome if nowhere(*places.get(x)) => y,
            _ => x,
        });
        beside.unwrap_or(inputs)
    }

    /// What `forward` gives to a layer with weights is where these are, whoever calls it.
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

    /// `nn.Sequential(…)(x)`: through its children, one after the other.
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

    /// What the module's parts, or what has been put in place of its `forward`, give. Where these lead back to the module
    /// itself nobody knows what comes of it: `net.forward = torch.jit.trace(net, x)`.
    fn unless_within(
        &mut self,
        id: ObjId,
        args: &Args,
        e: ExprId,
        call: &mut dyn FnMut(&mut Self) -> Value,
    ) -> Value {
        if self.modules.within.contains(&id) || self.modules.within.len() >= MAX_WITHIN {
            return self.unknown_call(Value::Unknown, args, e);
        }
        self.modules.within.push(id);
        let v = call(self);
        self.modules.within.pop();
        v
    }
}
