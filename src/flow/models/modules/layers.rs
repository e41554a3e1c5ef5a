//! Instances of the classes of `torch.nn`.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::UseKind;
use crate::flow::domain::value::{ObjId, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::{ModuleOp, State};

/// The field of a `torch.nn` module whose switches are off, so that it has neither parameters nor buffers.
const STATELESS: &str = " stateless";

/// The field of a loss that returns, or may return, one number for each item instead of a mean.
const UNREDUCED: &str = " unreduced";

impl Interp<'_> {
    /// `nn.Linear(…)`: makes a module of PyTorch.
    pub(crate) fn make_torch_module(&mut self, op: &'static ModuleOp, args: &Args, e: ExprId) -> Value {
        match crate::flow::models::tensors::functions::short(op.name) {
            "Sequential" | "ModuleList" | "ParameterList" => return self.make_module_list(op, args),
            "ModuleDict" | "ParameterDict" => {
                let content = args.positional.first().and_then(|&(v, _)| self.dict_items(v));
                let content = match content {
                    Some(items) => self.seq(&items),
                    None if args.positional.is_empty() => self.seq(&[]),
                    None => self.many(Value::Unknown),
                };
                let content = if crate::flow::models::tensors::functions::short(op.name) == "ParameterDict" {
                    self.as_parameters(content)
                } else {
                    content
                };
                return Value::Object(self.object(ObjKind::Dict { module: true }, None, content));
            }
            _ => {}
        }
        let given = if op.accepts.device {
            named(op, args, "device").filter(|(v, _)| *v != Value::None)
        } else {
            None
        };
        let device = match given {
            Some((v, at)) => {
                let d = self.as_device(v, at).unwrap_or_else(|| self.unknown_device());
                self.check_use(
                    d,
                    e,
                    UseKind::Factory,
                    &format!("`{}`", crate::flow::models::tensors::functions::short(op.name)),
                );
                let bytes = crate::flow::models::tensors::sizes::module_bytes(
                    crate::flow::models::tensors::functions::short(op.name),
                    args,
                );
                self.check_allocation(d, bytes, e);
                self.because(d, e, Reason::Made)
            }
            None if args.open => self.unknown_device(),
            None if op.state == State::Yes => self.made_on_default(
                e,
                Reason::Module,
                crate::flow::models::tensors::functions::short(op.name),
            ),
            None => self.default_device_at(e, Reason::Module),
        };
        let id = self.object(ObjKind::ForeignModule(Some(op)), None, Value::Device(device));
        self.switch_state(id, op, args, device);
        if !gives_one_number(op, args) {
            self.set_field(id, Sym::new(UNREDUCED), Value::Bool(crate::flow::domain::diagram::TRUE));
        }
        for (position, p) in op.constructor.iter().enumerate() {
            if !p.tensor {
                continue;
            }
            if let Some((Value::Tensor(t), _)) = args.get(position, p.name.as_str()) {
                let t = self.get_tensor(t);
                let v = self.tensor(Tensor { role: Role::Buffer, ..t });
                self.set_field(id, p.name, v);
                // The other parameters of a layer with weights may be on another device.
                if op.state != State::Yes {
                    self.set_own(id, Value::Device(t.device));
                }
            }
        }
        Value::Object(id)
    }

    /// Does this module of `torch.nn` have parameters or buffers? See [`State`].
    pub(crate) fn is_stateful(&self, id: ObjId, op: &ModuleOp) -> bool {
        match op.state {
            State::Yes => self.get_field(id, Sym::new(STATELESS)) == Value::Absent,
            State::No => false,
            State::Sometimes | State::Unknown => {
                // A zero-dimensional tensor works with tensors on any device. Weights for classes have a dimension.
                let of_classes = matches!(
                    crate::flow::models::tensors::functions::short(op.name),
                    "CrossEntropyLoss" | "NLLLoss" | "NLLLoss2d" | "MultiMarginLoss"
                );
                let counts = |dims: Dims| dims.some() || of_classes && dims != Dims::ZERO;
                let held = |v| matches!(v, Value::Tensor(t) if counts(self.get_tensor(t).dims));
                self.obj(id).attrs.iter().any(|&(_, c)| held(self.store.get(c)))
            }
        }
    }

    /// The number of dimensions of a layer's result.
    pub(crate) fn dims_given_by(&self, id: ObjId, name: &str) -> Dims {
        let told = |field| self.get_field(id, Sym::new(field)) != Value::Absent;
        match is_loss(name) {
            true if told(UNREDUCED) || told("reduction") => Dims::ANY,
            true => Dims::ZERO,
            false => Dims::SOME,
        }
    }

    /// What the constructor's switches (`affine=`, `track_running_stats=`) say about parameters and buffers.
    fn switch_state(&mut self, id: ObjId, op: &'static ModuleOp, args: &Args, device: Dd) {
        let switches = op.constructor.iter().enumerate().filter(|(_, p)| p.switch);
        let given: Vec<Option<Value>> =
            switches.map(|(at, p)| args.get(at, p.name.as_str()).map(|(v, _)| v)).collect();
        if given.is_empty() {
            return;
        }
        let on = given.contains(&Some(Value::Bool(crate::flow::domain::diagram::TRUE)));
        let off = given.iter().all(|v| *v == Some(Value::Bool(crate::flow::domain::diagram::FALSE)));
        match op.state {
            State::Yes if off => {
                self.set_field(id, Sym::new(STATELESS), Value::Bool(crate::flow::domain::diagram::TRUE))
            }
            State::Sometimes if on => {
                let weight = self.tensor(Tensor {
                    device,
                    dims: Dims::exactly(1),
                    role: Role::Parameter,
                    certain: true,
                    bytes: None,
                    double: crate::flow::domain::diagram::FALSE,
                });
                self.set_field(id, Sym::new("weight"), weight);
            }
            _ => {}
        }
    }
}

/// The argument for the constructor's parameter of this name, by keyword or by position.
fn named(op: &ModuleOp, args: &Args, name: &str) -> Option<(Value, ExprId)> {
    match op.constructor.iter().position(|p| p.name.as_str() == name) {
        Some(position) => args.get(position, name),
        None => args.keyword(name),
    }
}

/// Is the class a loss? `NLLLoss2d` is the old name of `NLLLoss` for images (torch/nn/modules/loss.py).
fn is_loss(name: &str) -> bool {
    name.ends_with("Loss") || name == "NLLLoss2d"
}

/// Does the module return one number? A loss returns the mean of all items by default (torch/nn/modules/loss.py, `reduction`).
fn gives_one_number(op: &ModuleOp, args: &Args) -> bool {
    let name = crate::flow::models::tensors::functions::short(op.name);
    let reduced = match args.keyword("reduction") {
        Some((Value::Str(how, _), _)) => matches!(how.as_str(), "mean" | "sum"),
        Some(_) => false,
        None => args.keyword("reduce").is_none(),
    };
    // The first positional argument may be class weights or a margin.
    !is_loss(name)
        || reduced
            && !args.open
            && !args.open_names
            && args.positional.len() <= 1
            && name != "AdaptiveLogSoftmaxWithLoss"
}
