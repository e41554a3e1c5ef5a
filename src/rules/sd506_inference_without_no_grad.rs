//! SD506 inference-without-no-grad: a model in evaluation mode that is run with gradients.

use crate::assumption::Assumption;
use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
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
        let message = "this model is in evaluation mode, and every call still builds a graph".to_owned();
        let mut f = finding(CODE, event, message, event.place, "keeps what a backward pass would need");
        f.world = World::Cuda;
        Some(
            with_stack(f, event)
                .assume([Assumption::GradientsOn])
                .help("run it under `torch.no_grad()` or `torch.inference_mode()`"),
        )
    }
}
