//! SD205 cuda-tensor-to-numpy: a tensor on a GPU that is handed to NumPy.

mod arguments;

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Gives, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::assumptions::of_tensor;
use crate::rules::shared::callers::{as_tests_like, callers_decide};
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::meetings::origins;

pub(super) const CODE: Code = Code(205);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::ToHost { what, tensor } = &event.kind else { return None };
        if callers_decide(event, tensor, cx) || as_tests_like(event, tensor, cx) {
            return None;
        }
        let message =
            format!("{what} needs a tensor on the CPU, and this one is on {}", tensor.device.in_words());
        let f = finding(CODE, event, message, event.place, "NumPy cannot read device memory");
        let f = origins(f, tensor);
        let given = Some(tensor.place)
            .filter(|&p| p != event.place && matches!(tensor.gives, Gives::Tensor | Gives::Tensors));
        let several = tensor.gives == Gives::Tensors;
        let remedy = Remedy::ToHost { call: event.place, tensor: given, several };
        Some(
            with_stack(f, event)
                .help("copy it to the host first: `.detach().cpu().numpy()`")
                .remedy([remedy])
                .assume(of_tensor(event, tensor, cx)),
        )
    }

    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        arguments::to_numpy(cx)
    }
}
