//! The data loads whole, and the facts people rely on are in it.

use super::*;
use crate::world::Backend;

fn op(path: &str) -> &'static Op {
    function(Sym::new(path)).unwrap_or_else(|| panic!("no {path}"))
}

fn of_tensor(name: &str) -> &'static Op {
    method(Sym::new(name)).unwrap_or_else(|| panic!("no method {name}"))
}

fn class(path: &str) -> &'static ModuleOp {
    module(Sym::new(path)).unwrap_or_else(|| panic!("no module {path}"))
}

fn fact(path: &str) -> &'static CallFact {
    call(Sym::new(path)).unwrap_or_else(|| panic!("no fact about {path}"))
}

fn arg(op: &Op, position: usize) -> ArgRule {
    *op.positional(position).unwrap_or_else(|| panic!("{} has no argument {position}", op.name))
}

#[test]
fn every_line_is_well_formed() {
    for line in read::lines(GENERATED).chain(read::lines(WRITTEN)) {
        assert!(read::entry(line).is_some(), "operators: {line}");
    }
    for line in read::lines(CALLS) {
        assert!(calls::is_well_formed(line), "calls: {line}");
    }
    for line in read::lines(CLASSES) {
        assert!(names::class(line).is_some(), "classes: {line}");
    }
    for line in read::lines(MARKS) {
        assert!(names::mark(line).is_some(), "marks: {line}");
    }
    for line in read::lines(ALIASES) {
        assert!(names::alias(line).is_some(), "aliases: {line}");
    }
}

#[test]
fn no_written_line_stands_twice() {
    for text in [WRITTEN, CLASSES, ALIASES, GENERATED] {
        let mut seen = std::collections::HashSet::new();
        for line in read::lines(text) {
            let name = line.split(' ').next().unwrap_or_default();
            assert!(seen.insert(name), "{name} stands twice");
        }
    }
}

#[test]
fn the_generated_table_has_every_row_of_the_probe() {
    let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
    for line in read::lines(GENERATED) {
        *counts.entry(line.split(' ').nth(1).unwrap_or_default()).or_default() += 1;
    }
    let of = |kind: &str| counts.get(kind).copied().unwrap_or_default();
    assert_eq!(counts.values().sum::<usize>(), 1899);
    assert_eq!((of("unary"), of("same"), of("factory"), of("mixed")), (821, 609, 49, 26));
    assert_eq!((of("other"), of("distribution")), (84 - 35, 35));
    assert_eq!((of("host"), of("like"), of("cpu_only"), of("indexing")), (77, 8, 11, 5));
    assert_eq!((of("attribute"), of("transfer"), of("new"), of("module")), (31, 8, 7, 163));
    for (kind, name) in Kind::ALL {
        assert!(of(name) > 0, "{kind:?}");
    }
}

#[test]
fn arithmetic_takes_a_cpu_scalar_and_lists_do_not() {
    let add = op("torch.add");
    assert_eq!(arg(add, 1).share, Share::Must);
    assert_eq!(arg(add, 1).cpu_ok, Elsewhere::ZeroDim);
    let refuses = |zero_dim| arg(add, 1).cpu_ok.refuses(zero_dim, Some(false));
    assert!(refuses(Some(false)) && !refuses(Some(true)) && !refuses(None));
    let loss = arg(op("torch.nn.functional.l1_loss"), 1).cpu_ok;
    assert!(loss.refuses(Some(true), Some(false)) && !loss.refuses(Some(true), Some(true)));
    // By an H100's word (data/hardware.txt).
    assert_eq!(arg(op("torch.nn.functional.mse_loss"), 1).cpu_ok, Elsewhere::No);
    assert_eq!(arg(op("torch.logical_and"), 0).cpu_ok, Elsewhere::No);
    assert_eq!(arg(of_tensor("addcmul_"), 2).cpu_ok, Elsewhere::ZeroDim);
    let value = arg(op("torch.index_fill"), 3).cuda_ok;
    assert!(value.accepts(Some(true), Some(false)) && !value.accepts(None, None));
    let in_place = of_tensor("add_");
    assert!(in_place.in_place && in_place.result == ResultRule::Receiver);
    assert_eq!((arg(in_place, 0).cpu_ok, arg(in_place, 1).cpu_ok), (Elsewhere::No, Elsewhere::ZeroDim));
    for path in ["torch.cat", "torch.stack", "torch.hstack"] {
        assert!(arg(op(path), 0).list && arg(op(path), 0).cpu_ok == Elsewhere::No, "{path}");
    }
    assert!((0..3).all(|i| arg(op("torch.where"), i).cpu_ok == Elsewhere::ZeroDim));
    assert_eq!(arg(of_tensor("masked_fill"), 1).cpu_ok, Elsewhere::No);
    assert_eq!(arg(of_tensor("masked_fill"), 2).cpu_ok, Elsewhere::ZeroDim);
    assert_eq!(arg(op("torch.index_select"), 2).cpu_ok, Elsewhere::No);
    assert_eq!(arg(op("torch.einsum"), 3).share, Share::Must);
    assert!(op("torch.cat").out_must_match);
}

