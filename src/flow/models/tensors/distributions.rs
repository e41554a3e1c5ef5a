//! Distributions: the device and the dimensions of their samples.

use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::Meeting;
use crate::flow::domain::value::{Host, ObjId, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::tensors::functions::short;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::Op;

impl Interp<'_> {
    /// The constructor of a distribution.
    pub(crate) fn distribution(&mut self, op: &'static Op, args: &Args, e: ExprId) -> Value {
        let parties = self.parties(op, None, args);
        // Numbers become zero-dimensional tensors (torch/distributions/utils.py, `broadcast_all`).
        let numbers = parties.is_empty() && only_numbers(args);
        let device =
            if numbers { self.default_device_at(e, Reason::Default) } else { self.result_device(&parties) };
        let clash = parties.iter().any(|p| p.device != device);
        if clash && op.distribution.as_ref().is_some_and(|d| d.fails_at_construction) {
            self.meet(Meeting::Function, &format!("`{}`", short(op.name)), e, &parties);
        }
        let dims = match parties.iter().any(|p| p.dims.some()) {
            _ if numbers => Dims::ZERO,
            // `Categorical` draws an index along the last dimension of its parameters.
            true if short(op.name) != "Categorical" => Dims::SOME,
            _ => Dims::ANY,
        };
        let sample = self.plain_tensor(device, dims);
        let id = self.object(ObjKind::Distribution(op), None, sample);
        for (i, p) in parties.iter().enumerate() {
            let v = self.plain_tensor(p.device, Dims::SOME);
            self.set_field(id, Sym::new(&format!(" {i}")), v);
        }
        Value::Object(id)
    }

    /// `distribution.sample(shape)`
    pub(crate) fn drawn(&mut self, id: ObjId, args: &Args) -> Value {
        let Value::Tensor(t) = self.own(id) else { return Value::Unknown };
        let t = self.get_tensor(t);
        let shape = args.get(0, "sample_shape").or_else(|| args.keyword("n")).map(|(v, _)| v);
        let dims = match shape {
            None => t.dims,
            Some(Value::Host(_) | Value::Int(_)) => Dims::SOME,
            Some(v) => match self.exact_elements(v) {
                Some(items) if items.is_empty() => t.dims,
                Some(_) => Dims::SOME,
                None => Dims::ANY.join(t.dims),
            },
        };
        self.plain_tensor(t.device, dims)
    }

    /// `distribution.log_prob(x)`: on the device of the parameters. If these are numbers, it may be on the device of `x`.
    pub(crate) fn density(&mut self, id: ObjId) -> Value {
        let Value::Tensor(t) = self.own(id) else { return Value::Unknown };
        let t = self.get_tensor(t);
        let device = if t.dims == Dims::ZERO { self.unknown_device() } else { t.device };
        self.plain_tensor(device, Dims::ANY)
    }

    /// `kl_divergence(p, q)`: the parameters of both distributions meet, for all kinds of distributions (torch/distributions/kl.py).
    pub(crate) fn divergence(&mut self, args: &Args, e: ExprId) -> Value {
        let mut parties = Vec::new();
        for (position, name) in ["p", "q"].into_iter().enumerate() {
            match args.get(position, name) {
                Some((Value::Object(id), _)) if matches!(self.obj(id).kind, ObjKind::Distribution(_)) => {
                    parties.extend(self.distribution_parameters(id, e));
                }
                _ => return self.result_of(e),
            }
        }
        let refused = self.meet(Meeting::Function, "`kl_divergence`", e, &parties);
        let device = self.result_device(&parties);
        let device = if refused { self.unless_refused(&parties, device) } else { device };
        self.plain_tensor(device, Dims::ANY)
    }

    pub(crate) fn distribution_parameters(
        &mut self,
        id: ObjId,
        e: ExprId,
    ) -> Vec<crate::flow::observers::mismatch::meet::Party> {
        let attrs = self.obj(id).attrs.clone();
        let mut parties = Vec::new();
        for (_, cell) in attrs {
            let v = self.store.get(cell);
            parties.extend(self.party(v, e, crate::flow::observers::mismatch::meet::Rule::ARITHMETIC));
        }
        parties
    }
}

/// Are all arguments numbers or Booleans?
fn only_numbers(args: &Args) -> bool {
    let number = |v| matches!(v, Value::Int(_) | Value::Bool(_) | Value::Host(Host::Number));
    !args.open && !args.open_names && args.values().all(|(v, _)| number(v))
}
