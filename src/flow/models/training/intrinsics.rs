//! Intrinsics for training: wrappers for several GPUs, autocast, gradient scalers, optimizers.

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::models::registry::{Called, Families, Intrinsics};
use crate::flow::models::training::optimizers::is_optimizer;
use crate::torch;

/// Intrinsics by path.
pub(crate) const INTRINSICS: Intrinsics = &[
    ("torch.nn.DataParallel", data_parallel),
    ("torch.nn.parallel.DistributedDataParallel", |i, c| {
        i.wrap(c.args, true);
        i.for_each_ids(c.args, &mut |i, args| i.distributed_parallel(args, c.at));
        None
    }),
    ("torch.autocast", autocast),
    ("torch.cuda.amp.autocast", autocast),
    ("torch.cuda.amp.GradScaler", scaler),
    ("torch.amp.GradScaler", scaler),
    ("torch.cuda.amp.grad_scaler.GradScaler", scaler),
    // These replace the parameters of their module.
    ("torch.distributed.fsdp.FullyShardedDataParallel", parameters_replaced),
    ("torch.distributed.fsdp.fully_shard", parameters_replaced),
    ("torch.distributed._composable.fsdp.fully_shard", parameters_replaced),
    ("torch.distributed.tensor.parallel.parallelize_module", parameters_replaced),
    ("torch.distributed.tensor.distribute_module", parameters_replaced),
    ("fairscale.nn.FullyShardedDataParallel", parameters_replaced),
];

/// Families of functions, found by a test of the path.
pub(crate) const FAMILIES: Families =
    &[(is_optimizer, |i, c| Some(i.make_optimizer(torch::canonical(c.path).as_str(), c.args, c.at)))];

/// `nn.DataParallel(model)`
pub(crate) fn data_parallel(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    if let Some((Value::Choice(_), _)) = c.args.get(0, "module") {
        return Some(i.each_wrapped(c.path, c.args, c.at));
    }
    i.check_device_list(c.path, c.args, c.at);
    i.for_each_ids(c.args, &mut |i, args| i.data_parallel(args, c.at));
    i.wrap(c.args, false);
    // The wrapper and its module are one object here.
    c.args.get(0, "module").map(|(v, _)| i.outside_in_parallel(v, c.at))
}

fn autocast(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    i.note_autocast(torch::canonical(c.path).as_str(), c.args, c.at);
    None
}

fn scaler(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    i.make_scaler(torch::canonical(c.path).as_str(), c.args, c.at)
}

fn parameters_replaced(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    i.parameters_replaced(c.args, c.at);
    None
}
