//! Intrinsics of PyTorch for tensors, parameters and files.

use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::value::{Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::models::registry::{Called, Intrinsics};
use crate::sym::Sym;

/// Intrinsics by path.
pub(crate) const INTRINSICS: Intrinsics = &[
    ("torch.Generator", |i, c| Some(i.make_generator(c.args, c.at))),
    ("torch.manual_seed", |i, c| Some(i.default_generator(c.at))),
    ("torch.random.manual_seed", |i, c| Some(i.default_generator(c.at))),
    ("torch.is_tensor", |i, c| Some(is_tensor(i, c))),
    ("torch.promote_types", |i, c| Some(i.promoted_type(c.args))),
    ("torch.result_type", |i, c| Some(i.promoted_type(c.args))),
    ("torch.set_grad_enabled", |i, c| Some(i.switch_gradients(c.args))),
    ("torch.set_default_device", |i, c| Some(set_default_device(i, c))),
    ("torch.set_default_tensor_type", |i, c| {
        i.default_tensor_type(c.args, c.at);
        Some(Value::None)
    }),
    ("torch.nn.Parameter", |i, c| Some(i.make_parameter(c.args, c.at))),
    ("torch.nn.parameter.Parameter", |i, c| Some(i.make_parameter(c.args, c.at))),
    ("torch.nn.Buffer", |i, c| Some(buffer(i, c))),
    ("torch.nn.parameter.Buffer", |i, c| Some(buffer(i, c))),
    // A distribution that wraps another one is on the same device.
    ("torch.distributions.Independent", |_, c| Some(base_distribution(c))),
    ("torch.distributions.independent.Independent", |_, c| Some(base_distribution(c))),
    ("torch.distributions.TransformedDistribution", |_, c| Some(base_distribution(c))),
    ("torch.distributions.transformed_distribution.TransformedDistribution", |_, c| {
        Some(base_distribution(c))
    }),
    ("torch.distributions.kl_divergence", |i, c| Some(i.divergence(c.args, c.at))),
    ("torch.distributions.kl.kl_divergence", |i, c| Some(i.divergence(c.args, c.at))),
    ("torch.load", |i, c| Some(i.torch_load(1, false, c.args, c.at))),
    ("torch.jit.load", |i, c| Some(i.torch_load(1, true, c.args, c.at))),
    ("torch.hub.load_state_dict_from_url", |i, c| Some(i.torch_load(2, false, c.args, c.at))),
    ("torch.utils.model_zoo.load_url", |i, c| Some(i.torch_load(2, false, c.args, c.at))),
    ("torch.save", |i, c| {
        i.remember_saved(1, c.args);
        None
    }),
    ("torch.jit.save", |i, c| {
        i.remember_saved(1, c.args);
        None
    }),
    // The program runs as normal Python. A traced or scripted program takes other branches, on the machine that exports it.
    ("torch.jit.is_tracing", |_, _| Some(Value::Bool(FALSE))),
    ("torch.jit.is_scripting", |_, _| Some(Value::Bool(FALSE))),
    ("torch.onnx.is_in_onnx_export", |_, _| Some(Value::Bool(FALSE))),
    ("torch._C._get_tracing_state", |_, _| Some(Value::None)),
    // A tensor is no scalar for NumPy, even with zero dimensions.
    ("numpy.isscalar", |i, c| {
        let tensor = c.args.positional.first().is_some_and(|&(v, _)| i.certain(v));
        tensor.then_some(Value::Bool(FALSE))
    }),
];

fn is_tensor(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    match c.args.get(0, "obj") {
        Some((Value::Int(_), _)) => Value::Bool(FALSE),
        Some((v, at)) => {
            let class = Value::External(Sym::new("torch.Tensor"));
            let args = Args { positional: vec![(v, at), (class, at)], ..Args::default() };
            i.is_instance(v, at, &args, c.at)
        }
        None => i.result_of(c.at),
    }
}

fn set_default_device(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    let device = c.args.get(0, "device").and_then(|(v, at)| i.as_device(v, at));
    let cell = i.tensors.default_device;
    let v = device.map_or(Value::None, |d| Value::Device(i.because(d, c.at, Reason::Made)));
    i.store.set(cell, v);
    Value::None
}

fn buffer(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    match c.args.get(0, "data") {
        Some((Value::Tensor(t), _)) => {
            let t = i.get_tensor(t);
            i.tensor(Tensor { role: Role::Buffer, ..t })
        }
        _ => i.result_of(c.at),
    }
}

fn base_distribution(c: Called<'_>) -> Value {
    c.args.get(0, "base_distribution").map_or(Value::Unknown, |(base, _)| base)
}
