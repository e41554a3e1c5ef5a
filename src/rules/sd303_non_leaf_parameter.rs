//! SD303 non-leaf-parameter: a copy of a parameter or leaf in its place.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::assumptions::parameter_varies;
use crate::rules::shared::events::{finding, with_stack};

pub(super) const CODE: Code = Code(303);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::NonLeaf { what, used } = &event.kind else { return None };
        let (message, label, help) = match what.as_str() {
            "the module" => (
                "this copy of a parameter is no parameter: the module does not register it, and nothing trains it"
                    .to_owned(),
                "kept by the module here",
                "make the tensor on the device first, and the `nn.Parameter` of that",
            ),
            "the parameter's name" => (
                "this copy of a parameter is no parameter: in the place of one the module refuses it".to_owned(),
                "`TypeError` unless it is there already",
                "move the module, or the values of the parameter: its `.data`",
            ),
            "`.grad`" => (
                "this copy is no leaf: its `.grad` stays `None`".to_owned(),
                "its gradient is asked for here",
                "move first, then ask for gradients: `.to(…).requires_grad_()`",
            ),
            name => (
                format!("this copy is no leaf, and {name} refuses it"),
                "given to the optimizer here",
                "move first, then ask for gradients: `.to(…).requires_grad_()`",
            ),
        };
        let f =
            finding(CODE, event, message, event.place, "another tensor than the one that keeps the gradient");
        let f = if *used == event.place { f } else { f.related(*used, label) };
        Some(with_stack(f, event).assume(parameter_varies(event, cx)).help(help))
    }
}
