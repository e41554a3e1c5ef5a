//! The function around a place.

use crate::rules::check::Context;
use crate::span::Place;

/// The innermost function at a place, by its start.
pub fn function_of(place: Place, cx: &Context<'_>) -> Option<(u32, u32)> {
    let ir = &cx.program.get(cx.program.module_of(place.file)?).ir;
    ir.function_at(place.span).map(|f| (f.span.start, f.span.end))
}

pub fn same_function(a: Place, b: Place, cx: &Context<'_>) -> bool {
    function_of(a, cx) == function_of(b, cx)
}
