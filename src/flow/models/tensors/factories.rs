//! Factories: functions that make tensors.

use crate::flow::domain::diagram::{Dd, TRUE};
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::{Meeting, UseKind};
use crate::flow::domain::value::{Device, NO_ORIGIN, OuterKey, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::models::tensors::functions::last_part;
use crate::flow::models::tensors::sizes::{SMALL, size_in_bytes};
use crate::flow::observers::mismatch::meet::{Party, Rule};
use crate::ir::{Expr, ExprId};
use crate::torch::{Op, ResultRule};

impl Interp<'_> {
    /// The result of a factory.
    pub(crate) fn factory(
        &mut self,
        op: &'static Op,
        parties: &[Party],
        args: &Args,
        e: ExprId,
        name: &str,
        dims: Dims,
    ) -> Value {
        self.is_typed_like(args);
        // `torch.tensor(10, 3)`, where the author meant a size, raises a TypeError on every machine.
        if name == "torch.tensor" && args.positional.len() > 1 {
            self.path = crate::flow::domain::diagram::FALSE;
            return Value::Unknown;
        }
        let short = last_part(name);
        if matches!(short, "arange" | "zeros" | "ones" | "empty" | "rand" | "randn" | "linspace" | "eye") {
            for &(v, _) in &args.positional {
                if let Value::Outer(o) = v {
                    self.evidence.size_proofs.insert(o);
                }
            }
        }
        let dims = self.factory_dims(short, args, dims);
        let bytes = size_in_bytes(self, short, args);
        let given =
            if op.accepts.device { args.keyword("device").filter(|(v, _)| *v != Value::None) } else { None };
        let device = match given {
            Some((v, at)) => self.given_device(v, at, args, e, name, bytes),
            None => self.usual_device(op, parties, args, e, name, bytes),
        };
        if op.accepts.pin_memory && args.keyword("pin_memory").is_some_and(|(v, _)| v == Value::Bool(TRUE)) {
            self.pins(e, "`pin_memory=True`");
        }
        if args.keyword("pin_memory").is_some_and(|(v, _)| v == Value::Bool(TRUE)) && self.is_gpu(device) {
            self.check_on_cpu(device, e, e, "`pin_memory=True`");
        }
        if op.name.as_str() == "torch.Generator" {
            return Value::Object(self.object(
                crate::flow::machine::frame::ObjKind::Generator,
                None,
                Value::Device(device),
            ));
        }
        let device = match args.keyword("pin_memory") {
            Some((v, _)) if v != Value::Bool(crate::flow::domain::diagram::FALSE) => {
                self.because(device, e, Reason::Pinned)
            }
            _ => device,
        };
        let role = match args.keyword("requires_grad") {
            Some((Value::Bool(TRUE), _)) => Role::Leaf,
            _ => Role::Plain,
        };
        self.check_bfloat16(device, args, e);
        let double = self.double_of_factory(op, args);
        let double = self.doubles_go(device, double, e);
        self.tensor(Tensor { device, dims, role, certain: true, bytes, double })
    }

    /// The device of a factory's `device=` argument.
    fn given_device(
        &mut self,
        v: Value,
        at: ExprId,
        args: &Args,
        e: ExprId,
        name: &str,
        bytes: Option<u64>,
    ) -> Dd {
        let short = last_part(name);
        self.check_device_given(v, e);
        self.check_truth_given(v, at);
        self.check_no_dtype(at, e);
        let d = self.as_device(v, at).unwrap_or_else(|| self.unknown_device());
        let work = self.run.work;
        self.check_use(d, e, UseKind::Factory, &format!("`{short}()`"));
        if bytes.is_some_and(|b| b <= SMALL) {
            self.run.work = work;
        }
        self.goes_after(d, Some(at));
        self.check_generator(d, args, e, short);
        let d = self.because(d, e, Reason::Made);
        self.check_allocation(d, bytes, e);
        if name == "torch.tensor" {
            self.check_made_again(d, e);
        }
        d
    }

    /// The device of the tensor of a factory without `device=`.
    fn usual_device(
        &mut self,
        op: &'static Op,
        parties: &[Party],
        args: &Args,
        e: ExprId,
        name: &str,
        bytes: Option<u64>,
    ) -> Dd {
        let short = last_part(name);
        match op.result {
            ResultRule::Data if let Some(device) = self.device_of_data(parties, args, e, name) => device,
            ResultRule::Cuda => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Literal, NO_ORIGIN);
                let d = self.at(Device::Cuda(None), origin);
                self.check_use(d, e, UseKind::LegacyType, &format!("`{name}`"));
                d
            }
            ResultRule::Backend(b) => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Literal, NO_ORIGIN);
                self.at(Device::Other(b), origin)
            }
            ResultRule::Cpu if self.refuses_device(op, args) => {
                self.old_constructor(args, e, name);
                self.unknown_device()
            }
            ResultRule::Cpu => {
                let place = self.place(e);
                let typed = name == "torch.Tensor";
                let reason = if typed { Reason::Typed } else { Reason::Host };
                let origin = self.origin(place, reason, NO_ORIGIN);
                let cpu = self.at(Device::Cpu, origin);
                if typed { self.default_type_or(cpu) } else { cpu }
            }
            ResultRule::Unknown => self.unknown_device(),
            // `*sizes` cannot contain the device, which is a keyword-only argument.
            _ if args.open_names && op.accepts.device => self.unknown_device(),
            _ if op.honours_default => {
                let d = self.made_on_default(e, Reason::Default, short);
                self.check_generator(d, args, e, short);
                self.check_allocation(d, bytes, e);
                d
            }
            _ => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Host, NO_ORIGIN);
                self.at(Device::Cpu, origin)
            }
        }
    }

    /// The device of a tensor that is made from data, if the data decides it.
    fn device_of_data(&mut self, parties: &[Party], args: &Args, e: ExprId, name: &str) -> Option<Dd> {
        let short = last_part(name);
        let first = args.positional.first().copied();
        match first {
            // An outside value may be a list, an array or a tensor.
            Some((Value::Outer(o), _))
                if let Some(&listed) = self.evidence.no_tensors.get(&o)
                    && !args.open_names =>
            {
                let made = self.default_device_at(e, Reason::Default);
                let unknown = self.unknown_device();
                Some(self.ite_device(listed, made, unknown))
            }
            // `torch.tensor` is for numbers: for a tensor it warns, and programs use `clone()`.
            Some((v, _)) if name == "torch.tensor" && !args.open_names && self.holds_data(v) => {
                Some(self.made_on_default(e, Reason::Default, short))
            }
            Some((Value::Outer(_) | Value::Unknown | Value::Choice(_), _)) => Some(self.unknown_device()),
            // `torch.tensor(config.scale - 1)`, where the argument may just as well be a number.
            Some((Value::Tensor(t), _)) if name == "torch.tensor" && !self.get_tensor(t).certain => {
                Some(self.unknown_device())
            }
            _ => parties.first().map(|party| self.default_device_or(party.device)),
        }
    }

    /// Whether `torch.Tensor([1.0], device=device)` or `torch.from_numpy(x, device=device)` raises at once. An old constructor accepts
    /// the CPU. Code after the call never gets a tensor on the CPU where the program wanted another device.
    fn refuses_device(&mut self, op: &'static Op, args: &Args) -> bool {
        let Some((v, at)) = args.keyword("device").filter(|(v, _)| *v != Value::None) else { return false };
        let cpu = |d: Device| d == Device::Cpu;
        let fits = self
            .as_device(v, at)
            .is_some_and(|d| self.device_leaves(d).into_iter().all(|(_, device, _)| cpu(device)));
        !op.accepts.device && !fits
    }

    /// `torch.LongTensor([1], device="cuda")`: the old constructors make tensors on the CPU only.
    fn old_constructor(&mut self, args: &Args, e: ExprId, name: &str) {
        if !name.ends_with("Tensor") || name == "torch.Tensor" && self.may_have_another_type() {
            return;
        }
        let Some((v, at)) = args.keyword("device") else { return };
        // They accept no other keywords, and raise for them on every machine.
        if args.keywords.iter().any(|(keyword, ..)| !matches!(keyword.as_str(), "device" | "data")) {
            return;
        }
        if let Some(device) = self.as_device(v, at) {
            self.check_cpu_demand(device, at, e, &format!("`{name}`"), Meeting::OldConstructor);
        }
    }

    /// `torch.tensor(data, dtype=x.dtype)`: `x` is a tensor, or a module with the dtype of its parameters.
    fn is_typed_like(&mut self, args: &Args) {
        let Some((_, at)) = args.keyword("dtype") else { return };
        let Expr::Attr { base, name } = self.linked().ir.expr(at) else { return };
        let Expr::Var(_) = self.linked().ir.expr(base) else { return };
        self.run.muted += 1;
        if let (Value::Outer(o), "dtype") = (self.eval(base), name.as_str()) {
            self.evidence.typed_like.insert(o);
        }
        self.run.muted -= 1;
    }

    fn holds_data(&self, v: Value) -> bool {
        match v {
            // A parameter of `forward` is probably a tensor, and an entry of a dict may be one. A tensor keeps its device.
            Value::Outer(o) => {
                let outer = self.t.get_outer(o);
                let named = matches!(outer.key, OuterKey::Item { key: Some(Value::Str(..)), .. });
                !self.is_tensorish(o) && outer.with.is_none() && !named
            }
            Value::Unknown => true,
            // Numbers or lists of them, in every alternative.
            Value::Choice(_) => self.values_of(v).into_iter().all(|v| match v {
                Value::Tensor(_) | Value::Choice(_) => false,
                Value::Outer(_) => self.holds_data(v),
                _ => true,
            }),
            _ => false,
        }
    }

    pub(crate) fn check_generator(&mut self, device: Dd, args: &Args, e: ExprId, name: &str) {
        let Some((v, at)) = args.keyword("generator") else { return };
        self.generator_meets(v, at, device, e, name);
    }

    /// A generator draws numbers on this device. The generator may be a choice, or `None`.
    pub(crate) fn generator_meets(&mut self, v: Value, at: ExprId, device: Dd, e: ExprId, name: &str) {
        if let Value::Choice(_) = v {
            self.each(v, &mut |i, v| {
                i.generator_meets(v, at, device, e, name);
                Value::Absent
            });
            return;
        }
        let Value::Object(id) = v else { return };
        if self.obj(id).kind != crate::flow::machine::frame::ObjKind::Generator {
            return;
        }
        let Value::Device(g) = self.own(id) else { return };
        let parties = [
            Party { expr: at, device: g, dims: Dims::SOME, rule: Rule::STRICT },
            Party { expr: e, device, dims: Dims::SOME, rule: Rule::STRICT },
        ];
        self.meet(Meeting::Generator, &format!("`{name}()`"), e, &parties);
    }
}
