//! Calls of names outside the project.

use super::saved_files::is_download;
use crate::flow::domain::atom::gpus_at_least;
use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, NO_ORIGIN, ObjId, Outer, OuterKey, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::calls::args::{Args, names_device};
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::{self, Elsewhere};
use crate::world::Backend;

/// What may be the current accelerator instead of CUDA.
pub(crate) const CURRENT: [Backend; 4] = [Backend::Xpu, Backend::Mps, Backend::Npu, Backend::Hpu];

/// Libraries that work on arrays in main memory. What of a GPU they are given raises, whatever the function is
/// (`numpy.asarray` of it does).
const HOST_LIBRARIES: [&str; 9] =
    ["numpy.", "scipy.", "cv2.", "PIL.", "sklearn.", "skimage.", "pandas.", "matplotlib.", "plotly."];

/// `nn.Module.to(model, device)`: what a method of that name in `model` goes on with.
const MODULES_OWN: &str = "torch.nn.Module.";

impl Interp<'_> {
    /// A module is moved by the method that all modules have, whatever its class has made of that.
    fn moved_by_base(&mut self, path: &str, args: &Args, e: ExprId) -> Option<Value> {
        let name = path
            .strip_prefix(MODULES_OWN)
            .filter(|name| crate::flow::models::modules::nn_module::MOVES.contains(name))?;
        let Some(&(Value::Object(id), at)) = args.positional.first() else { return None };
        if !self.is_module_object(id) {
            return None;
        }
        let mut rest = args.clone();
        rest.positional.remove(0);
        Some(self.module_method(id, Sym::new(name), &rest, e, at))
    }

    pub(crate) fn call_external(&mut self, path: Sym, args: &Args, e: ExprId) -> Value {
        let text = path.as_str();
        self.note_called(path, args);
        self.hands_over(text, args);
        self.traces(text, args, e);
        if let Some(name) = text.strip_prefix("builtins.") {
            return self.builtin(Sym::new(name), args, e);
        }
        if let Some(v) = self.process_call(text, args, e).or_else(|| self.platform_call(text, args)) {
            return v;
        }
        if let Some(v) = self.fork_call(text, args, e) {
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
            // What needs an accelerator needs it whatever it makes.
            if let Some(a) = torch::call(path).and_then(|f| f.accelerator)
                && let Some(v) = self.accelerator_call(path, a, args, e)
            {
                return v;
            }
            return self.torch_function(path, op, args, e);
        }
        let result = match torch::call(path) {
            Some(fact) => match self.make_keeper(fact, args, e) {
                Some(made) => made,
                None => self.fact_call(path, fact, args, e),
            },
            None => self.foreign_call(path, args, e),
        };
        if result == Self::ARRAY { self.array_of(text, args) } else { result }
    }

    /// What the rules know by name, because the tables cannot say it.
    pub(crate) fn special(&mut self, text: &str, args: &Args, e: ExprId) -> Option<Value> {
        let v = match text {
            "torch.device" => self.make_device(args, e),
            _ if text.starts_with(MODULES_OWN) => return self.moved_by_base(text, args, e),
            crate::flow::machine::calls::decorators::WRAPPED => {
                self.calls.probed = self.d.or(self.calls.probed, self.path);
                self.result_of(e)
            }
            "torch.accelerator.current_accelerator" => {
                // A CUDA build names CUDA, GPU or not, unless it is told to look.
                let place = self.place(e);
                let origin = self.origin(place, Reason::Literal, NO_ORIGIN);
                let mut built_for = self.at(Device::Cuda(None), origin);
                for b in CURRENT {
                    let (cuda, there) = (self.available(None), self.available(Some(b)));
                    let not_cuda = self.d.not(cuda);
                    let (only, other) = (self.d.and(there, not_cuda), self.at(Device::Other(b), origin));
                    built_for = self.ite_device(only, other, built_for);
                }
                let cuda = Value::Device(built_for);
                match args.get(0, "check_available").map(|(v, _)| v) {
                    None | Some(Value::Bool(crate::flow::domain::diagram::FALSE)) => cuda,
                    Some(Value::Bool(TRUE)) => {
                        let there = self.available(None);
                        let other = self.result_of(e);
                        self.ite(there, cuda, other)
                    }
                    _ => self.result_of(e),
                }
            }
            // Of programs as Python runs them: what is traced or scripted takes other branches, on the machine that exports.
            "torch.jit.is_tracing" | "torch.jit.is_scripting" | "torch.onnx.is_in_onnx_export" => {
                Value::Bool(crate::flow::domain::diagram::FALSE)
            }
            "torch._C._get_tracing_state" => Value::None,
            // A tensor is none, whatever its dimensions.
            "numpy.isscalar" if args.positional.first().is_some_and(|&(v, _)| self.certain(v)) => {
                Value::Bool(crate::flow::domain::diagram::FALSE)
            }
            "torch.set_grad_enabled" => self.switch_gradients(args),
            "torch.set_default_device" => {
                let d = args.get(0, "device").and_then(|(v, at)| self.as_device(v, at));
                let cell = self.tensors.default_device;
                let v = d.map_or(Value::None, |d| Value::Device(self.because(d, e, Reason::Made)));
                self.store.set(cell, v);
                Value::None
            }
            "torch.set_default_tensor_type" => {
                self.default_tensor_type(args, e);
                Value::None
            }
            "torch.nn.Parameter" | "torch.nn.parameter.Parameter" => self.make_parameter(args, e),
            "torch.nn.Buffer" | "torch.nn.parameter.Buffer" => match args.get(0, "data") {
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
            "torch.distributions.kl_divergence" | "torch.distributions.kl.kl_divergence" => {
                self.divergence(args, e)
            }
            "torch.is_tensor" => match args.get(0, "obj") {
                Some((Value::Int(_), _)) => Value::Bool(crate::flow::domain::diagram::FALSE),
                Some((v, at)) => {
                    let class = Value::External(Sym::new("torch.Tensor"));
                    let args = Args { positional: vec![(v, at), (class, at)], ..Args::default() };
                    self.is_instance(v, at, &args, e)
                }
                None => self.result_of(e),
            },
            "torch.promote_types" | "torch.result_type" => self.promoted_type(args),
            "torch.Generator" => self.make_generator(args, e),
            "torch.manual_seed" | "torch.random.manual_seed" => self.default_generator(e),
            "torch.load" => self.torch_load(1, false, args, e),
            "torch.jit.load" => self.torch_load(1, true, args, e),
            "torch.hub.load_state_dict_from_url" | "torch.utils.model_zoo.load_url" => {
                self.torch_load(2, false, args, e)
            }
            "torch.save" | "torch.jit.save" => {
                self.remember_saved(1, args);
                return None;
            }
            _ if is_download(text) => {
                self.remember_download(text, args);
                return None;
            }
            _ if text.starts_with("torch.utils.data.") => return self.data_utility(text, args, e),
            "argparse.ArgumentParser" => {
                let parser = self.object(ObjKind::Parser, None, Value::Absent);
                self.libraries.parsers.insert(parser, self.place(e));
                Value::Object(parser)
            }
            _ if text.starts_with("accelerate.") => return self.make_accelerator(text, args, e),
            "dataclasses.replace" => self.replaced(args, e),
            "dataclasses.fields" => {
                let fields = args.positional.first().and_then(|&(v, _)| self.fields_of(v));
                return fields;
            }
            "functools.reduce" => return self.reduced_by(args, e),
            // `field(default_factory=torch.cuda.is_available)`
            "dataclasses.field" => match args.keyword("default_factory") {
                Some((factory @ Value::External(path), _)) if path.as_str().starts_with("torch.") => {
                    self.call_value(factory, &Args::default(), e)
                }
                _ => return None,
            },
            "copy.copy" | "copy.deepcopy" => {
                args.positional.first().map_or(Value::Unknown, |&(v, _)| self.deep_copy(v, 0))
            }
            "sys.exit" | "os._exit" | "os.abort" | "exit" | "quit" | "pytest.skip" | "pytest.exit"
            | "pytest.fail" => {
                self.path = crate::flow::domain::diagram::FALSE;
                Value::None
            }
            "os.environ.get" | "os.getenv" => {
                let put = args.positional.first().and_then(|&(key, _)| self.put_text(key));
                put.unwrap_or_else(|| self.environment(args))
            }
            "os.environ.pop" => self.environment(args),
            "reveal_device" | "builtins.reveal_device" => self.reveal(args, e),
            "functools.partial" => return Some(self.partial(args, e)),
            "collections.namedtuple" | "typing.NamedTuple" => self.tuple_class(args, e),
            "collections.deque" => self.make_deque(args, e),
            // In place: which is where is not known any more.
            "random.shuffle" => {
                if let Some(&(Value::Object(id), _)) = args.positional.first()
                    && self.obj(id).kind == (ObjKind::List { module: false })
                    && let Some(items) = self.exact_elements(self.own(id))
                {
                    let content = self.many_of(&items);
                    self.set_own(id, content);
                }
                Value::None
            }
            "random.sample" | "random.choices" => match args.get(0, "population") {
                Some((v, at)) => {
                    let item = self.some_element(v, at);
                    let content = self.many(item);
                    Value::Object(self.object(ObjKind::List { module: false }, None, content))
                }
                None => self.result_of(e),
            },
            "collections.defaultdict" => self.default_dict(args, e),
            // Those of other libraries have their items as attributes as well.
            "collections.OrderedDict"
            | "easydict.EasyDict"
            | "addict.Dict"
            | "attrdict.AttrDict"
            | "box.Box"
            | "dotmap.DotMap"
            | "munch.Munch"
            | "ml_collections.ConfigDict" => self.builtin(Sym::new("dict"), args, e),
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

    pub(crate) fn make_device(&mut self, args: &Args, e: ExprId) -> Value {
        let Some((v, at)) = args.get(0, "device").or_else(|| args.keyword("type")) else {
            return self.result_of(e);
        };
        let index = args.get(1, "index").map(|(v, _)| v);
        self.check_device_given(v, e);
        self.check_truth_given(v, at);
        if let (Value::Str(s, origin), Some(i)) = (v, index) {
            let backend = Backend::from_name(s.as_str());
            if s.as_str() == "cuda" || backend.is_some() {
                self.check_index_meaning(i, e, backend);
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
            Some(d) => Value::Device(self.without_text(d)),
            None => self.result_of(e),
        }
    }

    pub(crate) fn environment(&mut self, args: &Args) -> Value {
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

    pub(crate) fn deep_copy(&mut self, v: Value, depth: u32) -> Value {
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
            if self.modules.unseen.contains(&(id, name)) {
                self.modules.unseen.insert((new, name));
            }
        }
        Value::Object(new)
    }

    /// `functools.partial(f, …)`: the function and what it will be given.
    pub(crate) fn partial(&mut self, args: &Args, e: ExprId) -> Value {
        let Some((&(f, _), rest)) = args.positional.split_first() else { return self.result_of(e) };
        if args.open {
            return self.result_of(e);
        }
        let rest: Vec<Value> = rest.iter().map(|&(v, _)| v).collect();
        let keywords: Vec<Value> =
            args.keywords.iter().flat_map(|&(k, v, _)| [Value::Str(k, NO_ORIGIN), v]).collect();
        if rest.len().max(keywords.len()) > crate::flow::machine::MAX_ELEMENTS {
            return self.result_of(e);
        }
        let (rest, keywords) = (self.seq(&rest), self.seq(&keywords));
        let own = self.seq(&[f, rest, keywords]);
        let made = self.object(ObjKind::Partial, None, own);
        self.note_kept_autocast(made, f, args, e);
        Value::Object(made)
    }

    /// Calls what [`Self::partial`] made.
    pub(crate) fn call_partial(&mut self, id: ObjId, args: &Args, e: ExprId) -> Value {
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
        let Some(&place) = self.tensors.kept_autocasts.get(&id) else { return self.call_value(f, &all, e) };
        let outer = self.tensors.called_autocast.replace(place);
        let made = self.call_value(f, &all, e);
        self.tensors.called_autocast = outer;
        made
    }

    /// `namedtuple("Pair", ["left", "right"])`, `namedtuple("Pair", "left right")`
    pub(crate) fn tuple_class(&mut self, args: &Args, e: ExprId) -> Value {
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
            Some(f)
                if f.len() <= crate::flow::machine::MAX_ELEMENTS
                    && f.iter().all(|v| matches!(v, Value::Str(..))) =>
            {
                let own = self.seq(&f);
                Value::Object(self.object(ObjKind::TupleClass, None, own))
            }
            _ => self.result_of(e),
        }
    }

    /// An instance of what [`Self::tuple_class`] made.
    pub(crate) fn make_tuple(&mut self, class: ObjId, args: &Args, e: ExprId) -> Value {
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

    pub(crate) fn reveal(&mut self, args: &Args, e: ExprId) -> Value {
        if let Some(&(v, at)) = args.positional.first() {
            let text = self.describe(v, at);
            let place = self.place(e);
            let bite = crate::flow::domain::event::Bite::in_world(crate::world::World::Always);
            if self.run.muted == 0 && self.path != crate::flow::domain::diagram::FALSE {
                self.emit(Kind::Reveal(text), place, bite, Vec::new());
            }
            return v;
        }
        Value::None
    }

    /// A call of a library of which the tables know nothing.
    pub(crate) fn foreign_call(&mut self, path: Sym, args: &Args, e: ExprId) -> Value {
        if let Some(answer) = self.driver_call(path, args, e) {
            return answer;
        }
        let text = path.as_str();
        if HOST_LIBRARIES.iter().any(|library| text.starts_with(library)) {
            args.values().for_each(|(v, _)| self.read_on_host(v));
        }
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
        let last = crate::flow::models::tensors::functions::short(path);
        if matches!(last, "from_pretrained") && text.contains("Model")
            || text.starts_with("torchvision.models.")
        {
            return self.foreign_instance(None, args, e);
        }
        if text == "torch.cuda.device_count" {
            return Value::Outer(self.known.device_count);
        }
        // `types.SimpleNamespace(x=x)`: its fields are what it is given.
        let holds = matches!(text, "types.SimpleNamespace" | "argparse.Namespace");
        if holds && args.positional.is_empty() && !args.open {
            let id = self.object(ObjKind::Instance, None, Value::Absent);
            for &(name, v, _) in &args.keywords {
                self.set_field(id, name, v);
            }
            return Value::Object(id);
        }
        // `torch.ops.hpu.…`: only the plug-in of that back end has it.
        let space = text.strip_prefix("torch.ops.").and_then(|rest| rest.split('.').next());
        if let Some(b) = space.and_then(Backend::from_name) {
            self.cannot_do_without(b);
        }
        self.check_given_device(path, args, e);
        self.unknown_call(Value::Unknown, args, e)
    }

    /// Methods of objects that stand for things of other libraries.
    pub(crate) fn foreign_method(&mut self, id: ObjId, name: Sym, args: &Args, e: ExprId) -> Value {
        self.training_method(id, name, args, e);
        self.pool_method(id, name, args, e);
        match (self.obj(id).kind, name.as_str()) {
            (ObjKind::Parser, "add_argument") => {
                self.add_argument(id, args);
                Value::None
            }
            (ObjKind::Parser, "parse_args" | "parse_known_args") => {
                let namespace = self.object(ObjKind::Namespace, None, Value::Object(id));
                if args.get(0, "args").is_some_and(|(v, _)| v != Value::None) {
                    self.libraries.lists.insert(namespace, self.place(e));
                }
                if name.as_str() == "parse_args" {
                    return Value::Object(namespace);
                }
                self.seq(&[Value::Object(namespace), Value::Unknown])
            }
            (ObjKind::Parser, "add_argument_group" | "add_mutually_exclusive_group") => Value::Object(id),
            (ObjKind::Generator, "manual_seed") => Value::Object(id),
            // A state is a tensor on the CPU, whatever the generator draws on.
            (ObjKind::Generator, "set_state") => {
                if let Some((v, at)) = args.get(0, "new_state")
                    && let Some((device, _)) = self.tensor_place(v, at)
                {
                    self.check_on_cpu(device, at, e, "`.set_state()`");
                }
                Value::Object(id)
            }
            (ObjKind::Generator, "get_state") => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Host, NO_ORIGIN);
                let cpu = self.at(Device::Cpu, origin);
                self.plain_tensor(cpu, crate::flow::domain::dims::Dims::SOME)
            }
            (ObjKind::Generator, _) => Self::NUMBER,
            (ObjKind::Distribution(_), "sample" | "rsample" | "sample_n") => {
                let parameters = self.distribution_parameters(id, e);
                self.meet(
                    crate::flow::domain::event::Meeting::Function,
                    &format!("`.{name}()`"),
                    e,
                    &parameters,
                );
                self.drawn(id, args)
            }
            (ObjKind::Distribution(op), "log_prob" | "cdf" | "icdf") => {
                let mut parties = self.distribution_parameters(id, e);
                // Some move the value to their parameters.
                let moves = op.distribution.as_ref().is_some_and(|d| {
                    d.cpu_value == Elsewhere::Yes
                        && d.cuda_value == Elsewhere::Yes
                        && name.as_str() == "log_prob"
                });
                for &(v, at) in args.positional.iter().filter(|_| !moves) {
                    parties.extend(self.party(
                        v,
                        at,
                        crate::flow::observers::mixed_devices::Rule::ARITHMETIC,
                    ));
                }
                self.meet(
                    crate::flow::domain::event::Meeting::Function,
                    &format!("`.{name}()`"),
                    e,
                    &parties,
                );
                self.density(id)
            }
            (ObjKind::Distribution(_), "entropy") => self.density(id),
            (ObjKind::Inert, "load_state_dict") => {
                for &(v, _) in args.positional.iter().take(1) {
                    self.used_as_weights(v);
                }
                self.result_of(e)
            }
            (ObjKind::Inert, "remove") => {
                self.remove_hook(id);
                Value::None
            }
            (ObjKind::Inert, _) => self.result_of(e),
            _ => self.unknown_call(Value::Unknown, args, e),
        }
    }

    pub(crate) fn add_argument(&mut self, parser: ObjId, args: &Args) {
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
        // `default=torch.cuda.is_available`: the function itself, which is always true.
        let given = args.keyword("default").map(|(v, at)| match self.check_uncalled(at, v) {
            Some(meant) => Value::Bool(meant),
            None => v,
        });
        let default = given.or(match action {
            Some("store_true") => Some(Value::Bool(crate::flow::domain::diagram::FALSE)),
            Some("store_false") => Some(Value::Bool(TRUE)),
            _ => Some(Value::None),
        });
        let Some(&parser) = self.libraries.parsers.get(&parser) else { return };
        let key = OuterKey::Argument { parser, list: None, name: Sym::new(&name) };
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
    pub(crate) fn argument(&mut self, namespace: ObjId, name: Sym, e: ExprId) -> Value {
        let Value::Object(parser) = self.own(namespace) else { return self.result_of(e) };
        let Some(&parser) = self.libraries.parsers.get(&parser) else { return self.result_of(e) };
        let list = self.libraries.lists.get(&namespace).copied();
        let declared = OuterKey::Argument { parser, list: None, name };
        let default = self.t.known_outer(&declared).and_then(|o| self.t.get_outer(o).default);
        let key = OuterKey::Argument { parser, list, name };
        let device = names_device(name.as_str());
        let text = format!("args.{name}");
        let id = self.t.outer(key.clone(), || Outer {
            key,
            text,
            tensor: false,
            device,
            varies: false,
            with: None,
            default,
        });
        Value::Outer(id)
    }

    /// `super().__init__(…)` of a base that is not in the project.
    pub(crate) fn call_foreign_init(&mut self, args: &Args) {
        for (v, _) in args.values() {
            self.escape(v, 0);
        }
    }

    /// At least this many GPUs.
    pub(crate) fn at_least(&mut self, n: u32) -> crate::flow::domain::diagram::Cond {
        self.d.atom(gpus_at_least(n))
    }
}
