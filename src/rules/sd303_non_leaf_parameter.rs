//! SD303 non-leaf-parameter: a copy replaces a parameter or another leaf.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::ir::Expr;
use crate::rules::check::{Check, Context};
use crate::rules::shared::assumptions::parameter_varies;
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::{quotable, text, variable};
use crate::rules::shared::events::{finding, with_stack};
use crate::span::Place;
use crate::torch;

pub(super) const CODE: Code = Code(303);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::NonLeaf { what, used } = &event.kind else { return None };
        let copy = text(cx, event.place)
            .map_or_else(|| "the result of this move".to_owned(), |text| format!("`{text}`"));
        let (message, label, help) = match what.as_str() {
            "the module" => (
                format!(
                    "{copy} is a copy and not an `nn.Parameter`: the module does not register it, and no optimizer trains it"
                ),
                "kept by the module here",
                parameter_of_moved(event, cx),
            ),
            "the parameter's name" => (
                format!(
                    "{copy} is a copy and not an `nn.Parameter`: the module refuses it in place of a parameter"
                ),
                "raises `TypeError` unless the parameter is on that device already",
                moved_values(*used, cx),
            ),
            "`.grad`" => (
                format!("{copy} is a copy and not a leaf tensor: its `.grad` stays `None`"),
                "reads the gradient of the copy",
                leaf_of_moved(event, cx),
            ),
            name => (
                format!("{copy} is a copy and not a leaf tensor: {name} refuses it"),
                "the optimizer gets the copy here",
                leaf_of_moved(event, cx),
            ),
        };
        let f =
            finding(CODE, event, message, event.place, "a copy: the gradient goes to the original tensor");
        let f = if *used == event.place { f } else { f.related(*used, label) };
        Some(with_stack(f, event).assume(parameter_varies(event, cx)).help(help))
    }
}

/// `nn.Parameter(t.to(device))` for `nn.Parameter(t).to(device)`.
fn parameter_of_moved(event: &Event, cx: &Context<'_>) -> String {
    let code = || {
        let moved = CallAt::new(cx, event.place)?;
        let (base, method) = moved.attribute()?;
        let made = CallAt::new(cx, moved.place_of(base))?;
        let tensor = made.only()?;
        let plain = matches!(made.expr(tensor), Expr::Var(_) | Expr::Attr { .. } | Expr::Call(_));
        let (callee, text) = (made.callee(), made.text(tensor));
        plain.then(|| quotable(format!("{callee}({text}.{method}{})", moved.arguments())))?
    };
    let general = "move the tensor first, then make the `nn.Parameter`";
    code().map_or_else(|| general.to_owned(), |code| format!("{general}: `{code}`"))
}

/// `self.shift.data = self.shift.data.to(device)` for `self.shift = self.shift.to(device)`.
fn moved_values(used: Place, cx: &Context<'_>) -> String {
    match variable(cx, used) {
        Some(name) => {
            format!("move the whole module, or only the values: `{name}.data = {name}.data.to(…)`")
        }
        None => "move the whole module, or only the values of the parameter: its `.data`".to_owned(),
    }
}

/// Makes the copy a leaf: created on the device, or detached.
fn leaf_of_moved(event: &Event, cx: &Context<'_>) -> String {
    let code = || {
        let moved = CallAt::new(cx, event.place)?;
        let (base, method) = moved.attribute()?;
        let made = CallAt::new(cx, moved.place_of(base));
        let there = made.zip(moved.only()).filter(|(made, _)| {
            let factory = made.path().and_then(torch::function);
            made.keyword("requires_grad").is_some()
                && made.keyword("device").is_none()
                && method.as_str() == "to"
                && factory.is_some_and(|op| op.kind == torch::Kind::Factory && op.accepts.device)
        });
        if let Some((made, device)) = there {
            return made.with(&format!("device={}", moved.text(device)));
        }
        quotable(format!("{}.detach().{method}{}.requires_grad_()", moved.text(base), moved.arguments()))
    };
    let general = "move the tensor first, then make it a leaf";
    code().map_or_else(
        || format!("{general}: `.detach().to(…).requires_grad_()`"),
        |code| format!("{general}: `{code}`"),
    )
}
