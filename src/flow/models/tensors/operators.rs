//! Functions and methods of the operator table: checks of their arguments, and their results.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::Meeting;
use crate::flow::domain::value::{Device, Host, NO_ORIGIN, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::models::tensors::functions::last_part;
use crate::flow::observers::mismatch::meet::Party;
use crate::ir::ExprId;
use crate::torch::{self, Kind as OpKind, Op, ResultRule};

/// The maximum number of alternatives of an argument that are checked one by one.
const MAX_ALTERNATIVES: usize = 4;

impl Interp<'_> {
    /// Applies a function or method of the operator table to these arguments.
    pub(crate) fn apply_op(
        &mut self,
        op: &'static Op,
        receiver: Option<(Value, ExprId)>,
        args: &Args,
        e: ExprId,
        name: &str,
    ) -> Value {
        if let Some(n) = self.alternative_argument(args) {
            return self.for_each_alternative(op, receiver, args, e, name, n);
        }
        let mut parties = self.parties(op, receiver, args);
        if only_tensor_limits(name, receiver.is_some(), args) {
            parties.iter_mut().for_each(|p| p.rule.cpu_ok = torch::Elsewhere::No);
        }
        let told = self.events.len();
        let what = if receiver.is_some() { ["`.", name, "()`"].concat() } else { ["`", name, "`"].concat() };
        let refused = match op.kind {
            OpKind::Unary | OpKind::Transfer | OpKind::Attribute if op.args.len() < 2 => false,
            OpKind::Distribution => false,
            // `torch.normal(mean, std)` draws on the device of its tensors. Other factories choose their own device.
            OpKind::Factory if op.result != ResultRule::Follows => false,
            _ if op.accepts.check_device && lets_devices_differ(args) => false,
            _ => self.check_parties(op, &what, e, &parties),
        };
        if op.kind == OpKind::CpuOnly || op.args.iter().any(|a| a.share == torch::Share::Cpu) {
            self.check_cpu_only(op, &what, e, receiver, args);
        }
        // Factories check their generator themselves, where they know the device.
        let elsewhere = op.accepts.device && args.keyword("device").is_some();
        let draws_there = op.kind != OpKind::Factory || op.result == ResultRule::Follows;
        let filled = op.in_place || draws_there && !elsewhere;
        if op.accepts.generator && filled && !parties.is_empty() {
            let device = self.result_device(&parties[..1]);
            self.check_generator(device, args, e, name);
        }
        if let Some((v, at)) = args.keyword("out") {
            self.check_out(op, &what, v, at, &parties, args, e);
        }
        // After a report, continue as if the bug were fixed. The code after it may have bugs with other causes.
        let mended = refused && self.events.len() != told;
        let result = if mended && op.result == ResultRule::Receiver && !op.in_place {
            // In the fixed program, the receiver and the other tensors are on one device.
            let device = self.result_device(&parties);
            self.plain_tensor(device, self.result_dims(op, &parties, args, name))
        } else {
            self.op_result(op, &parties, args, e, refused && !mended, name)
        };
        self.check_timed_operation(last_part(name), result, e);
        self.with_double(result, op, receiver, args, e)
    }

    /// The first argument that is a choice of tensors: its position and, if it is a list with such an element, the position of that
    /// element.
    fn alternative_argument(&self, args: &Args) -> Option<(usize, Option<usize>)> {
        args.values().enumerate().find_map(|(n, (v, _))| match v {
            Value::Choice(_) => self.is_alternative(v).then_some((n, None)),
            Value::Seq(_) | Value::Object(_) => {
                let items = self.exact_elements(v)?;
                let at = items.iter().position(|&v| self.is_alternative(v))?;
                Some((n, Some(at)))
            }
            _ => None,
        })
    }

    /// Is it a choice of a few tensors?
    fn is_alternative(&self, v: Value) -> bool {
        let Value::Choice(d) = v else { return false };
        let mut leaves = Vec::new();
        self.d.leaves(d, &mut leaves);
        let tensor = |&p: &u32| matches!(self.t.values.get(p), Value::Tensor(_) | Value::Outer(_));
        leaves.len() <= MAX_ALTERNATIVES && leaves.iter().filter(|p| tensor(p)).count() > 1
    }

    /// The value without alternatives that are unlikely: a CPU tensor that several tests select together, and alternatives that
    /// an exception selects.
    fn likely(&mut self, v: Value) -> Value {
        let Value::Choice(d) = v else { return v };
        let d = self.likely_below(d, 0);
        self.value_of_diagram(d)
    }

    fn likely_below(&mut self, d: Dd, tests: u32) -> Dd {
        let unknown = self.t.values.add(Value::Unknown);
        if let Some(leaf) = self.d.as_leaf(d) {
            let host = matches!(*self.t.values.get(leaf), Value::Tensor(t) if self.is_cpu(self.get_tensor(t).device));
            return if host && tests > 1 { self.d.leaf(unknown) } else { d };
        }
        let (atom, hi, lo) = self.d.root(d);
        if matches!(self.atoms.get(atom), crate::flow::domain::atom::Atom::Raised) {
            return self.d.leaf(unknown);
        }
        let tests = tests + u32::from(!atom.is_hardware());
        let (hi, lo) = (self.likely_below(hi, tests), self.likely_below(lo, tests));
        let cond = self.d.atom(atom);
        self.d.ite(cond, hi, lo).unwrap_or(d)
    }

    /// Applies the function to each alternative of an argument, under the condition of that alternative.
    fn for_each_alternative(
        &mut self,
        op: &'static Op,
        receiver: Option<(Value, ExprId)>,
        args: &Args,
        e: ExprId,
        name: &str,
        (n, element): (usize, Option<usize>),
    ) -> Value {
        let Some((whole, _)) = args.values().nth(n) else { return self.result_of(e) };
        let items = self.exact_elements(whole).unwrap_or_default();
        let v = element.and_then(|at| items.get(at).copied()).unwrap_or(whole);
        let v = self.likely(v);
        self.each(v, &mut |i, v| {
            let v = match element {
                Some(at) => {
                    let mut items = items.clone();
                    items[at] = v;
                    i.seq(&items)
                }
                None => v,
            };
            let mut args = args.clone();
            args.replace(n, v);
            i.apply_op(op, receiver, &args, e, name)
        })
    }

    pub(crate) fn check_parties(
        &mut self,
        op: &'static Op,
        what: &str,
        e: ExprId,
        parties: &[Party],
    ) -> bool {
        // The values for `index_put` may be a zero-dimensional tensor, which may be on any device
        // (aten/src/ATen/native/TensorAdvancedIndexing.cpp, `_index_put_impl_`).
        let may_be_number = |p: &Party| {
            op.kind == OpKind::Indexing
                && p.rule.cuda_ok == torch::Elsewhere::ZeroDim
                && p.dims.none() != Some(false)
        };
        let bound: Vec<Party> = parties
            .iter()
            .filter(|p| p.rule.share != torch::Share::Unknown && p.rule.share != torch::Share::Cpu)
            .filter(|p| !may_be_number(p))
            .copied()
            .collect();
        let meeting = if op.kind == OpKind::Indexing { Meeting::Index } else { Meeting::Function };
        self.meet(meeting, what, e, &bound)
    }

    pub(crate) fn op_result(
        &mut self,
        op: &'static Op,
        parties: &[Party],
        args: &Args,
        e: ExprId,
        refused: bool,
        name: &str,
    ) -> Value {
        if let (true, Some((out @ Value::Tensor(_), _))) = (op.accepts.out, args.keyword("out")) {
            return out;
        }
        let dims = self.result_dims(op, parties, args, name);
        let device = match op.result {
            ResultRule::Host => {
                let asked = matches!(last_part(name), "dim" | "ndimension");
                return match parties.first().and_then(|p| p.dims.known()).filter(|_| asked) {
                    Some(n) => Value::Int(i64::from(n)),
                    None => self.host_result(name, e),
                };
            }
            ResultRule::Device => return parties.first().map_or(Value::Unknown, |p| Value::Device(p.device)),
            ResultRule::Follows if refused => {
                let device = self.result_device(parties);
                self.unless_refused(parties, device)
            }
            _ if refused => self.unknown_device(),
            ResultRule::Follows | ResultRule::Each | ResultRule::Parameters if !parties.is_empty() => {
                self.result_device(parties)
            }
            ResultRule::Receiver | ResultRule::TypeArgument | ResultRule::To => {
                if op.accepts.device
                    && let Some((v, at)) = args.keyword("device").filter(|(v, _)| *v != Value::None)
                {
                    let d = self.as_device(v, at).unwrap_or_else(|| self.unknown_device());
                    self.check_use(
                        d,
                        e,
                        crate::flow::domain::event::UseKind::Factory,
                        &format!("`{name}()`"),
                    );
                    let device = self.because(d, e, Reason::Made);
                    return self.plain_tensor(device, dims);
                }
                match parties.first() {
                    Some(p) => p.device,
                    None => self.unknown_device(),
                }
            }
            ResultRule::OtherArgument => match parties.get(1) {
                Some(p) => self.because(p.device, e, Reason::Moved),
                None => self.unknown_device(),
            },
            _ if matches!(op.kind, OpKind::Factory | OpKind::FactoryLike | OpKind::NewLike) => {
                return self.factory(op, parties, args, e, name, dims);
            }
            ResultRule::Cpu | ResultRule::Cuda | ResultRule::DeviceArgument | ResultRule::Data => {
                return self.factory(op, parties, args, e, name, dims);
            }
            _ => self.unknown_device(),
        };
        let tensor = self.plain_tensor(device, dims);
        if op.in_place {
            return tensor;
        }
        if along_dimension(name, args) {
            return self.seq(&[tensor, tensor]);
        }
        // The `lengths` of a packed sequence are on the CPU, wherever its rows are (torch/nn/utils/rnn.py).
        if last_part(name) == "pad_packed_sequence" {
            let place = self.place(e);
            let origin = self.origin(place, Reason::Host, NO_ORIGIN);
            let cpu = self.at(Device::Cpu, origin);
            let lengths = self.plain_tensor(cpu, Dims::exactly(1));
            return self.seq(&[tensor, lengths]);
        }
        if gives_indices(name, args) {
            let indices = self.plain_tensor(device, Dims::exactly(1));
            return self.many(indices);
        }
        self.shaped_result(name, tensor, device)
    }

    /// The result of methods that return several tensors or a list of them.
    pub(crate) fn shaped_result(&mut self, name: &str, tensor: Value, device: Dd) -> Value {
        let any = self.plain_tensor(device, Dims::ANY);
        match last_part(name) {
            "chunk" | "split" | "unbind" | "tensor_split" | "hsplit" | "vsplit" | "meshgrid"
            | "split_with_sizes" | "broadcast_tensors" | "dsplit" => self.many(tensor),
            // One for each input.
            "grad" => self.many(any),
            "topk" | "sort" | "cummax" | "cummin" | "histogram" => self.seq(&[tensor, tensor]),
            "kthvalue" | "mode" => self.seq(&[any, any]),
            _ => tensor,
        }
    }

    pub(crate) fn host_result(&mut self, name: &str, e: ExprId) -> Value {
        match last_part(name) {
            "item" | "size" | "dim" | "numel" | "stride" | "ndimension" | "nelement" | "element_size" => {
                Self::NUMBER
            }
            "tolist" => {
                let content = self.many(Self::NUMBER);
                Value::Object(self.object(
                    crate::flow::machine::frame::ObjKind::List { module: false },
                    None,
                    content,
                ))
            }
            _ => self.result_of(e),
        }
    }
}