#[test]
fn some_arguments_may_cross_and_some_must_be_on_the_cpu() {
    assert_eq!(of_tensor("copy_").kind, Kind::MixedOk);
    assert_eq!(arg(of_tensor("__getitem__"), 1).cpu_ok, Elsewhere::Yes);
    assert_eq!(arg(of_tensor("__getitem__"), 1).cuda_ok, Elsewhere::ZeroDim);
    assert_eq!(arg(of_tensor("__setitem__"), 2).cpu_ok, Elsewhere::ZeroDim);
    assert_eq!(arg(op("torch.tensor_split"), 1).share, Share::Cpu);
    assert_eq!(arg(op("torch.nn.utils.rnn.pack_padded_sequence"), 1).share, Share::Cpu);
    assert_eq!(arg(op("torch.set_rng_state"), 0).share, Share::Cpu);
    assert_eq!(arg(of_tensor("numpy"), 0).share, Share::Cpu);
    assert!(of_tensor("numpy").accepts.force);
    assert_eq!(arg(of_tensor("pin_memory"), 0).share, Share::Cpu);
    let split = op("torch.utils.data.random_split");
    assert_eq!(split.keyword(Sym::new("generator")).map(|a| a.share), Some(Share::Cpu));
}

#[test]
fn factories_know_their_default() {
    let zeros = op("torch.zeros");
    assert!(zeros.honours_default && zeros.accepts.device && zeros.accepts.pin_memory);
    assert_eq!(zeros.result, ResultRule::DeviceArgument);
    assert_eq!(op("torch.from_numpy").result, ResultRule::Cpu);
    assert!(!op("torch.from_numpy").honours_default);
    assert_eq!(op("torch.tensor").result, ResultRule::Data);
    assert!(!op("torch.normal").honours_default);
    assert_eq!(op("torch.zeros_like").result, ResultRule::Receiver);
    assert!(op("torch.randn").accepts.generator);
    assert_eq!(of_tensor("new_zeros").kind, Kind::NewLike);
    assert_eq!(op("torch.cuda.FloatTensor").result, ResultRule::Cuda);
    assert_eq!(of_tensor("to").result, ResultRule::To);
    assert_eq!(of_tensor("type_as").result, ResultRule::OtherArgument);
    assert_eq!(of_tensor("xpu").result, ResultRule::Backend(Backend::Xpu));
    assert_eq!(of_tensor("device").result, ResultRule::Device);
    assert_eq!(
        (of_tensor("grad").result, of_tensor("shape").result),
        (ResultRule::Receiver, ResultRule::Host)
    );
}

#[test]
fn modules_and_distributions() {
    let linear = class("torch.nn.Linear");
    assert!(linear.accepts.device && linear.state == State::Yes);
    let loss = class("torch.nn.CrossEntropyLoss");
    assert_eq!(loss.state, State::Sometimes);
    assert!(loss.constructor[0].tensor && loss.constructor[0].name == Sym::new("weight"));
    assert!(class("torch.nn.LSTM").accepts.device);
    assert_eq!(class("torch.nn.MSELoss").forward[1].cpu_ok, Elsewhere::No);
    assert_eq!(class("torch.nn.L1Loss").forward[1].cpu_ok, Elsewhere::AllZeroDim);
    let norm = class("torch.nn.InstanceNorm2d");
    assert!(norm.state == State::Sometimes && norm.constructor.iter().any(|p| p.switch));
    let normal = op("torch.distributions.normal.Normal").distribution;
    assert_eq!(
        normal,
        Some(Distribution {
            fails_at_construction: false,
            cpu_value: Elsewhere::No,
            cuda_value: Elsewhere::No
        })
    );
    assert!(op("torch.distributions.Beta").distribution.is_some_and(|d| d.fails_at_construction));
}

