//! Arguments that must be on the CPU, and pinned memory.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::event::{Kind, Meeting, UseKind};
use crate::flow::domain::value::{Device, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::models::tensors::functions::short;
use crate::ir::ExprId;
use crate::torch::{Op, Share};

impl Interp<'_> {
    /// Checks the arguments that must be on the CPU.
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
                // Samplers draw on the default device (torch/utils/data/sampler.py).
                if op.name.as_str().starts_with("torch.utils.data.") {
                    device = self.default_device_or(device);
                }
                self.generator_meets(v, at, device, e, short(op.name));
            }
            // The caller of `forward` may intend an unchanged input for the host.
            if matches!(v, Value::Outer(_)) {
                continue;
            }
            let Some((device, _)) = self.tensor_place(v, at) else { continue };
            let _ = self.check_on_cpu(device, at, e, what);
        }
    }

    /// Reports a tensor on an accelerator in a place that wants the CPU. True if it is reported.
    pub(crate) fn check_on_cpu(&mut self, device: Dd, operand: ExprId, e: ExprId, what: &str) -> bool {
        self.check_cpu_demand(device, operand, e, what, Meeting::CpuOnly)
    }

    /// Is the device certainly a GPU, on every machine?
    pub(crate) fn is_gpu(&self, device: Dd) -> bool {
        let cuda = |p| matches!(self.t.places.get(p).0, Device::Cuda(_) | Device::CudaSome);
        self.d.as_leaf(device).is_some_and(cuda)
    }

    /// The same, for other operations that want the CPU. `operand` is the expression with the device.
    pub(crate) fn check_cpu_demand(
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
            // A result of a layer's input or of the module itself: with CUDA, the module may be there.
            let own = matches!(d, Device::Of(o) if self.modules.with_layers.contains(&o) || self.is_own(o));
            // A device that the program takes from another value may be any device.
            let asked_for =
                meeting == Meeting::OldConstructor && matches!(d, Device::Of(_) | Device::Named(_));
            let elsewhere = matches!(d, Device::Cuda(_) | Device::CudaSome | Device::Other(_));
            if !named && !own && !asked_for && !elsewhere {
                continue;
            }
            let here = self.d.where_leaf(device, &mut |p| p == leaf);
            let there = self.accelerator_condition(d, Device::Cpu);
            let mut bad = self.d.and(here, there);
            // Use what the program has tested about its device.
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

    /// `pin_memory()` uses the allocator of whichever accelerator is there (aten/src/ATen/core/CachingHostAllocator.h).
    pub(crate) fn pins(&mut self, e: ExprId, what: &str) {
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
        // One accelerator of any kind is enough.
        self.use_cuda(e, UseKind::Query, what);
        let elsewhere = self.d.and(before, other);
        self.path = self.d.or(self.path, elsewhere);
    }
}