/// `clamp(x, max=limit)`: are all limits tensors or `None`, so that none is a number?
fn only_tensor_limits(name: &str, method: bool, args: &Args) -> bool {
    let name = last_part(name).trim_end_matches('_');
    matches!(name, "clamp" | "clip" | "clamp_max" | "clamp_min")
        && !args.open
        && !args.open_names
        && args.values().skip(usize::from(!method)).all(|(v, _)| matches!(v, Value::Tensor(_) | Value::None))
}

/// May the call disable the check of devices: `assert_close(a, b, check_device=False)`?
fn lets_devices_differ(args: &Args) -> bool {
    args.open_names
        || args
            .keyword("check_device")
            .is_some_and(|(v, _)| v != Value::Bool(crate::flow::domain::diagram::TRUE))
}

/// Does the call return values and indices: `x.max(dim=1)`?
fn along_dimension(name: &str, args: &Args) -> bool {
    let name = last_part(name);
    let number = |v: Value| matches!(v, Value::Int(_) | Value::Host(Host::Number));
    let dim = args.keyword("dim").into_iter().chain(args.positional.iter().copied().take(2));
    matches!(name, "max" | "min" | "median" | "nanmedian") && dim.into_iter().any(|(v, _)| number(v))
}

/// Does the call return the indices along each dimension: `torch.where(mask)`, `x.nonzero(as_tuple=True)`?
fn gives_indices(name: &str, args: &Args) -> bool {
    match last_part(name) {
        "where" => name != "where" && args.values().count() == 1 && !args.open,
        "nonzero" => args
            .keyword("as_tuple")
            .is_some_and(|(v, _)| v == Value::Bool(crate::flow::domain::diagram::TRUE)),
        _ => false,
    }
}
