//! Calls of names outside the project.

use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::value::{Device, NO_ORIGIN, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::libraries::saved_files::is_download;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::{self};
use crate::world::Backend;

/// What may be the current accelerator instead of CUDA.
pub(crate) const CURRENT: [Backend; 4] = [Backend::Xpu, Backend::Mps, Backend::Npu, Backend::Hpu];

/// Libraries that work on arrays in main memory. What of a GPU they are given raises, whatever the function is
/// (`numpy.asarray` of it does).
pub(crate) const HOST_LIBRARIES: [&str; 9] =
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
}
