//! Intrinsics for devices, process groups and processes.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::value::{Device, NO_ORIGIN, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::models::registry::{Called, Intrinsics};
use crate::sym::Sym;
use crate::world::Backend;

/// Back ends other than CUDA that may be the current accelerator.
pub(crate) const CURRENT: [Backend; 4] = [Backend::Xpu, Backend::Mps, Backend::Npu, Backend::Hpu];

/// Intrinsics by path.
pub(crate) const INTRINSICS: Intrinsics = &[
    ("torch.device", |i, c| Some(i.make_device(c.args, c.at))),
    ("torch.accelerator.current_accelerator", |i, c| Some(current_accelerator(i, c))),
    ("torch.cuda.set_device", set_device),
    ("torch.accelerator.set_device_index", set_device),
    ("torch.accelerator.set_device_idx", set_device),
    ("torch.distributed.init_process_group", init_process_group),
    ("torch.distributed.is_initialized", |i, c| Some(Value::Bool(i.has_group(c.path.as_str(), c.at)))),
    ("torch.distributed.get_backend", get_backend),
    ("torch.distributed.destroy_process_group", |i, c| {
        if c.args.values().next().is_none() {
            i.leaves_group();
        }
        None
    }),
    ("multiprocessing.Process", |i, c| i.fork_process(c.args, c.at)),
    ("torch.multiprocessing.Process", |i, c| i.fork_process(c.args, c.at)),
    ("multiprocessing.Pool", |i, c| i.fork_pool(c.args, c.at)),
    ("multiprocessing.pool.Pool", |i, c| i.fork_pool(c.args, c.at)),
    ("torch.multiprocessing.Pool", |i, c| i.fork_pool(c.args, c.at)),
    ("torch.multiprocessing.pool.Pool", |i, c| i.fork_pool(c.args, c.at)),
    ("concurrent.futures.ProcessPoolExecutor", |i, c| i.fork_pool(c.args, c.at)),
    ("concurrent.futures.process.ProcessPoolExecutor", |i, c| i.fork_pool(c.args, c.at)),
];

/// A CUDA build of PyTorch returns CUDA with or without a GPU, unless the call has `check_available=True`.
fn current_accelerator(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    let place = i.place(c.at);
    let origin = i.origin(place, Reason::Literal, NO_ORIGIN);
    let mut built_for = i.at(Device::Cuda(None), origin);
    for b in CURRENT {
        let (cuda, there) = (i.available(None), i.available(Some(b)));
        let not_cuda = i.d.not(cuda);
        let (only, other) = (i.d.and(there, not_cuda), i.at(Device::Other(b), origin));
        built_for = i.ite_device(only, other, built_for);
    }
    let cuda = Value::Device(built_for);
    match c.args.get(0, "check_available").map(|(v, _)| v) {
        None | Some(Value::Bool(FALSE)) => cuda,
        Some(Value::Bool(TRUE)) => {
            let there = i.available(None);
            let other = i.result_of(c.at);
            i.ite(there, cuda, other)
        }
        _ => i.result_of(c.at),
    }
}

fn set_device(i: &mut Interp<'_>, _: Called<'_>) -> Option<Value> {
    i.devices.selected = true;
    i.devices.beyond_first = true;
    None
}

fn init_process_group(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    i.process_group(c.args, c.at);
    i.watch_group(c.args, c.at);
    let before = i.devices.group_started.unwrap_or(FALSE);
    i.devices.group_started = Some(i.d.or(before, i.path));
    if let Some((v, at)) = c.args.get(0, "backend") {
        i.remember_backend(v, at);
    }
    None
}

fn get_backend(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    if !c.args.positional.is_empty() || !c.args.keywords.is_empty() {
        return None;
    }
    let Value::Bool(nccl) = i.store.get(i.devices.nccl) else { return None };
    let [nccl_name, other] = ["nccl", "gloo"].map(|s| Value::Str(Sym::new(s), NO_ORIGIN));
    Some(i.ite(nccl, nccl_name, other))
}
