//! SD203 discarded-transfer: the result of a transfer is not kept.

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
    // The result of a call cannot be assigned to.
    let named = is_short(&name) && !name.contains('(');
    let call = if is_short(moved) { format!("`{moved}`") } else { format!("`.{method}()`") };
    let stays = if named { format!("`{name}`") } else { "the tensor".to_owned() };
    let message = format!("{call} does not move {stays}: it returns a new tensor, and nothing uses that");
    let f = finding(CODE, event, message, event.place, "the result is not used");
    let help = match (parameter, name.strip_suffix(".data")) {
        (false, _) if named => format!("assign the result: `{name} = {moved}`"),
        (false, _) => "assign the result to a variable, and use that".to_owned(),
        // A tensor cannot be assigned to a registered parameter: `TypeError` (torch/nn/modules/module.py, `__setattr__`).
        (true, None) if named => {
            let call = moved.strip_prefix(name.as_str()).unwrap_or_default();
            format!("move the module, or the data of the parameter: `{name}.data = {name}.data{call}`")
        }
        (true, _) => "move the module, or the `.data` of the parameter".to_owned(),
    };
    let remedy = (!parameter).then_some(Remedy::Keep(event.place));
    let f = Finding { shows_with_accelerator: true, ..f };
    Some(with_stack(f, event).help(help).remedy(remedy))
}

/// SD203 discarded-transfer, of a module that moves itself before it has parameters
fn moved_empty(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::MovedEmpty { method, part } = &event.kind else { return None };
    let moved = first_line(cx.sources.text(event.place));
    let call = if is_short(moved) { moved.to_owned() } else { format!(".{method}()") };
    let message = format!("`{call}` moves nothing: the module has no parameters and no submodules yet");
    let f = finding(CODE, event, message, event.place, "moves only what is registered before this line");
    let f = f.related(*part, "registered after the move");
    let help = format!("call `{call}` at the end of the constructor, or let the caller move the module");
    let f = Finding { shows_with_accelerator: true, ..f };
    Some(with_stack(f, event).help(help))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
