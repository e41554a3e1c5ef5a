//! SD304 optimizer-before-transfer: an optimizer that is made before the model is complete and in its place.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, LeftBehind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(304);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::OptimizerFirst { optimizer, then, left } = &event.kind else { return None };
        if event.symbolic && event.speculative {
            return None;
        }
        let moved = "the model is moved here";
        let (message, label, then_label, help) = match left {
            LeftBehind::State => (
                format!(
                    "`{optimizer}` makes its state where the parameters are now, and the model is moved later"
                ),
                "made too early",
                moved,
                "make the optimizer after the model is complete and in its place",
            ),
            LeftBehind::LaterState => (
                format!("`{optimizer}` has a state from here on, and the model is moved away from it later"),
                "where the parameters are now",
                moved,
                "move the model first: `load_state_dict()` and the steps put the state where the parameters are",
            ),
            LeftBehind::Parameters => (
                format!("`{optimizer}` is given parameters that the model does not have any more later"),
                "made too early",
                "the parameters are replaced here",
                "make the optimizer after the model is complete and in its place",
            ),
        };
        let mut f = finding(CODE, event, message, event.place, label).related(*then, then_label);
        f.world = if *left == LeftBehind::Parameters { World::Always } else { World::Cuda };
        Some(with_stack(f, event).help(help))
    }
}
