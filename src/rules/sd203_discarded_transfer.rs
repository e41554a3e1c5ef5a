//! SD203 discarded-transfer: a transfer whose result nothing keeps.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::naming::is_short;
use crate::span::Place;

pub(super) const CODE: Code = Code(203);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        discarded(event, cx).or_else(|| moved_empty(event, cx))
    }
}

/// SD203 discarded-transfer
fn discarded(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Discarded { receiver, method, parameter } = &event.kind else { return None };
    let file = event.place.file;
    let name = cx.sources.text(Place { file, span: *receiver }).to_owned();
    let parameter = *parameter;
    let moved = first_line(cx.sources.text(event.place));
    let message = format!("the result of `.{method}()` is dropped: tensors do not move in place");
    let f = finding(CODE, event, message, event.place, "gives a new tensor, which nothing keeps");
    // What a call gives cannot be assigned to.
    let named = is_short(&name) && !name.contains('(');
    let help = match (parameter, name.strip_suffix(".data")) {
        (false, _) if named => format!("keep it: `{name} = {moved}`"),
        (false, _) => "keep what it gives, in a variable".to_owned(),
        // A registered parameter takes no tensor: `TypeError` (torch/nn/modules/module.py, `__setattr__`).
        (true, None) if named => {
            let call = moved.strip_prefix(name.as_str()).unwrap_or_default();
            format!("move the module, or the parameter's values: `{name}.data = {name}.data{call}`")
        }
        (true, _) => "move the module, or the parameter's values through its `.data`".to_owned(),
    };
    let remedy = (!parameter).then_some(Remedy::Keep(event.place));
    let f = Finding { shows_with_accelerator: true, ..f };
    Some(with_stack(f, event).help(help).remedy(remedy))
}

/// SD203 as well: a module's own `.to()`, before it has parts
fn moved_empty(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::MovedEmpty { method, part } = &event.kind else { return None };
    let message = format!("`.{method}()` moves nothing: the module has no parts yet");
    let f = finding(CODE, event, message, event.place, "moves what is registered by now");
    let f = f.related(*part, "registered after it");
    let f = Finding { shows_with_accelerator: true, ..f };
    Some(with_stack(f, event).help("move it as the last thing, or leave it to whoever makes the module"))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
