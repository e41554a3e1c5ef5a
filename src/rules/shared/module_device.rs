//! The device of a module, as an expression in its own methods.

use crate::flow::event::{DeviceName, Gives, Operand};
use crate::rules::check::Context;
use crate::rules::shared::naming::Spot;
use crate::span::Place;

/// The device of the module whose method contains this place: the device of an input, or of the module's parameters. `None` in the
/// constructor.
pub fn module_device(cx: &Context<'_>, at: Place) -> Option<String> {
    let ir = &cx.program.get(cx.program.module_of(at.file)?).ir;
    if ir.function_at(at.span)?.name.as_str() == "__init__" {
        return None;
    }
    let side = Operand {
        place: at,
        device: DeviceName::WithModule,
        chain: Vec::new(),
        of_module: false,
        gives: Gives::Other,
        symbol: None,
    };
    Spot::new(cx, at)?.device(&side)
}
