//! SD5: memory.

use super::{Context, finding, with_stack};
use crate::finding::{Code, Finding, Label};
use crate::flow::event::{Event, Kind};
use crate::ir::{CmpOp, Expr, ExprId, Module};
use crate::span::Place;
use crate::world::{World, gibibytes};

/// SD507 impossible-allocation
pub(super) fn impossible(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Allocation { bytes, .. } = &event.kind else { return None };
    if *bytes <= cx.limits.max_accelerator_memory {
        return None;
    }
    let most = gibibytes(cx.limits.max_accelerator_memory);
    let message = format!("this tensor takes {}, and no accelerator has more than {most}", gibibytes(*bytes));
    let mut f = finding(507, event, message, event.place, "cannot be allocated anywhere");
    f.world = World::FreeBelow(*bytes);
    Some(with_stack(f, event).help("check the sizes, or keep it in host memory and move parts of it"))
}

/// SD501 missing-oom-handling
pub(super) fn missing_handler(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Allocation { bytes, handled: false } = &event.kind else { return None };
    if *bytes < cx.limits.oom_threshold || super::availability::guessed(event) {
        return None;
    }
    let message = format!("this tensor takes {} on the accelerator, and nothing handles running out of memory", gibibytes(*bytes));
    let mut f = finding(501, event, message, event.place, "raises where less is free");
    f.world = World::FreeBelow(*bytes);
    Some(with_stack(f, event).help("catch `torch.OutOfMemoryError` around it and fall back to something smaller"))
}

/// SD503 swallowed-oom
pub(super) fn swallowed(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::Swallowed = &event.kind else { return None };
    let message = "this handler drops every error of the device work above it, out-of-memory errors included".to_owned();
    let mut f = finding(503, event, message, event.place, "nothing of the error is kept");
    f.world = World::Cuda;
    Some(with_stack(f, event).help("catch what you expect, and let the rest through or log it"))
}

/// SD502 oom-matched-by-message: wherever a text is asked for those words.
pub(super) fn matched_by_message(cx: &Context<'_>) -> Vec<Finding> {
    let Some(module) = cx.program.module_of(cx.file) else { return Vec::new() };
    let ir = &cx.program.get(module).ir;
    let mut found = Vec::new();
    for (n, expr) in ir.exprs.iter().enumerate() {
        let Expr::Compare { op: CmpOp::In | CmpOp::NotIn, left, right } = *expr else { continue };
        if !says_oom(ir, left) || !is_message(ir, right) {
            continue;
        }
        let place = Place { file: cx.file, span: ir.expr_spans[n] };
        let label = Label { place, text: "matches the text of the error".to_owned() };
        let message = "an out-of-memory error is told by its message, which is not part of PyTorch's interface";
        let f = Finding::new(Code(502), World::Always, message, label);
        found.push(f.help("catch `torch.OutOfMemoryError` (`torch.cuda.OutOfMemoryError` before 2.5)"));
    }
    found
}

fn says_oom(ir: &Module, e: ExprId) -> bool {
    matches!(ir.expr(e), Expr::Str(s) if s.as_str().to_ascii_lowercase().contains("out of memory"))
}

/// `str(e)`, `e.args[0]`, `repr(e).lower()`, a variable that holds such a text: anything but a literal.
fn is_message(ir: &Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::Call(c) => {
            let call = ir.call(c);
            match ir.expr(call.func) {
                Expr::Attr { base, name } => matches!(name.as_str(), "lower" | "strip" | "casefold") && is_message(ir, base) || name.as_str() == "format_exc",
                Expr::Var(crate::ir::Var::Unbound(n)) => matches!(n.as_str(), "str" | "repr"),
                _ => false,
            }
        }
        Expr::Index { base, .. } => matches!(ir.expr(base), Expr::Attr { name, .. } if name.as_str() == "args"),
        Expr::Var(_) => true,
        _ => false,
    }
}
