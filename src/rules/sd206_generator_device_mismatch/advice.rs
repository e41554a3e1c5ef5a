//! SD206 generator-device-mismatch: the help that brings the generator and the random numbers to the same device.

use crate::flow::event::{DeviceName, Event, Operand};
use crate::flow::value::Reason;
use crate::ir::{Expr, ExprId};
use crate::rules::check::Context;
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::meetings::made;
use crate::rules::shared::naming::{Spot, is_short};
use crate::torch;

/// The help for a draw: the corrected line, if it can be written.
pub(super) fn advice(event: &Event, generator: &Operand, drawn: &Operand, cx: &Context<'_>) -> String {
    // The function uses the default generator.
    if generator.place == event.place {
        return "pass a generator on that device: `generator=torch.Generator(device=torch.get_default_device())`"
            .to_owned();
    }
    let draw = CallAt::new(cx, event.place);
    let on_cpu = drawn.device == DeviceName::Known("cpu".to_owned());
    if on_cpu {
        let there = draw.and_then(|draw| drawn_by_generator(&draw, event, generator, cx));
        return match there {
            Some(code) => format!("draw on the device of the generator: `{code}`"),
            None => "use a generator on the CPU: `torch.Generator()`".to_owned(),
        };
    }
    let device = draw.as_ref().and_then(|draw| Some((draw.keyword("device")?, draw)));
    let line = made(generator).filter(|&(_, how)| how == Reason::Default).and_then(|(place, _)| {
        let spot = Spot::new(cx, place).filter(|s| s.function().as_deref() == Some("torch.Generator"))?;
        let (device, draw) = device?;
        spot.corrected(Reason::Default, &same_there(draw, device, &spot)?)
    });
    let text = device.map(|(e, draw)| draw.text(e).to_owned());
    let text = text.or_else(|| draw.as_ref().and_then(|draw| receiver(draw, event, cx)));
    match (line, text.filter(|text| is_short(text))) {
        (Some(line), _) => format!("make the generator on the same device: `{line}`"),
        (None, Some(text)) => {
            format!("make the generator on the same device: `torch.Generator(device={text})`")
        }
        (None, None) => {
            format!("make the generator on {}: `torch.Generator(device=…)`", drawn.device.in_words())
        }
    }
}

/// The draw with the generator's device, `torch.randperm(16, generator=g, device=g.device)`.
fn drawn_by_generator(
    draw: &CallAt<'_>,
    event: &Event,
    generator: &Operand,
    cx: &Context<'_>,
) -> Option<String> {
    let op = torch::function(draw.path()?)?;
    if op.kind != torch::Kind::Factory || !op.accepts.device || draw.keyword("device").is_some() {
        return None;
    }
    let name = Spot::new(cx, event.place)?.name(generator.place)?;
    draw.with(&format!("device={name}.device"))
}

/// The device of the tensor that a method fills: `weights.normal_(generator=g)`.
fn receiver(draw: &CallAt<'_>, event: &Event, cx: &Context<'_>) -> Option<String> {
    let (base, _) = draw.attribute().filter(|_| draw.path().is_none())?;
    Some(format!("{}.device", Spot::new(cx, event.place)?.name(draw.place_of(base))?))
}

/// The device of the draw, if its expression has the same meaning where the generator is created.
fn same_there(draw: &CallAt<'_>, device: ExprId, spot: &Spot<'_>) -> Option<String> {
    match draw.expr(device) {
        Expr::Str(_) => Some(draw.text(device).to_owned()),
        _ => spot.name(draw.place_of(device)),
    }
}
