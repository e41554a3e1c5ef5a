//! Calls of names outside the project.

use super::super::atom::gpus_at_least;
use super::super::diagram::TRUE;
use super::super::event::{Kind, UseKind};
use super::super::value::{Device, NO_ORIGIN, ObjId, Outer, OuterKey, Reason, Role, Tensor, Tri, Value};
use super::args::{Args, names_device};
use super::{Interp, ObjKind};
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::{self, Accelerator, AcceleratorCall, CallFact, Numpy, Returns, Without};
use crate::world::Backend;

impl Interp<'_> {
    pub(super) fn call_external(&mut self, path: Sym, args: &Args, e: ExprId) -> Value {
        let text = path.as_str();
        if let Some(name) = text.strip_prefix("builtins.") {
            return self.builtin(Sym::new(name), args, e);
        }
        if let Some(v) = self.process_call(text, args, e) {
            return v;
        }
        if let Some(v) = self.training_call(path, args, e) {
            return v;
        }
        if let Some(v) = self.special(text, args, e) {
            return v;
        }
        self.check_device_list(path, args, e);
        if let Some(op) = torch::module(path) {
            return self.make_torch_module(op, args, e);
        }
        if let Some(op) = torch::function(path) {
            return self.torch_function(path, op, args, e);
        }
        match torch::call(path) {
            Some(fact) => self.fact_call(path, fact, args, e),
            None => self.foreign_call(path, args, e),
        }
    }

    /// What the rules know by name, because the tables cannot say it.
    fn special(&mut self, text: &str, args: &Args, e: ExprId) -> Option<Value> {
        let v = match text {
            "torch.device" => self.make_device(args, e),
            super::decorators::WRAPPED => {
                self.probed = self.d.or(self.probed, self.path);
                self.result_of(e)
            }
            "torch.accelerator.current_accelerator" => {
                // A CUDA build names CUDA, GPU or not, unless it is told to look.
                let place = self.place(e);
                let origin = self.origin(place, Reason::Literal, NO_ORIGIN);
                let mut built_for = self.at(Device::Cuda(None), origin);
                for b in [Backend::Xpu, Backend::Mps, Backend::Npu, Backend::Hpu] {
                    let (cuda, there) = (self.available(None), self.available(Some(b)));
                    let not_cuda = self.d.not(cuda);
                    let (only, other) = (self.d.and(there, not_cuda), self.at(Device::Other(b), origin));
                    built_for = self.ite_device(only, other, built_for);
                }
                let cuda = Value::Device(built_for);
                match args.get(0, "check_available").map(|(v, _)| v) {
                    None | Some(Value::Bool(super::FALSE)) => cuda,
                    Some(Value::Bool(TRUE)) => {
                        let there = self.available(None);
                        let other = self.result_of(e);
                        self.ite(there, cuda, other)
                    }
                    _ => self.result_of(e),
                }
            }
            "torch.set_default_device" => {
                let d = args.get(0, "device").and_then(|(v, at)| self.as_device(v, at));
                let cell = self.default_device;
                let v = d.map_or(Value::Absent, |d| Value::Device(self.because(d, e, Reason::Made)));
                self.store.set(cell, v);
                Value::None
            }
            "torch.set_default_tensor_type" => {
                self.default_tensor_type(args, e);
                Value::None
            }
            "torch.nn.Parameter" | "torch.nn.parameter.Parameter" => self.make_parameter(args, e),
            "torch.nn.Buffer" => match args.get(0, "data") {
                Some((Value::Tensor(t), _)) => {
                    let t = self.get_tensor(t);
                    self.tensor(Tensor { role: Role::Buffer, ..t })
                }
                _ => self.result_of(e),
            },
            // A distribution over others is where its base is.
            "torch.distributions.Independent"
            | "torch.distributions.independent.Independent"
            | "torch.distributions.TransformedDistribution"
            | "torch.distributions.transformed_distribution.TransformedDistribution" => {
                args.get(0, "base_distribution").map_or(Value::Unknown, |(base, _)| base)
            }
            "torch.is_tensor" => match args.get(0, "obj") {
                Some((v, at)) => {
                    let class = Value::External(Sym::new("torch.Tensor"));
                    let args = Args { positional: vec![(v, at), (class, at)], ..Args::default() };
                    self.is_instance(v, at, &args, e)
                }
                None => self.result_of(e),
            },
            "torch.Generator" => self.make_generator(args, e),
            "torch.load" => self.torch_load(1, args, e),
            "torch.hub.load_state_dict_from_url" | "torch.utils.model_zoo.load_url" => {
                self.torch_load(2, args, e)
            }
            "torch.save" => {
                if let Some((file, _)) = args.get(1, "f") {
                    let key = plain_file(file);
                    let before = self.saved.get(&key).copied().unwrap_or(super::FALSE);
                    let when = self.d.or(before, self.path);
                    self.saved.insert(key, when);
                }
                return None;
            }
            "torch.utils.data.DataLoader" | "torch.utils.data.dataloader.DataLoader" => {
                self.make_loader(args, e)
            }
            "torch.utils.data.TensorDataset" | "torch.utils.data.dataset.TensorDataset" => {
                let items: Vec<Value> = args.positional.iter().map(|&(v, _)| v).collect();
                let item = if args.open { Value::Unknown } else { self.seq(&items) };
                Value::Object(self.object(ObjKind::Items, None, item))
            }
            "torch.utils.data.random_split" => {
                if let Some(op) = torch::function(Sym::new(text)) {
                    self.check_cpu_only(op, "`random_split`", e, None, args);
                }
                let part = args.positional.first().map_or(Value::Unknown, |&(v, _)| v);
                let n = args.positional.get(1).and_then(|&(v, _)| self.exact_elements(v)).map(|v| v.len());
                match n {
                    Some(n) => self.seq(&vec![part; n]),
                    None => self.many(part),
                }
            }
            "torch.utils.data.Subset" | "torch.utils.data.ConcatDataset" => {
                args.positional.first().map_or(Value::Unknown, |&(v, _)| v)
            }
            "argparse.ArgumentParser" => Value::Object(self.object(ObjKind::Parser, None, Value::Absent)),
            "copy.copy" | "copy.deepcopy" => {
                args.positional.first().map_or(Value::Unknown, |&(v, _)| self.deep_copy(v, 0))
            }
            "sys.exit" | "os._exit" | "os.abort" | "exit" | "quit" | "pytest.skip" | "pytest.exit"
            | "pytest.fail" => {
                self.path = super::FALSE;
                Value::None
            }
            "os.environ.get" | "os.getenv" => self.environment(args),
            "reveal_device" | "builtins.reveal_device" => self.reveal(args, e),
            "functools.partial" => return Some(self.partial(args, e)),
            "collections.namedtuple" | "typing.NamedTuple" => self.tuple_class(args, e),
            "collections.OrderedDict" => self.builtin(Sym::new("dict"), args, e),
            "itertools.product" if args.keywords.is_empty() && !args.open && !args.positional.is_empty() => {
                let row: Vec<Value> =
                    args.positional.iter().map(|&(v, at)| self.some_element(v, at)).collect();
                let row = self.seq(&row);
                self.many(row)
            }
            // What `with` binds is what it was given, as with a generator's only element.
            "contextlib.nullcontext" => match args.get(0, "enter_result") {
                Some((v, _)) => self.many(v),
                None => self.result_of(e),
            },
            _ => return None,
        };
        Some(v)
    }

    fn make_device(&mut self, args: &Args, e: ExprId) -> Value {
        let Some((v, at)) = args.get(0, "device").or_else(|| args.keyword("type")) else {
            return self.result_of(e);
        };
        let index = args.get(1, "index").map(|(v, _)| v);
        self.check_device_string(v, e);
        if let (Value::Str(s, origin), Some(i)) = (v, index) {
            if s.as_str() == "cuda" {
                self.check_index_meaning(i, e);
            }
            let device = match (s.as_str(), i) {
                ("cuda", Value::Int(i)) => Device::Cuda(u32::try_from(i).ok()),
                ("cuda", Value::None) => Device::Cuda(None),
                ("cuda", _) => Device::CudaSome,
                ("cpu", _) => Device::Cpu,
                _ => Device::Unknown,
            };
            return Value::Device(self.at(device, origin));
        }
        match self.as_device(v, at) {
            Some(d) => Value::Device(d),
            None => self.result_of(e),
        }
    }

    fn default_tensor_type(&mut self, args: &Args, e: ExprId) {
        let name = match args.positional.first() {
            Some(&(Value::Str(s, _), _)) => s.as_str(),
            Some(&(Value::External(p), _)) => p.as_str(),
            _ => {
                let unknown = self.unknown_device();
                let cell = self.default_device;
                self.store.set(cell, Value::Device(unknown));
                return;
            }
        };
        let place = self.place(e);
        let origin = self.origin(place, Reason::Literal, NO_ORIGIN);
        let cell = self.default_device;
        if name.starts_with("torch.cuda.") {
            let d = self.at(Device::Cuda(None), origin);
            self.check_use(d, e, UseKind::LegacyType, "`torch.set_default_tensor_type()`");
            self.store.set(cell, Value::Device(d));
        } else {
            self.store.set(cell, Value::Absent);
        }
    }

    fn make_parameter(&mut self, args: &Args, e: ExprId) -> Value {
        match args.get(0, "data") {
            Some((Value::Tensor(t), _)) => {
                let t = self.get_tensor(t);
                self.tensor(Tensor { role: Role::Parameter, ..t })
            }
            _ => {
                let device = self.default_device_at(e, Reason::Default);
                self.tensor(Tensor {
                    device,
                    zero_dim: Tri::Maybe,
                    role: Role::Parameter,
                    certain: true,
                    bytes: None,
                })
            }
        }
    }

    fn make_generator(&mut self, args: &Args, e: ExprId) -> Value {
        let device = match args.get(0, "device") {
            Some((v, at)) if v != Value::None => {
                let d = self.as_device(v, at).unwrap_or_else(|| self.unknown_device());
                self.check_use(d, e, UseKind::Factory, "`torch.Generator()`");
                self.because(d, e, Reason::Made)
            }
            _ => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Default, NO_ORIGIN);
                self.at(Device::Cpu, origin)
            }
        };
        Value::Object(self.object(ObjKind::Generator, None, Value::Device(device)))
    }

    /// `position` is that of `map_location`.
    fn torch_load(&mut self, position: usize, args: &Args, e: ExprId) -> Value {
        let location = args.get(position, "map_location");
        let explicit_none = matches!(location, Some((Value::None, _)));
        // What this very process has written comes back to where it was.
        let file = args.get(0, "f").map(|(v, _)| plain_file(v));
        let own = file
            .and_then(|f| self.saved.get(&f).copied())
            .is_some_and(|when| self.d.implies(self.path, when));
        if ((location.is_none() && !args.open) || explicit_none) && !own {
            let available = self.available(None);
            let bad = self.d.not(available);
            if let Some(bite) = self.bite(bad, true) {
                let place = self.place(e);
                self.emit(Kind::Load { explicit_none }, place, bite, Vec::new());
                // Data sets are saved with `torch.save` too: wait until the result is used as weights.
                let result = self.result_of(e);
                if let (Value::Outer(o), Some(event)) = (result, self.events.pop()) {
                    self.loads.insert(o, event);
                }
                return result;
            }
        }
        match location {
            Some((v, at)) if v != Value::None => {
                let Some(d) = self.as_device(v, at).filter(|_| !matches!(v, Value::Closure(_))) else {
                    return self.result_of(e);
                };
                let device = self.because(d, e, Reason::Loaded);
                self.tensor(Tensor {
                    device,
                    zero_dim: Tri::Maybe,
                    role: Role::Plain,
                    certain: false,
                    bytes: None,
                })
            }
            _ => self.result_of(e),
        }
    }

    /// The value is used as weights: if `torch.load` gave it, that matters.
    pub(super) fn used_as_weights(&mut self, v: Value) {
        let Value::Outer(mut o) = v else { return };
        loop {
            if let Some(event) = self.loads.remove(&o) {
                self.events.push(event);
                return;
            }
            match self.t.get_outer(o).key {
                OuterKey::Attr { base, .. } | OuterKey::Item { base, .. } => o = base,
                _ => return,
            }
        }
    }

    /// Batches are collated on the CPU, whatever unknown code the data set has.
    fn make_loader(&mut self, args: &Args, e: ExprId) -> Value {
        let data = args.get(0, "dataset").map(|(v, _)| v);
        self.check_workers(data, args, e);
        let collate = args.get(6, "collate_fn").filter(|(v, _)| *v != Value::None);
        let item = match (data, collate) {
            (Some(data), Some((f @ (Value::Closure(_) | Value::Bound(_)), at))) => {
                self.collated_by(data, f, at, e)
            }
            (Some(Value::Object(id)), None) if self.obj(id).kind == ObjKind::Items => {
                let item = self.own(id);
                self.collated(item, e)
            }
            (_, None) => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Batch, NO_ORIGIN);
                let device = self.at(Device::Cpu, origin);
                self.tensor(Tensor {
                    device,
                    zero_dim: Tri::No,
                    role: Role::Plain,
                    certain: false,
                    bytes: None,
                })
            }
            _ => Value::Unknown,
        };
        let pins =
            args.get(7, "pin_memory").is_some_and(|(v, _)| v != Value::Bool(super::FALSE)) || args.open;
        let item = if pins { self.pinned(item, e) } else { item };
        Value::Object(self.object(ObjKind::Loader, None, item))
    }

    /// What the project's own `collate_fn` makes of the data set's items. It is interpreted for itself too.
    fn collated_by(&mut self, data: Value, f: Value, at: ExprId, e: ExprId) -> Value {
        let before = self.path;
        self.muted += 1;
        let item = match data {
            Value::Object(id) if matches!(self.obj(id).kind, ObjKind::Instance | ObjKind::Items) => {
                self.index(data, Self::NUMBER, e, e, e)
            }
            _ => self.result_of(e),
        };
        let items = self.many(item);
        let args = Args { positional: vec![(items, at)], ..Args::default() };
        let batch = self.call_value(f, &args, e);
        self.muted -= 1;
        self.path = before;
        if batch == Value::None { Value::Unknown } else { batch }
    }

    /// What a loader pins, or may pin.
    fn pinned(&mut self, item: Value, e: ExprId) -> Value {
        match item {
            Value::Tensor(t) => {
                let t = self.get_tensor(t);
                let device = self.because(t.device, e, Reason::Pinned);
                self.tensor(Tensor { device, ..t })
            }
            Value::Seq(s) => {
                let items: Vec<Value> = self.seq_items(s).iter().map(|&v| self.pinned(v, e)).collect();
                self.seq(&items)
            }
            Value::Object(id) if matches!(self.obj(id).kind, ObjKind::Dict { module: false }) => {
                let content = self.own(id);
                let content = self.pinned(content, e);
                self.set_own(id, content);
                item
            }
            v => v,
        }
    }

    fn collated(&mut self, item: Value, e: ExprId) -> Value {
        match item {
            Value::Tensor(t) => {
                let t = self.get_tensor(t);
                let device = self.because(t.device, e, Reason::Batch);
                self.tensor(Tensor {
                    device,
                    zero_dim: Tri::No,
                    role: Role::Plain,
                    certain: true,
                    bytes: None,
                })
            }
            Value::Seq(s) => {
                let items: Vec<Value> = self.seq_items(s).iter().map(|&v| self.collated(v, e)).collect();
                // `for x, in loader` and `for x in loader` both come as a list of tensors.
                self.seq(&items)
            }
            v => v,
        }
    }

    fn environment(&mut self, args: &Args) -> Value {
        let Some(&(Value::Str(name, _), _)) = args.positional.first() else { return Self::TEXT };
        let key = OuterKey::External(Sym::new(&format!("os.environ[{name}]")));
        let text = name.to_string();
        let default = args.get(1, "default").map(|(v, _)| v);
        let id = self.t.outer(key.clone(), || Outer {
            key,
            text,
            tensor: false,
            device: false,
            varies: false,
            with: None,
            default,
        });
        Value::Outer(id)
    }

    fn deep_copy(&mut self, v: Value, depth: u32) -> Value {
        let Value::Object(id) = v else { return v };
        if depth > 4 {
            return Value::Unknown;
        }
        let own = self.own(id);
        let own = match own {
            Value::Seq(s) => {
                let items: Vec<Value> =
                    self.seq_items(s).iter().map(|&v| self.deep_copy(v, depth + 1)).collect();
                self.seq(&items)
            }
            v => v,
        };
        let (kind, class, outer) = (self.obj(id).kind, self.obj(id).class, self.obj(id).outer);
        let new = self.object(kind, class, own);
        self.objects[new.0 as usize].outer = outer;
        self.objects[new.0 as usize].reserved = self.obj(id).reserved.clone();
        for (name, cell) in self.obj(id).attrs.clone() {
            let field = self.store.get(cell);
            let copy = self.deep_copy(field, depth + 1);
            self.set_field(new, name, copy);
        }
        Value::Object(new)
    }

    /// `functools.partial(f, …)`: the function and what it will be given.
    fn partial(&mut self, args: &Args, e: ExprId) -> Value {
        let Some((&(f, _), rest)) = args.positional.split_first() else { return self.result_of(e) };
        if args.open {
            return self.result_of(e);
        }
        let rest: Vec<Value> = rest.iter().map(|&(v, _)| v).collect();
        let keywords: Vec<Value> =
            args.keywords.iter().flat_map(|&(k, v, _)| [Value::Str(k, NO_ORIGIN), v]).collect();
        if rest.len().max(keywords.len()) > super::MAX_ELEMENTS {
            return self.result_of(e);
        }
        let (rest, keywords) = (self.seq(&rest), self.seq(&keywords));
        let own = self.seq(&[f, rest, keywords]);
        Value::Object(self.object(ObjKind::Partial, None, own))
    }

    /// Calls what [`Self::partial`] made.
    pub(super) fn call_partial(&mut self, id: ObjId, args: &Args, e: ExprId) -> Value {
        let parts = self.exact_elements(self.own(id)).unwrap_or_default();
        let &[f, rest, keywords] = parts.as_slice() else {
            return self.unknown_call(Value::Unknown, args, e);
        };
        let mut all = Args { open: args.open, open_names: args.open_names, ..Args::default() };
        all.positional.extend(self.exact_elements(rest).unwrap_or_default().into_iter().map(|v| (v, e)));
        all.positional.extend(&args.positional);
        all.keywords.extend(&args.keywords);
        for pair in self.exact_elements(keywords).unwrap_or_default().chunks(2) {
            if let &[Value::Str(k, _), v] = pair
                && args.keyword(k.as_str()).is_none()
            {
                all.keywords.push((k, v, e));
            }
        }
        self.call_value(f, &all, e)
    }

    /// `namedtuple("Pair", ["left", "right"])`, `namedtuple("Pair", "left right")`
    fn tuple_class(&mut self, args: &Args, e: ExprId) -> Value {
        let fields = match args.get(1, "field_names").map(|(v, _)| v) {
            Some(Value::Str(s, _)) => {
                let names = s.as_str().split([',', ' ']).filter(|n| !n.is_empty());
                Some(names.map(|n| Value::Str(Sym::new(n), NO_ORIGIN)).collect())
            }
            Some(v) => self.exact_elements(v),
            None => None,
        };
        let fields: Option<Vec<Value>> = fields.map(|fields| {
            // `NamedTuple("Pair", [("left", Tensor), …])`
            let name = |v: Value| self.exact_elements(v).and_then(|pair| pair.first().copied()).unwrap_or(v);
            fields.into_iter().map(name).collect()
        });
        match fields {
            Some(f) if f.len() <= super::MAX_ELEMENTS && f.iter().all(|v| matches!(v, Value::Str(..))) => {
                let own = self.seq(&f);
                Value::Object(self.object(ObjKind::TupleClass, None, own))
            }
            _ => self.result_of(e),
        }
    }

    /// An instance of what [`Self::tuple_class`] made.
    pub(super) fn make_tuple(&mut self, class: ObjId, args: &Args, e: ExprId) -> Value {
        let fields = self.exact_elements(self.own(class)).unwrap_or_default();
        if args.open || args.positional.len() > fields.len() {
            return self.result_of(e);
        }
        let mut values = Vec::with_capacity(fields.len());
        for (n, field) in fields.iter().enumerate() {
            let Value::Str(name, _) = field else { continue };
            values.push(args.get(n, name.as_str()).map_or(Value::Unknown, |(v, _)| v));
        }
        let own = self.seq(&values);
        let id = self.object(ObjKind::Instance, None, own);
        for (field, &v) in fields.iter().zip(&values) {
            if let &Value::Str(name, _) = field {
                self.set_field(id, name, v);
            }
        }
        Value::Object(id)
    }

    fn reveal(&mut self, args: &Args, e: ExprId) -> Value {
        if let Some(&(v, at)) = args.positional.first() {
            let text = self.describe(v, at);
            let place = self.place(e);
            let bite = super::super::event::Bite::in_world(crate::world::World::Always);
            if self.muted == 0 && self.path != super::FALSE {
                self.emit(Kind::Reveal(text), place, bite, Vec::new());
            }
            return v;
        }
        Value::None
    }

    /// A call whose facts are in the tables.
    fn fact_call(&mut self, path: Sym, fact: &'static CallFact, args: &Args, e: ExprId) -> Value {
        if let Some(a) = fact.accelerator
            && let Some(v) = self.accelerator_call(path, a, args, e)
        {
            return v;
        }
        if fact.to_numpy != Numpy::None {
            for (i, &(v, at)) in args.positional.iter().enumerate() {
                if fact.to_numpy.converts(i) {
                    self.check_converted(v, at, e, path.as_str());
                }
            }
        }
        if fact.moves_for_user || !fact.leaves_arguments && fact.returns == Returns::Unknown {
            for (v, _) in args.values() {
                self.escape(v, 0);
            }
        }
        match fact.returns {
            Returns::Argument(a) => {
                args.get(usize::from(a.position), a.name.as_str()).map_or(Value::Unknown, |(v, _)| v)
            }
            Returns::Host => Self::NUMBER,
            Returns::Memory => Value::Host(super::Host::Memory),
            Returns::Cpu => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Host, NO_ORIGIN);
                let d = self.at(Device::Cpu, origin);
                self.plain_tensor(d, Tri::Maybe)
            }
            Returns::Method(name) => match args.positional.split_first() {
                Some((&(v, at), rest)) => {
                    let rest = Args { positional: rest.to_vec(), ..args.clone() };
                    self.call_method(v, name, &rest, e, at)
                }
                None => self.result_of(e),
            },
            _ if path.as_str().starts_with("numpy.") => Self::ARRAY,
            _ => self.result_of(e),
        }
    }

    /// A value is handed to something that turns it into an array.
    fn check_converted(&mut self, v: Value, at: ExprId, e: ExprId, what: &str) {
        match v {
            Value::Tensor(t) if self.get_tensor(t).certain => {
                let device = self.get_tensor(t).device;
                self.check_host(device, at, e, &format!("`{what}`"));
            }
            Value::Object(id) if matches!(self.obj(id).kind, ObjKind::List { module: false }) => {
                let item = match self.own(id) {
                    Value::Many(m) => Some(*self.t.values.get(m)),
                    Value::Seq(s) => self.seq_items(s).first().copied(),
                    _ => None,
                };
                if let Some(v) = item {
                    self.check_converted(v, at, e, what);
                }
            }
            _ => {}
        }
    }

    /// A function of `torch.cuda` or of another back end; `None` to go on with what else is known of it.
    fn accelerator_call(&mut self, path: Sym, a: AcceleratorCall, args: &Args, e: ExprId) -> Option<Value> {
        let backend = match a.accelerator {
            Accelerator::Cuda => None,
            Accelerator::Backend(b) => Some(b),
            Accelerator::Any => return None,
        };
        if let (Some(b), true) = (backend, a.accelerator.needs_plugin()) {
            self.check_plugin(path, b, e);
        }
        if backend.is_none() && super::super::import_time::asks_cuda(path) {
            let place = self.place(e);
            self.initialises(TRUE, place);
        }
        match a.without {
            Without::Availability => Some(Value::Bool(self.available(backend))),
            Without::Count if backend.is_none() => Some(Value::Outer(self.known.device_count)),
            Without::Count | Without::NoGuard => Some(self.result_of(e)),
            Without::Safe => None,
            Without::Raises => {
                let device = a.device.and_then(|d| args.get(usize::from(d.position), d.name.as_str()));
                let harmless = a.none_is_harmless && matches!(device, Some((Value::None, _)))
                    || matches!(device, Some((Value::Int(i), _)) if i < 0 && a.none_is_harmless);
                if !harmless && !a.context {
                    let what = format!("`{path}()`");
                    self.use_of_device(device, backend, e, UseKind::Query, &what);
                }
                None
            }
        }
    }

    /// A use of an accelerator that names a device by argument, or takes the current one.
    pub(super) fn use_of_device(
        &mut self,
        device: Option<(Value, ExprId)>,
        backend: Option<crate::world::Backend>,
        e: ExprId,
        how: UseKind,
        what: &str,
    ) {
        let place = self.place(e);
        let d = match (device, backend) {
            (Some((v, at)), None) if v != Value::None => {
                let d = self.as_device(v, at).unwrap_or_else(|| self.unknown_device());
                let names_other = matches!(v, Value::Outer(_) | Value::Device(_) | Value::Choice(_));
                if names_other { d } else { self.only_cuda_device(d) }
            }
            (_, None) => {
                let origin = self.origin(place, Reason::Literal, NO_ORIGIN);
                self.at(Device::Cuda(None), origin)
            }
            (_, Some(b)) => {
                let origin = self.origin(place, Reason::Literal, NO_ORIGIN);
                self.at(Device::Other(b), origin)
            }
        };
        self.check_use(d, e, how, what);
    }

    /// `device_ids=[0, 1, 2, 3]`: a list of indices where a callable takes devices. Without any GPU such lists are
    /// forgotten, or something else raises first.
    pub(super) fn check_device_list(&mut self, path: Sym, args: &Args, e: ExprId) {
        if !args.values().any(|(v, _)| matches!(v, Value::Object(_) | Value::Seq(_))) {
            return;
        }
        let Some(arg) = torch::call(path).and_then(|f| f.accelerator).and_then(|a| a.device) else { return };
        let Some((list, _)) = args.get(usize::from(arg.position), arg.name.as_str()) else { return };
        let Some(items) = self.exact_elements(list) else { return };
        let index = |v: &Value| match v {
            Value::Int(i) => u32::try_from(*i).ok(),
            _ => None,
        };
        let Some(highest) = items.iter().filter_map(index).max().filter(|&i| i > 0) else { return };
        if self.caught_around() {
            return;
        }
        let (there, enough) = (self.at_least(1), self.at_least(highest + 1));
        let missing = self.d.not(enough);
        let bad = self.d.and(there, missing);
        let Some(bite) = self.bite(bad, false) else { return };
        let place = self.place(e);
        let what = format!("`{}={:?}`", arg.name, items.iter().filter_map(index).collect::<Vec<_>>());
        let kind = Kind::Use {
            what,
            origin: None,
            index: Some(highest),
            backend: None,
            how: UseKind::DeviceList,
            inverted: false,
        };
        self.emit(kind, place, bite, Vec::new());
    }

    fn only_cuda_device(&mut self, d: super::Dd) -> super::Dd {
        let places = &mut self.t.places;
        self.d.map(d, &mut |p| match *places.get(p) {
            (Device::Unknown, o) => places.add((Device::CudaSome, o)),
            _ => p,
        })
    }

    /// CUDA itself is used, on whichever device is current.
    pub(super) fn use_cuda(&mut self, e: ExprId, how: UseKind, what: &str) {
        self.use_of_device(None, None, e, how, what);
    }

    /// A call of a library of which the tables know nothing.
    fn foreign_call(&mut self, path: Sym, args: &Args, e: ExprId) -> Value {
        let text = path.as_str();
        if text.starts_with("numpy.") {
            return Self::ARRAY;
        }
        if torch::base_class(path).is_some_and(|b| b.kind == torch::Base::Optimizer)
            || text.starts_with("torch.optim.")
        {
            return Value::Object(self.object(ObjKind::Inert, None, Value::Absent));
        }
        if torch::base_class(path).is_some_and(|b| b.kind == torch::Base::Module) {
            return self.foreign_instance(None, args, e);
        }
        let last = super::torch_fn::short(path);
        if matches!(last, "from_pretrained") && text.contains("Model")
            || text.starts_with("torchvision.models.")
        {
            return self.foreign_instance(None, args, e);
        }
        if text == "torch.cuda.device_count" {
            return Value::Outer(self.known.device_count);
        }
        self.unknown_call(Value::Unknown, args, e)
    }

    /// Methods of objects that stand for things of other libraries.
    pub(super) fn foreign_method(&mut self, id: ObjId, name: Sym, args: &Args, e: ExprId) -> Value {
        self.training_method(id, name, args, e);
        match (self.obj(id).kind, name.as_str()) {
            (ObjKind::Parser, "add_argument") => {
                self.add_argument(id, args);
                Value::None
            }
            (ObjKind::Parser, "parse_args" | "parse_known_args") => {
                let namespace = self.object(ObjKind::Namespace, None, Value::Object(id));
                if name.as_str() == "parse_args" {
                    return Value::Object(namespace);
                }
                self.seq(&[Value::Object(namespace), Value::Unknown])
            }
            (ObjKind::Parser, "add_argument_group" | "add_mutually_exclusive_group") => Value::Object(id),
            (ObjKind::Generator, "manual_seed" | "set_state") => Value::Object(id),
            (ObjKind::Generator, _) => Self::NUMBER,
            (ObjKind::Distribution, "sample" | "rsample" | "sample_n") => {
                let parameters = self.distribution_parameters(id, e);
                self.meet(super::super::event::Meeting::Function, &format!("`.{name}()`"), e, &parameters);
                self.own(id)
            }
            (ObjKind::Distribution, "log_prob" | "cdf" | "icdf") => {
                let mut parties = self.distribution_parameters(id, e);
                for &(v, at) in &args.positional {
                    parties.extend(self.party(v, at, super::meet::Rule::ARITHMETIC));
                }
                self.meet(super::super::event::Meeting::Function, &format!("`.{name}()`"), e, &parties);
                self.own(id)
            }
            (ObjKind::Distribution, "entropy") => self.own(id),
            (ObjKind::Inert, "load_state_dict") => {
                for &(v, _) in args.positional.iter().take(1) {
                    self.used_as_weights(v);
                }
                self.result_of(e)
            }
            (ObjKind::Inert, _) => self.result_of(e),
            _ => self.unknown_call(Value::Unknown, args, e),
        }
    }

    fn distribution_parameters(&mut self, id: ObjId, e: ExprId) -> Vec<super::meet::Party> {
        let attrs = self.obj(id).attrs.clone();
        let mut parties = Vec::new();
        for (_, cell) in attrs {
            let v = self.store.get(cell);
            parties.extend(self.party(v, e, super::meet::Rule::ARITHMETIC));
        }
        parties
    }

    fn add_argument(&mut self, parser: ObjId, args: &Args) {
        let dest = args.keyword("dest").and_then(|(v, _)| match v {
            Value::Str(s, _) => Some(s.as_str().to_owned()),
            _ => None,
        });
        let flags: Vec<&str> = args
            .positional
            .iter()
            .filter_map(|&(v, _)| match v {
                Value::Str(s, _) => Some(s.as_str()),
                _ => None,
            })
            .collect();
        let long = flags.iter().find(|f| f.starts_with("--")).or_else(|| flags.first());
        let Some(name) = dest.or_else(|| long.map(|f| f.trim_start_matches('-').replace('-', "_"))) else {
            return;
        };
        let action = args.keyword("action").and_then(|(v, _)| match v {
            Value::Str(s, _) => Some(s.as_str()),
            _ => None,
        });
        let default = args.keyword("default").map(|(v, _)| v).or(match action {
            Some("store_true") => Some(Value::Bool(super::FALSE)),
            Some("store_false") => Some(Value::Bool(TRUE)),
            _ => Some(Value::None),
        });
        let key = OuterKey::Argument { parser, name: Sym::new(&name) };
        let device = names_device(&name);
        let text = format!("args.{name}");
        self.t.outer(key.clone(), || Outer {
            key,
            text,
            tensor: false,
            device,
            varies: false,
            with: None,
            default,
        });
    }

    /// `args.name`
    pub(super) fn argument(&mut self, namespace: ObjId, name: Sym, e: ExprId) -> Value {
        let Value::Object(parser) = self.own(namespace) else { return self.result_of(e) };
        let key = OuterKey::Argument { parser, name };
        let device = names_device(name.as_str());
        let text = format!("args.{name}");
        let id = self.t.outer(key.clone(), || Outer {
            key,
            text,
            tensor: false,
            device,
            varies: false,
            with: None,
            default: None,
        });
        Value::Outer(id)
    }

    /// `super().__init__(…)` of a base that is not in the project.
    pub(super) fn call_foreign_init(&mut self, receiver: Value, name: Sym, args: &Args, e: ExprId) {
        let _ = (receiver, name, e);
        for (v, _) in args.values() {
            self.escape(v, 0);
        }
    }

    /// At least this many GPUs.
    pub(super) fn at_least(&mut self, n: u32) -> super::Cond {
        self.d.atom(gpus_at_least(n))
    }
}

/// A file as `torch.save` and `torch.load` are given it, without where its name was written.
fn plain_file(v: Value) -> Value {
    match v {
        Value::Str(s, _) => Value::Str(s, NO_ORIGIN),
        v => v,
    }
}
