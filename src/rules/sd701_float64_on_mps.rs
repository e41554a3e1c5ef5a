//! SD701 float64-on-mps: `float64` on a device that does not support it.

use crate::assumption::Assumption;
use crate::finding::{Code, Finding};
use crate::flow::event::{DeviceName, Event, Kind};
use crate::ir::Function;
use crate::rules::check::{Check, Context};
use crate::rules::shared::assumptions::parameter_varies;
use crate::rules::shared::code::{quoted, text};
use crate::rules::shared::events::{ALSO_RAISES, finding, with_also_said, with_stack};
use crate::rules::shared::float64::in_float32;
use crate::rules::shared::test_code::in_tests;
use crate::span::Place;
use crate::world::{Backend, World};

pub(super) const CODE: Code = Code(701);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::DoubleOnMps { on } = &event.kind else { return None };
        // The callers of a private function are visible. If they pass their tensors, the finding is at their calls.
        let by_callers = event.symbolic && event.speculative && is_private(event.place, cx);
        if cx.cuda_only || event.asked_for || by_callers || in_tests(event.place, cx) {
            return None;
        }
        let tensor = quoted(cx, event.place, "this tensor");
        let message =
            format!("{tensor} is `float64` on {}, but MPS does not support `float64`", on.in_words());
        let varies = matches!(on, DeviceName::Varies(_));
        let parameter = varies.then(|| parameter_varies(event, cx)).flatten();
        let mut f = finding(CODE, event, message, event.place, "raises if the device is MPS");
        f.world = World::With(Backend::Mps);
        Some(
            with_also_said(
                with_stack(f, event).assume(parameter).assume([Assumption::RunsOnMps]),
                event,
                ALSO_RAISES,
            )
            .help(match text(cx, event.place).and_then(in_float32) {
                Some(single) => format!("use `float32` on MPS: `{single}`, or run this part on the CPU"),
                None => "use `float32` on MPS, or run this part on the CPU".to_owned(),
            }),
        )
    }
}

/// Is it in a private function?
fn is_private(place: Place, cx: &Context<'_>) -> bool {
    let Some(module) = cx.program.module_of(place.file) else { return false };
    let functions = &cx.program.get(module).ir.functions;
    let around = functions.iter().filter(|f| f.parent.is_some() && f.span.contains(place.span));
    around.max_by_key(|f| f.span.start).is_some_and(Function::is_private)
}
