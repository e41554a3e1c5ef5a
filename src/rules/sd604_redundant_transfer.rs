//! SD604 redundant-transfer: a transfer to the same device, or there and back.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::ir::{Expr, ExprId, FuncKind, Function, Module, Slot, Stmt, Var};
use crate::rules::check::{Check, Context};
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::{line_with, operand, quoted};
use crate::rules::shared::events::with_stack;
use crate::rules::shared::naming::is_short;
use crate::rules::shared::transfers::transfer;
use crate::span::Span;

pub(super) const CODE: Code = Code(604);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        already_there(event, cx).or_else(|| there_and_back(event, cx))
    }
}

/// SD604 redundant-transfer
fn already_there(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::AlreadyThere = &event.kind else { return None };
    if event.symbolic && event.speculative || moves_for_anyone(event, cx) {
        return None;
    }
    let call = CallAt::new(cx, event.place);
    let moved = call.as_ref().and_then(CallAt::receiver);
    let tensor = moved.map_or_else(|| "the tensor".to_owned(), |moved| quoted(cx, moved, "the tensor"));
    let device = call.as_ref().and_then(CallAt::target);
    let device = device.map_or_else(
        || "that device".to_owned(),
        |_| call.as_ref().map(CallAt::target_in_words).unwrap_or_default(),
    );
    let message = format!(
        "{} has no effect: {tensor} is already on {device}",
        quoted(cx, event.place, "this transfer")
    );
    let f = transfer(CODE, event, &message, "moves nothing");
    let line = moved.and_then(|moved| line_with(cx, event.place, &operand(cx, moved)?));
    let help = match line {
        Some(line) if assigns_itself(&line) => "leave this line out".to_owned(),
        Some(line) => format!("leave the transfer out: `{line}`"),
        None => "leave the transfer out".to_owned(),
    };
    Some(with_stack(f, event).help(help))
}

/// `x = x`
fn assigns_itself(line: &str) -> bool {
    line.split_once(" = ").is_some_and(|(target, value)| target == value)
}

/// SD604 redundant-transfer, by two moves
fn there_and_back(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::ThereAndBack { back } = &event.kind else { return None };
    if event.symbolic && event.speculative {
        return None;
    }
    let (there, again) = (cx.sources.text(event.place), cx.sources.text(*back));
    // In one chain of calls, only the second one.
    let returns = again.strip_prefix(there).filter(|rest| is_short(rest)).map(|rest| format!("`{rest}`"));
    let returns = returns.unwrap_or_else(|| quoted(cx, *back, "a later transfer"));
    let message = format!(
        "{} moves a tensor that {returns} moves back, and nothing uses it in between",
        quoted(cx, event.place, "this transfer")
    );
    let f = transfer(CODE, event, &message, "moves the tensor").related(*back, "moves it back");
    Some(with_stack(f, event).help("leave both transfers out"))
}

/// Is the transfer in a function of another file, or is its tensor an argument of a method there? Other callers may need the transfer.
/// A method knows the attributes of its object and the tensors that it creates.
fn moves_for_anyone(event: &Event, cx: &Context<'_>) -> bool {
    let place = event.place;
    let Some(module) = cx.program.module_of(place.file).filter(|_| place.file != cx.file) else {
        return false;
    };
    let ir = &cx.program.get(module).ir;
    let around = ir.functions.iter().filter(|f| f.kind == FuncKind::Function && f.span.contains(place.span));
    around.max_by_key(|f| f.span.start).is_some_and(|f| f.class.is_none() || is_given(ir, f, place.span))
}

/// Is the moved tensor an argument of the method, or a part of one?
fn is_given(ir: &Module, method: &Function, moved: Span) -> bool {
    let parameter = |slot: Slot| method.params.iter().skip(1).any(|p| p.slot == slot);
    let at = ir.expr_spans.iter().rposition(|&at| at == moved);
    let Some(slot) = at.and_then(|n| root(ir, ir.exprs[n])) else { return false };
    parameter(slot)
        || ir.stmts.iter().zip(&ir.stmt_spans).any(|(s, at)| {
            let Stmt::Assign { targets, value } = s else { return false };
            method.span.contains(*at)
                && ir.list(*targets).iter().any(|&t| parts(ir, t).contains(&Some(slot)))
                && parts(ir, *value).into_iter().flatten().any(parameter)
        })
}

/// The variables that an expression begins with; of a tuple, each one's.
fn parts(ir: &Module, e: ExprId) -> Vec<Option<Slot>> {
    match ir.expr(e) {
        Expr::Tuple(list) => ir.list(list).iter().map(|&x| root(ir, ir.expr(x))).collect(),
        e => vec![root(ir, e)],
    }
}

/// The local variable that an expression begins with: `batch` of `batch["x"].float()`.
fn root(ir: &Module, mut e: Expr) -> Option<Slot> {
    loop {
        e = match e {
            Expr::Attr { base, .. } | Expr::Index { base, .. } => ir.expr(base),
            Expr::Call(call) => ir.expr(ir.call(call).func),
            Expr::Var(Var::Local(slot)) => return Some(slot),
            _ => return None,
        }
    }
}
