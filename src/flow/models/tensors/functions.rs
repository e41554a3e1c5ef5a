//! Functions of PyTorch by the operator table: who takes part, factories, `out=`, arguments that must be on
//! the CPU.

use crate::flow::domain::diagram::{Dd, TRUE};
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::{Kind, Meeting, UseKind};
use crate::flow::domain::value::{Device, OuterKey, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::calls::args::Args;
use crate::flow::observers::mixed_devices::{Party, Rule};
use crate::ir::{Expr, ExprId};
use crate::sym::Sym;
use crate::torch::{ArgRule, Elsewhere, Op, ResultRule, Share};

impl Interp<'_> {
    /// The tensors among the arguments, with what the table asks of each.
    pub(crate) fn parties(
        &mut self,
        op: &'static Op,
        receiver: Option<(Value, ExprId)>,
        args: &Args,
    ) -> Vec<Party> {
        let mut parties = Vec::new();
        let offset = usize::from(receiver.is_some());
        let positional = receiver.into_iter().chain(args.positional.iter().copied()).enumerate();
        for (position, (v, at)) in positional {
            let rule = op.positional(position);
            if rule.is_none()
                && (op.kind == crate::torch::Kind::Factory
                    || position >= offset.max(1) && !op.args.is_empty())
            {
                continue;
            }
            // A method of this name others may have as well.
            if receiver.is_none() && rule.is_some_and(|rule| !rule.list && only_tensors_go(op, rule)) {
                self.shown_by_taker(v);
            }
            self.add_party(op, rule, v, at, &mut parties);
        }
        // `meshgrid(*ranges)`: each of them, however many there are.
        let position = offset + args.positional.len();
        if let (Some((v, at)), Some(rule)) = (args.spread, op.positional(position).filter(|r| r.variadic)) {
            self.add_party(op, Some(rule), v, at, &mut parties);
        }
        for &(name, v, at) in &args.keywords {
            if let Some(rule) = op.keyword(name) {
                self.add_party(op, Some(rule), v, at, &mut parties);
            }
        }
        parties
    }

    fn add_party(
        &mut self,
        op: &'static Op,
        rule: Option<&'static ArgRule>,
        v: Value,
        at: ExprId,
        parties: &mut Vec<Party>,
    ) {
        let r = rule.map_or(Rule { share: Share::Unknown, ..Rule::STRICT }, Rule::from);
        let list = rule.is_some_and(|r| r.list);
        let v = match v {
            Value::Outer(o) if list && self.holds_tensors(o) => {
                Value::Outer(self.outer_item(o, Value::Unknown))
            }
            v => v,
        };
        // Handed to a tensor function where a tensor goes: it is one.
        if let Value::Outer(o) = v
            && !list
            && rule.is_some_and(|rule| only_tensors_go(op, rule))
        {
            self.evidence.tensor_proofs.insert(o);
        }
        if let Some(p) = self.party(v, at, r) {
            parties.push(p);
            return;
        }
        if list || rule.is_none() {
            let items = match v {
                Value::Many(id) => self.members(*self.t.values.get(id)),
                v => self.exact_elements(v).unwrap_or_default(),
            };
            let written = self.written_items(at, items.len());
            for (n, item) in items.into_iter().enumerate() {
                self.shown_in_list(item);
                let at = written.get(n).copied().unwrap_or(at);
                if let Some(p) = self.party(item, at, r) {
                    parties.push(p);
                }
            }
            if let Value::Object(id) = v
                && let Value::Many(m) = self.own(id)
            {
                for item in self.members(*self.t.values.get(m)) {
                    parties.extend(self.party(item, at, r));
                }
            }
        }
    }

    /// The expressions of a list or tuple that is written down, if it has so many items.
    fn written_items(&self, at: ExprId, wanted: usize) -> Vec<ExprId> {
        let ir = &self.linked().ir;
        let (Expr::List(items) | Expr::Tuple(items)) = ir.expr(at) else { return Vec::new() };
        let items = ir.list(items);
        let starred = |&e: &ExprId| matches!(ir.expr(e), Expr::Star(_));
        if items.len() == wanted && !items.iter().any(starred) { items.to_vec() } else { Vec::new() }
    }

    /// The result of something that makes a tensor.
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
        // `torch.tensor(10, 3)`, meant for a size: a TypeError, on every machine.
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
        let bytes = super::sizes::size_in_bytes(self, short, args);
        let given =
            if op.accepts.device { args.keyword("device").filter(|(v, _)| *v != Value::None) } else { None };
        let device = if let Some((v, at)) = given {
            self.check_device_given(v, e);
            self.check_truth_given(v, at);
            self.check_no_dtype(at, e);
            let d = self.as_device(v, at).unwrap_or_else(|| self.unknown_device());
            let work = self.run.work;
            self.check_use(d, e, UseKind::Factory, &format!("`{short}()`"));
            if bytes.is_some_and(|b| b <= super::sizes::SMALL) {
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
        } else {
            match op.result {
                // Data from outside may be a list or an array just as well as a tensor.
                ResultRule::Data
                    if let Some(&(Value::Outer(o), _)) = args.positional.first()
                        && let Some(&listed) = self.evidence.no_tensors.get(&o)
                        && !args.open_names =>
                {
                    let made = self.default_device_at(e, Reason::Default);
                    let unknown = self.unknown_device();
                    self.ite_device(listed, made, unknown)
                }
                // `torch.tensor` is for numbers: who has a tensor is warned and clones it.
                ResultRule::Data
                    if name == "torch.tensor"
                        && !args.open_names
                        && args.positional.first().is_some_and(|&(v, _)| self.holds_data(v)) =>
                {
                    self.made_on_default(e, Reason::Default, short)
                }
                ResultRule::Data
                    if args.positional.first().is_some_and(|&(v, _)| {
                        matches!(v, Value::Outer(_) | Value::Unknown | Value::Choice(_))
                    }) =>
                {
                    self.unknown_device()
                }
                // `torch.tensor(config.scale - 1)` of what is as likely a number.
                ResultRule::Data
                    if name == "torch.tensor"
                        && matches!(args.positional.first(),
                            Some(&(Value::Tensor(t), _)) if !self.get_tensor(t).certain) =>
                {
                    self.unknown_device()
                }
                ResultRule::Data if !parties.is_empty() => self.default_device_or(parties[0].device),
                ResultRule::Cuda => {
                    let place = self.place(e);
                    let origin = self.origin(place, Reason::Literal, crate::flow::domain::value::NO_ORIGIN);
                    let d = self.at(Device::Cuda(None), origin);
                    self.check_use(d, e, UseKind::LegacyType, &format!("`{name}`"));
                    d
                }
                ResultRule::Backend(b) => {
                    let place = self.place(e);
                    let origin = self.origin(place, Reason::Literal, crate::flow::domain::value::NO_ORIGIN);
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
                    let origin = self.origin(place, reason, crate::flow::domain::value::NO_ORIGIN);
                    let cpu = self.at(Device::Cpu, origin);
                    if typed { self.default_type_or(cpu) } else { cpu }
                }
                ResultRule::Unknown => self.unknown_device(),
                // `*sizes` cannot bring a device, which is only taken by name.
                _ if args.open_names && op.accepts.device => self.unknown_device(),
                _ if op.honours_default => {
                    let d = self.made_on_default(e, Reason::Default, short);
                    self.check_generator(d, args, e, short);
                    self.check_allocation(d, bytes, e);
                    d
                }
                _ => {
                    let place = self.place(e);
                    let origin = self.origin(place, Reason::Host, crate::flow::domain::value::NO_ORIGIN);
                    self.at(Device::Cpu, origin)
                }
            }
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

    /// `torch.Tensor([1.0], device=device)`, `torch.from_numpy(x, device=device)`: raises on the spot, unless it is an old
    /// constructor and that is the CPU. What comes after it never sees a tensor on the CPU where another one was wanted.
    fn refuses_device(&mut self, op: &'static Op, args: &Args) -> bool {
        let Some((v, at)) = args.keyword("device").filter(|(v, _)| *v != Value::None) else { return false };
        let cpu = |d: Device| d == Device::Cpu;
        let fits = self
            .as_device(v, at)
            .is_some_and(|d| self.device_leaves(d).into_iter().all(|(_, device, _)| cpu(device)));
        !op.accepts.device && !fits
    }

    /// `torch.LongTensor([1], device="cuda")`: the old constructors make tensors on the CPU, and on nothing else.
    fn old_constructor(&mut self, args: &Args, e: ExprId, name: &str) {
        if !name.ends_with("Tensor") || name == "torch.Tensor" && self.may_have_another_type() {
            return;
        }
        let Some((v, at)) = args.keyword("device") else { return };
        // They know no other keywords, and refuse them on any machine.
        if args.keywords.iter().any(|(keyword, ..)| !matches!(keyword.as_str(), "device" | "data")) {
            return;
        }
        if let Some(device) = self.as_device(v, at) {
            self.check_cpu_demand(device, at, e, &format!("`{name}`"), Meeting::OldConstructor);
        }
    }

    /// `torch.tensor(data, dtype=x.dtype)`: `x` is a tensor, or a module that tells the type of its parameters.
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
            // What a module's `forward` is given is rather a tensor, and what is in a dict as likely as not: that stays where it is.
            Value::Outer(o) => {
                let outer = self.t.get_outer(o);
                let named = matches!(outer.key, OuterKey::Item { key: Some(Value::Str(..)), .. });
                !self.is_tensorish(o) && outer.with.is_none() && !named
            }
            Value::Unknown => true,
            // Numbers or lists of them, whichever it is.
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

    /// A generator, perhaps one of several or none, is used for numbers on this device.
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

    /// `out=` on another device than the result.
    #[expect(clippy::too_many_arguments, reason = "the whole call matters")]
    pub(crate) fn check_out(
        &mut self,
        op: &'static Op,
        what: &str,
        v: Value,
        at: ExprId,
        parties: &[Party],
        args: &Args,
        e: ExprId,
    ) {
        if !op.out_must_match {
            return;
        }
        if let Value::Choice(_) = v {
            self.each(v, &mut |i, v| {
                i.check_out(op, what, v, at, parties, args, e);
                Value::Absent
            });
            return;
        }
        // `out=(values, indices)`
        if let Value::Seq(several) = v {
            for v in self.seq_items(several).to_vec() {
                self.check_out(op, what, v, at, parties, args, e);
            }
            return;
        }
        let Some(out) = self.party(v, at, Rule::STRICT) else { return };
        let named = args.keyword("device").filter(|(v, _)| op.accepts.device && *v != Value::None);
        if let Some((d, at)) = named {
            let Some(device) = self.as_device(d, at) else { return };
            let first = Party { expr: at, device, dims: Dims::SOME, rule: Rule::STRICT };
            self.meet(Meeting::Function, what, e, &[first, out]);
        } else if let Some(first) = parties.first()
            && (op.kind != crate::torch::Kind::Factory || op.result == ResultRule::Follows)
        {
            let first = Party { rule: Rule::STRICT, ..*first };
            self.meet(Meeting::Function, what, e, &[first, out]);
        }
    }

    /// Arguments that PyTorch demands on the CPU.
    pub(crate) fn check_cpu_only(
        &mut self,
        op: &'static Op,
        what: &str,
        e: ExprId,
        receiver: Option<(Value, ExprId)>,
        args: &Args,
    ) {
        let positional = receiver.into_iter().chain(args.positional.iter().copied()).enumerate();
        let mut wanted: Vec<(Value, ExprId)> = positional
            .filter(|&(p, _)| op.positional(p).is_some_and(|r| r.share == Share::Cpu))
            .map(|(_, a)| a)
            .collect();
        wanted.extend(
            args.keywords
                .iter()
                .filter(|(n, ..)| op.keyword(*n).is_some_and(|r| r.share == Share::Cpu))
                .map(|&(_, v, at)| (v, at)),
        );
        // `histogramdd(x, [edges, edges])`
        let listed = |&(v, at): &(Value, ExprId)| {
            let items = self.exact_elements(v).unwrap_or_default();
            items.into_iter().filter(|v| matches!(v, Value::Tensor(_))).map(move |v| (v, at))
        };
        let listed: Vec<_> = wanted.iter().flat_map(listed).collect();
        wanted.extend(listed);
        for (v, at) in wanted {
            self.read_on_host(v);
            if matches!(v, Value::Object(_) | Value::Choice(_)) {
                let mut device = self.at(Device::Cpu, crate::flow::domain::value::NO_ORIGIN);
                // What samplers draw themselves is made by default (torch/utils/data/sampler.py).
                if op.name.as_str().starts_with("torch.utils.data.") {
                    device = self.default_device_or(device);
                }
                self.generator_meets(v, at, device, e, short(op.name));
            }
            // An input of `forward` as it is may be meant for the host.
            if matches!(v, Value::Outer(_)) {
                continue;
            }
            let Some((device, _)) = self.tensor_place(v, at) else { continue };
            let _ = self.check_on_cpu(device, at, e, what);
        }
    }

    /// A tensor on an accelerator where the CPU is demanded. True if that was told.
    pub(crate) fn check_on_cpu(&mut self, device: Dd, operand: ExprId, e: ExprId, what: &str) -> bool {
        self.check_cpu_demand(device, operand, e, what, Meeting::CpuOnly)
    }

    /// Is it a GPU's memory, on any machine?
    fn is_gpu(&self, device: Dd) -> bool {
        let cuda = |p| matches!(self.t.places.get(p).0, Device::Cuda(_) | Device::CudaSome);
        self.d.as_leaf(device).is_some_and(cuda)
    }

    /// The same of whatever else demands the CPU. The operand is what brings the device.
    fn check_cpu_demand(
        &mut self,
        device: Dd,
        operand: ExprId,
        e: ExprId,
        what: &str,
        meeting: Meeting,
    ) -> bool {
        let mut leaves = Vec::new();
        self.d.leaves(device, &mut leaves);
        for leaf in leaves {
            let (d, origin) = *self.t.places.get(leaf);
            let named = matches!(d, Device::Named(o) if self.t.get_outer(o).device);
            // Made of what a layer has been given: with CUDA, the module may be there.
            let own = matches!(d, Device::Of(o) if self.modules.with_layers.contains(&o) || self.is_own(o));
            // Who asks for the device of something counts on any.
            let asked_for =
                meeting == Meeting::OldConstructor && matches!(d, Device::Of(_) | Device::Named(_));
            let elsewhere = matches!(d, Device::Cuda(_) | Device::CudaSome | Device::Other(_));
            if !named && !own && !asked_for && !elsewhere {
                continue;
            }
            let here = self.d.where_leaf(device, &mut |p| p == leaf);
            let there = self.accelerator_condition(d, Device::Cpu);
            let mut bad = self.d.and(here, there);
            // What the program has asked about where it is.
            if let Device::Of(o) | Device::Named(o) = d {
                let asked = self.if_on_cuda(o);
                bad = self.d.and(bad, asked);
            }
            let Some(bite) = self.bite(bad, false).filter(|_| !self.for_no_tensors()) else { continue };
            let place = self.place(e);
            let other = self.operand(operand, Device::Cpu, crate::flow::domain::value::NO_ORIGIN);
            let stray = self.operand(operand, d, origin);
            let kind = Kind::Mismatch {
                meeting,
                what: what.to_owned(),
                stray: Box::new(stray),
                other: Box::new(other),
            };
            self.emit(kind, place, bite, Vec::new());
            return true;
        }
        false
    }

    pub(crate) fn check_pin_memory(&mut self, device: Dd, e: ExprId) {
        self.check_on_cpu(device, e, e, "`.pin_memory()`");
        self.pins(e, "`.pin_memory()`");
    }

    /// Pinning takes the allocator of whatever accelerator is there (aten/src/ATen/core/CachingHostAllocator.h).
    fn pins(&mut self, e: ExprId, what: &str) {
        use crate::world::Backend::{Hpu, Mlu, Mps, Musa, Npu, Xpu};
        let before = self.path;
        let mut other = crate::flow::domain::diagram::FALSE;
        for b in [Xpu, Mps, Npu, Hpu, Mlu, Musa] {
            let there = self.available(Some(b));
            other = self.d.or(other, there);
        }
        let none = self.d.not(other);
        self.path = self.d.and(before, none);
        if self.path == crate::flow::domain::diagram::FALSE {
            self.path = before;
            return;
        }
        // Any of them will do.
        self.use_cuda(e, UseKind::Query, what);
        let elsewhere = self.d.and(before, other);
        self.path = self.d.or(self.path, elsewhere);
    }

    /// A function of PyTorch that the operator table knows.
    pub(crate) fn torch_function(&mut self, path: Sym, op: &'static Op, args: &Args, e: ExprId) -> Value {
        let name = path.as_str();
        if op.kind == crate::torch::Kind::Distribution {
            return self.distribution(op, args, e);
        }
        if let Some(method) = name.strip_prefix("torch.Tensor.")
            && let Some((&(v, at), rest)) = args.positional.split_first()
        {
            let rest = Args { positional: rest.to_vec(), ..args.clone() };
            return self.call_method(v, Sym::new(method), &rest, e, at);
        }
        let made = self.apply_op(op, None, args, e, name);
        // `nn.init.normal_(parameter)` gives back what it was given.
        match args.positional.first() {
            Some(&(same @ Value::Tensor(_), _))
                if name.starts_with("torch.nn.init.") && name.ends_with('_') =>
            {
                same
            }
            _ => made,
        }
    }
}

/// The last part of a dotted name.
pub(crate) fn short(path: Sym) -> &'static str {
    last_part(path.as_str())
}

/// The same of a text.
pub(crate) fn last_part(name: &str) -> &str {
    name.bytes().rposition(|b| b == b'.').and_then(|dot| name.get(dot + 1..)).unwrap_or(name)
}

/// Must what is given for this argument be a tensor? Later ones may be numbers as well: `torch.add(x, 2)`.
fn only_tensors_go(op: &Op, rule: &ArgRule) -> bool {
    let numbers = rule.share == Share::Must && !matches!(rule.cpu_ok, Elsewhere::No);
    // What a loss compares with.
    if rule.share == Share::Must && rule.name.as_str() == "target" {
        return true;
    }
    rule.position == Some(0)
        && match rule.name.as_str() {
            // The methods of numbers do as well: `torch.Tensor.__add__`.
            "input" if numbers => {
                !takes_number_first(op.name) && !op.name.as_str().starts_with("torch.Tensor.")
            }
            "input" => !takes_number_first(op.name),
            _ => rule.share == Share::Must && !numbers,
        }
}

/// The functions whose `input` may be a number, as long as another argument is a tensor.
fn takes_number_first(path: Sym) -> bool {
    path.as_str().starts_with("torch.special.")
        || matches!(
            short(path),
            "add"
                | "bitwise_and"
                | "bitwise_left_shift"
                | "bitwise_or"
                | "bitwise_right_shift"
                | "bitwise_xor"
                | "bucketize"
                | "div"
                | "divide"
                | "float_power"
                | "floor_divide"
                | "mul"
                | "multiply"
                | "pow"
                | "remainder"
                | "result_type"
                | "sub"
                | "subtract"
                | "true_divide"
                | "xlogy"
        )
}
