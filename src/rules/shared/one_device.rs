//! Fixes that bring two tensors to one device.

use crate::flow::event::{DeviceName, Event, Gives, Operand};
use crate::remedy::Remedy;
use crate::rules::check::Context;
use crate::rules::shared::functions::function_of;
use crate::rules::shared::meetings::made;
use crate::rules::shared::naming::Spot;
use crate::span::Place;
use crate::words::Words;

static CONSTRUCTORS: Words = Words::of("methods that construct");

/// Fixes for two tensors on different devices: create the CPU tensor on the device of the other one, or move it at the operation.
pub fn on_one_device(event: &Event, stray: &Operand, other: &Operand, cx: &Context<'_>) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if stray.device != DeviceName::Known("cpu".to_owned())
        || matches!(other.device, DeviceName::Known(ref d) if d == "cpu")
    {
        return remedies;
    }
    if let Some((call, _)) = made(stray)
        && !kept_by_constructor(call, event.place, cx)
        && let Some(spot) = Spot::new(cx, call)
        && let Some(function) = spot.function()
        && let Some(device) = spot.device(other).or_else(|| {
            // The other side is a weight of the same module.
            spot.same_module(event.place).filter(|_| other.of_module || other.gives == Gives::Module)
        })
    {
        remedies.push(Remedy::Make { call, function, device, meets: event.place });
    }
    if stray.gives == Gives::Tensor
        && let Some(device) = Spot::new(cx, stray.place).and_then(|spot| spot.device_for(stray, other))
    {
        remedies.push(Remedy::Move { operand: stray.place, device });
    }
    remedies
}

/// Is the tensor created in a constructor and used in another function? The module moves after its constructor.
fn kept_by_constructor(made: Place, met: Place, cx: &Context<'_>) -> bool {
    let Some(module) = cx.program.module_of(made.file) else { return false };
    let function = cx.program.get(module).ir.function_at(made.span);
    let constructs = function.is_some_and(|f| CONSTRUCTORS.has(f.name.as_str()));
    constructs && function_of(made, cx) != function_of(met, cx)
}
