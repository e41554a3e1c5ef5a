//! SD208 cpu-tensor-in-collective: a CPU tensor in a collective of an NCCL group.

use crate::assumption::Assumption;
use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, Operand};
use crate::flow::value::Reason;
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::variable;
use crate::rules::shared::events::{finding, reason, with_stack};
use crate::rules::shared::naming::Spot;
use crate::rules::shared::test_code::in_tests;
use crate::sym::Sym;
use crate::torch;
use crate::world::World;

pub(super) const CODE: Code = Code(208);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::CpuInCollective { what, tensor, elsewhere } = &event.kind else { return None };
        if event.symbolic && event.speculative {
            return None;
        }
        // Tests run in one process, so `accelerate` gathers nothing in them.
        let several = what.starts_with("torch.");
        let tested = |place| in_tests(place, cx);
        if !several && (tested(event.place) || event.stack.iter().any(|&call| tested(call))) {
            return None;
        }
        let name = variable(cx, tensor.place);
        let given = name.map_or_else(|| "a tensor that is".to_owned(), |name| format!("`{name}`, which is"));
        let message = format!("`{what}` gets {given} on the CPU, but NCCL needs CUDA tensors");
        let mut f = finding(CODE, event, message, event.place, "on the CPU");
        f.world = World::Cuda;
        for step in tensor.chain.iter().filter(|s| s.reason != Reason::None).take(2) {
            if !f.places().any(|p| p == step.place) {
                f = f.related(step.place, reason(step));
            }
        }
        let group = elsewhere.then_some(Assumption::GroupIsNccl);
        Some(with_stack(f, event).assume(group).help(if several {
            on_gpu(event, name, tensor, cx)
        } else {
            on_accelerator(name)
        }))
    }
}

/// The help: how to move the tensor to the device of an `Accelerator`.
fn on_accelerator(name: Option<&str>) -> String {
    let name = name.unwrap_or_default();
    format!("move it to the device of the accelerator first: `{name}.to(accelerator.device)`")
}

/// The help: how to move the tensor to the GPU of the process.
fn on_gpu(event: &Event, name: Option<&str>, tensor: &Operand, cx: &Context<'_>) -> String {
    let made = tensor.chain.last().filter(|step| step.reason == Reason::Default);
    let line = made.filter(|_| event.bite.behind_cuda).and_then(|step| {
        let spot = Spot::new(cx, step.place)?;
        let op = torch::function(Sym::new(&spot.function()?))?;
        (op.kind == torch::Kind::Factory && op.accepts.device)
            .then(|| spot.corrected(Reason::Default, "\"cuda\""))?
    });
    match (line, name) {
        (Some(line), _) => format!("make it on the GPU of this process: `{line}`"),
        (None, Some(name)) => {
            format!("move `{name}` to the GPU of this process first, with `.to(device)`, or use a Gloo group")
        }
        (None, None) => {
            "move it to the GPU of this process first, with `.to(device)`, or use a Gloo group".to_owned()
        }
    }
}