#[test]
fn aliases_lead_to_the_public_name() {
    assert_eq!(class("torch.nn.modules.linear.Linear").name, Sym::new("torch.nn.Linear"));
    assert_eq!(op("torch.torch.special.gammainc").name, Sym::new("torch.special.gammainc"));
    assert_eq!(op("torch.Tensor.add").name, Sym::new("torch.Tensor.add"));
    assert_eq!(op("torch.nn.functional.conv2d").kind, Kind::Same);
    assert_eq!(canonical(Sym::new("numpy.zeros")), Sym::new("numpy.zeros"));
    assert!(matches!(fact("torch.utils.data.dataloader.DataLoader").returns, Returns::CpuBatches(_)));
}

#[test]
fn accelerators_without_their_hardware() {
    let without = |path: &str| fact(path).accelerator.map(|a| (a.accelerator, a.without));
    let cuda = Accelerator::Cuda;
    assert_eq!(without("torch.cuda.is_available"), Some((cuda, Without::Availability)));
    assert_eq!(without("torch.cuda.device_count"), Some((cuda, Without::Count)));
    assert_eq!(without("torch.cuda.memory.mem_get_info"), Some((cuda, Without::Raises)));
    assert_eq!(without("torch.cuda.empty_cache"), Some((cuda, Without::Safe)));
    assert_eq!(without("torch.backends.cudnn.is_available"), Some((cuda, Without::NoGuard)));
    assert_eq!(without("torch.cuda.is_initialized"), Some((cuda, Without::Implied)));
    let mps = Accelerator::Backend(Backend::Mps);
    assert_eq!(without("torch.backends.mps.is_available"), Some((mps, Without::Availability)));
    assert_eq!(without("torch.accelerator.is_available"), Some((Accelerator::Any, Without::Availability)));
    let npu = fact("torch.npu.is_available").accelerator;
    assert!(npu.is_some_and(|a| a.accelerator.needs_plugin()));
    let device = fact("torch.cuda.device").accelerator;
    assert!(device.is_some_and(|a| a.context && a.none_is_harmless && a.device.is_some()));
}

#[test]
fn other_calls() {
    assert!(fact("numpy.asarray").to_numpy.converts(0) && !fact("numpy.asarray").to_numpy.converts(1));
    assert!(fact("sklearn.metrics.accuracy_score").to_numpy.converts(1));
    assert!(fact("matplotlib.pyplot.plot").to_numpy.converts(5));
    assert!(call(Sym::new("numpy.shape")).is_none_or(|f| f.to_numpy == Numpy::None));
    assert!(fact("print").leaves_arguments && fact("logging.info").leaves_arguments);
    assert!(fact("torch.optim.adam.Adam").leaves_arguments);
    assert_eq!(fact("abs").returns, Returns::Method(Sym::new("__abs__")));
    assert!(matches!(fact("copy.deepcopy").returns, Returns::Argument(a) if a.position == 0));
    assert_eq!(fact("torch.no_grad").decorator, Some(Decorator::Keeps));
    assert_eq!(fact("unittest.skipUnless").decorator, Some(Decorator::SkipUnless));
    assert_eq!(fact("torch.distributed.all_gather").collective.len(), 2);
    assert!(fact("accelerate.Accelerator.prepare").moves_for_user);
    assert!(fact("pytorch_lightning.Trainer.fit").moves_for_user);
    assert!(call(Sym::new("mypackage.helper")).is_none());
}

#[test]
fn classes_and_marks() {
    let base = |path: &str| base_class(Sym::new(path));
    assert_eq!(base("torch.nn.Module").map(|b| b.kind), Some(Base::Module));
    assert_eq!(base("torch.nn.modules.conv.Conv2d").map(|b| b.kind), Some(Base::Module));
    assert_eq!(base("torch.autograd.Function").map(|b| b.kind), Some(Base::Function));
    assert!(base("pytorch_lightning.LightningModule").is_some_and(|b| b.moves_for_user));
    assert_eq!(base("object"), None);
    let guard = |name: &str| test_guard(Sym::new(name));
    assert_eq!(guard("require_torch_gpu"), Some(TestGuard::Cuda(1)));
    assert_eq!(guard("require_torch_multi_gpu"), Some(TestGuard::Cuda(2)));
    assert_eq!(guard("requires_cuda_and_triton"), Some(TestGuard::Cuda(1)));
    assert_eq!(guard("RunIf"), Some(TestGuard::CudaIfKeyword(Sym::new("min_cuda_gpus"))));
    assert_eq!(guard("require_torch"), None);
    assert!(cuda_only_import(Sym::new("triton.language")) && cuda_only_import(Sym::new("flash_attn_2")));
    assert!(!cuda_only_import(Sym::new("tritonclient")));
}
