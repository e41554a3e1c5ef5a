//! SD304 optimizer-before-transfer: an optimizer is created before the model is complete and on its device.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, LeftBehind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::text;
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(304);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::OptimizerFirst { optimizer, then, left } = &event.kind else { return None };
        if event.symbolic && event.speculative {
            return None;
        }
        let moved = "the model is moved here";
        let line = text(cx, *then);
        let after = |what: &str| match line.filter(|text| text.ends_with(')')) {
            Some(line) => format!("{what} after `{line}`"),
            None => format!("{what} after the model has its final parameters and device"),
        };
        let (message, label, then_label, help) = match left {
            LeftBehind::State => (
                format!(
                    "`{optimizer}` makes its state on the CPU here, but the model moves to another device later"
                ),
                "made before the model moves",
                moved,
                after("make the optimizer"),
            ),
            LeftBehind::LaterState => (
                format!(
                    "`{optimizer}` has its state on the CPU here, but the model moves to another device later"
                ),
                "the state goes where the parameters are: on the CPU",
                moved,
                after("run this line"),
            ),
            LeftBehind::Parameters => (
                format!(
                    "`{optimizer}` trains only the parameters that the model has here, and the model gets others later"
                ),
                "made before the model is complete",
                "the parameters are replaced here",
                match line.filter(|text| !text.contains(['(', '\n'])) {
                    Some(name) => format!("make the optimizer after the assignment to `{name}`"),
                    None => after("make the optimizer"),
                },
            ),
        };
        let mut f = finding(CODE, event, message, event.place, label).related(*then, then_label);
        f.world = if *left == LeftBehind::Parameters { World::Always } else { World::Cuda };
        Some(with_stack(f, event).help(help))
    }
}
