//! Calls of functions outside of the project.

use crate::flow::domain::value::{Device, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::models::registry::{self, Called};
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::{self};
use crate::world::Backend;

/// Libraries that work on arrays in main memory. All their functions raise for tensors on a GPU, as
/// `numpy.asarray` does.
pub(crate) const HOST_LIBRARIES: [&str; 9] =
    ["numpy.", "scipy.", "cv2.", "PIL.", "sklearn.", "skimage.", "pandas.", "matplotlib.", "plotly."];

/// `nn.Module.to(model, device)`: the prefix of the methods of the base class, which an override calls.
pub(crate) const MODULES_OWN: &str = "torch.nn.Module.";

/// Is it a device, or the name of a GPU?
fn is_place(v: Value) -> bool {
    match v {
        Value::Device(_) => true,
        Value::Str(name, _) => name.as_str().split(':').next() == Some("cuda"),
        _ => false,
    }
}

impl Interp<'_> {
    /// A call of a base class's method that moves a module, whether or not the module's class overrides it.
    pub(crate) fn moved_by_base(&mut self, path: &str, args: &Args, e: ExprId) -> Option<Value> {
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
        self.observe_call(path, args);
        if let Some(intrinsic) = registry::intrinsic(path)
            && let Some(v) = intrinsic(self, Called { path, args, at: e })
        {
            return v;
        }
        self.check_device_list(path, args, e);
        if let Some(op) = torch::module(path) {
            return self.make_torch_module(op, args, e);
        }
        if let Some(op) = torch::function(path) {
            // A function that needs an accelerator needs it whatever its result is.
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
        if let Value::Outer(made) = result
            && args.values().any(|(v, _)| is_place(v))
        {
            self.libraries.given_places.insert(made);
        }
        if result == Self::ARRAY { self.array_of(text, args) } else { result }
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
