//! Assumptions of findings about events.

use crate::assumption::{Assumption, ByDefault, Parameter, Spot, Way};
use crate::finding::Finding;
use crate::flow::event::{DeviceName, Event, Operand};
use crate::flow::value::Reason;
use crate::ir::FuncId;
use crate::rules::check::Context;
use crate::rules::shared::meetings::mismatch;
use crate::world::World;

/// A finding about machines without CUDA assumes that such a machine reaches the place. Earlier code or a caller may have checked
/// CUDA.
pub fn assume_no_cuda(f: Finding, event: &Event, cx: &Context<'_>) -> Finding {
    if f.world != World::NoCuda {
        return f;
    }
    let outermost = event.stack.first().copied().unwrap_or(event.place);
    let entry = event.entry.unwrap_or(FuncId(0));
    let spot = Spot { file: cx.file, entry, at: outermost.span.start };
    let places = event.stack.iter().copied().chain([event.place]).collect();
    f.assume([Assumption::CudaMissing(Way { spot, places })])
}

/// A caller may pass a tensor on any device for the parameter of the event.
pub fn parameter_varies(event: &Event, cx: &Context<'_>) -> Option<Assumption> {
    let (func, index) = event.parameter?;
    Some(Assumption::ParameterVaries(Parameter { file: cx.file, func, index, followed: event.followed }))
}

/// The assumptions about two tensors: about a parameter, about the default device, and about the move of the module.
pub fn of_meeting(event: &Event, cx: &Context<'_>) -> Vec<Assumption> {
    let Some((_, _, stray, other)) = mismatch(event) else { return Vec::new() };
    let any = |is_so: &dyn Fn(&DeviceName) -> bool| [stray, other].iter().any(|side| is_so(&side.device));
    let varies = any(&|device| matches!(device, DeviceName::Varies(_)));
    let on_module = any(&|device| *device == DeviceName::WithModule);
    let parameter = varies.then(|| parameter_varies(event, cx)).flatten();
    let default = made_by_default(event, stray, other).map(Assumption::DefaultDevice);
    parameter.into_iter().chain(default).chain(module_moved(event, on_module, cx)).collect()
}

/// The assumptions about one tensor: about a parameter, and about the move of the module.
pub fn of_tensor(event: &Event, tensor: &Operand, cx: &Context<'_>) -> Vec<Assumption> {
    let varies = matches!(tensor.device, DeviceName::Varies(_));
    let parameter = varies.then(|| parameter_varies(event, cx)).flatten();
    parameter.into_iter().chain(module_moved(event, tensor.device == DeviceName::WithModule, cx)).collect()
}

/// A caller moves the module whose method is interpreted by itself.
fn module_moved(event: &Event, on_module: bool, cx: &Context<'_>) -> Option<Assumption> {
    let entry = event.entry.filter(|_| event.symbolic && on_module)?;
    Some(Assumption::ModuleMoved(Spot { file: cx.file, entry, at: event.place.span.start }))
}

/// The default that a program must set so that both tensors are on one device. Another default for one of them is enough.
fn made_by_default(event: &Event, stray: &Operand, other: &Operand) -> Option<ByDefault> {
    let by_default = |side: &Operand| match side.chain.last()?.reason {
        Reason::Default | Reason::Module => Some(ByDefault::Device),
        Reason::Typed => Some(ByDefault::Type),
        _ => None,
    };
    let sides = [by_default(stray), by_default(other)];
    let easiest = sides.into_iter().flatten().min_by_key(|&by| by == ByDefault::Type);
    easiest.filter(|_| event.symbolic)
}
