//! SD506 inference-without-no-grad: a model in evaluation mode that runs with gradients.

use crate::assumption::Assumption;
use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::quoted;
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::test_code::has_tests;
use crate::world::World;

pub(super) const CODE: Code = Code(506);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::EvaluatedWithGraph = &event.kind else { return None };
        if has_tests(event.place, cx) {
            return None;
        }
        let call = quoted(cx, event.place, "this call");
        let message = format!("{call} builds an autograd graph although the model is in evaluation mode");
        let label = "keeps the activations for a backward pass";
        let mut f = finding(CODE, event, message, event.place, label);
        f.world = World::Cuda;
        Some(
            with_stack(f, event)
                .assume([Assumption::GradientsOn])
                .help("put the call in a `with torch.no_grad():` or `with torch.inference_mode():` block"),
        )
    }
}
