//! SD601 created-then-moved: a tensor that is created on the CPU and moved at once.

use crate::assumption::Assumption;
use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::ir::{Block, Expr, ExprId, Stmt};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::{line_with, quoted, text};
use crate::rules::shared::events::with_stack;
use crate::rules::shared::naming::Spot;
use crate::rules::shared::test_code::{has_tests, in_tests};
use crate::rules::shared::transfers::transfer;
use crate::words::Words;

pub(super) const CODE: Code = Code(601);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::CreatedThenMoved { counted } = event.kind else { return None };
        // A test runs the code once.
        let from = event.stack.first().copied().unwrap_or(event.place);
        if in_tests(event.place, cx) || has_tests(from, cx) || only_tries(event, cx) {
            return None;
        }
        let call = CallAt::new(cx, event.place);
        let tensor = call.as_ref().and_then(CallAt::receiver);
        let tensor =
            tensor.map_or_else(|| "this tensor".to_owned(), |tensor| quoted(cx, tensor, "this tensor"));
        let device = call.as_ref().map_or_else(|| "the device".to_owned(), CallAt::target_in_words);
        let message = format!("{tensor} is made on the CPU and then copied to {device}");
        let f = transfer(CODE, event, &message, "copies the tensor from the CPU");
        let target = call.as_ref().and_then(CallAt::target);
        let help = call.and_then(|call| made_there(cx, &call, counted));
        let help = help.unwrap_or_else(|| match target {
            Some(device) => format!("make the tensor on the device: pass `device={device}` where it is made"),
            None => "make the tensor on the device: pass `device=` where it is made".to_owned(),
        });
        let function = Spot::new(cx, event.place).and_then(|spot| spot.made_of());
        let remedy = function.map(|function| Remedy::MakeThere { transfer: event.place, function });
        let assumptions = [Assumption::RunsOften, Assumption::LeftToDefault];
        Some(with_stack(f, event).assume(assumptions).help(help).remedy(remedy))
    }
}

static FACTORIES: Words = Words::of("make the whole tensor on a device");
static FIX_THE_DEVICE: Words = Words::of("options that fix the device");

/// The line with `device=` in the call that creates the tensor.
fn made_there(cx: &Context<'_>, transfer: &CallAt<'_>, counted: bool) -> Option<String> {
    let device = transfer.target()?;
    if counted {
        return Some(format!("count on the device: `torch.arange(…, device={device})`"));
    }
    let whole = transfer.receiver()?;
    let mut made = whole;
    let factory = loop {
        let Some(call) = CallAt::new(cx, made) else {
            let name = text(cx, made)?;
            return Some(format!("make `{name}` on the device: pass `device={device}` where it is made"));
        };
        if let Some(path) = call.function() {
            let name = path.strip_prefix("torch.")?;
            break Some(call).filter(|_| FACTORIES.has(name))?;
        }
        made = call.receiver()?;
    };
    if FIX_THE_DEVICE.all().iter().any(|name| factory.argument(usize::MAX, name).is_some()) {
        return None;
    }
    let code = format!("{}{}", factory.with_argument("device", &device)?, factory.rest_of(whole));
    Some(match line_with(cx, transfer.place, &code) {
        Some(line) => format!("make it on the device: `{line}`"),
        None => format!("make it on the device: pass `device={device}` to `{}()`", factory.function()?),
    })
}

/// `try: torch.zeros(2).to(device)`, `return True`: does a Boolean function test whether the transfer works?
fn only_tries(event: &Event, cx: &Context<'_>) -> bool {
    let Some(module) = cx.program.module_of(event.place.file) else { return false };
    let (ir, at) = (&cx.program.get(module).ir, event.place.span);
    let Some(function) = ir.function_at(at) else { return false };
    let stmts = || ir.stmts[ir.stmts_of(function)].iter();
    let tried = |block: Block| ir.block(block).iter().any(|&s| ir.stmt_span(s).contains(at));
    let mut answers =
        stmts().filter_map(|s| if let Stmt::Return(value) = *s { Some(value) } else { None }).peekable();
    let answer = |e: ExprId| matches!(ir.expr(e), Expr::True | Expr::False);
    answers.peek().is_some()
        && answers.all(|value| value.is_some_and(answer))
        && stmts().any(|s| matches!(*s, Stmt::Try { body, .. } if tried(body)))
}
