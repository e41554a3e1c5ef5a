//! SD6: transfers that cost more than they bring.

use super::naming::Spot;
use super::{Context, finding, with_stack};
use crate::finding::Finding;
use crate::flow::event::{Again, Event, Kind};
use crate::ir::{Block, Expr, ExprId, FuncKind, Function, Module, Slot, Stmt, Var};
use crate::remedy::Remedy;
use crate::span::Span;
use crate::world::{Premise, World};

/// A finding about an event of this family.
fn transfer(code: u16, event: &Event, message: &str, label: &str) -> Finding {
    let mut f = finding(code, event, message.to_owned(), event.place, label);
    let also_cuda = event.bite.premises.iter().any(|p| matches!(p, Premise::AtLeastGpus(_)));
    f.world = match event.bite.world {
        World::With(b) if !also_cuda => World::With(b),
        _ => World::Cuda,
    };
    f
}

/// SD601 created-then-moved
pub(super) fn created(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::CreatedThenMoved { counted } = event.kind else { return None };
    // Wherever it is made, a test that does it does so once.
    let from = event.stack.first().copied().unwrap_or(event.place);
    if super::in_tests(event.place, cx) || super::has_tests(from, cx) || only_tries(event, cx) {
        return None;
    }
    let f = transfer(601, event, "this tensor is made on the CPU and then copied", "made there, moved here");
    let help = if counted {
        "count where it is needed: `torch.arange(…, device=…)`"
    } else {
        "make it where it is needed: `device=`"
    };
    let function = Spot::new(cx, event.place).and_then(|spot| spot.made_of());
    let remedy = function.map(|function| Remedy::MakeThere { transfer: event.place, function });
    Some(with_stack(f, event).help(help).remedy(remedy))
}

/// `try: torch.zeros(2).to(device)`, `return True`: is it made to see whether that works, in a function that says yes or no?
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

/// SD602 non-blocking-without-pinned-memory
pub(super) fn pageable(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Pageable { made } = &event.kind else { return None };
    if super::in_tests(event.place, cx) {
        return None;
    }
    let message = "`non_blocking=True` overlaps with nothing here: the memory is not pinned, and the program waits while it is read";
    let mut f = transfer(602, event, message, "copies from pageable memory");
    if *made != event.place {
        f = f.related(*made, "not pinned here");
    }
    Some(with_stack(f, event).help("pin it first: `pin_memory=True` in the loader, or `.pin_memory()`"))
}

/// SD603 unsynchronized-copy-to-cpu
pub(super) fn unwaited(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::ReadTooEarly { read } = &event.kind else { return None };
    let message = "this copy to the CPU is read before anything has waited for it: the numbers may be old";
    let f = transfer(603, event, message, "returns before the copy is done").related(*read, "read here");
    Some(
        with_stack(f, event)
            .help("leave out `non_blocking`, or call `torch.cuda.synchronize()` before the read")
            .remedy([Remedy::Without { call: event.place, keyword: "non_blocking" }]),
    )
}

/// SD604 redundant-transfer
pub(super) fn already_there(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::AlreadyThere = &event.kind else { return None };
    if event.symbolic && event.speculative || moves_for_anyone(event, cx) {
        return None;
    }
    let f = transfer(604, event, "this moves a tensor to the device that it is on", "nothing to move");
    Some(with_stack(f, event).help("leave the move out"))
}

/// Is it in a function of another file, or something that a method there is given? That moves for whoever may call it, but a
/// method knows what its object has and what it has made itself.
fn moves_for_anyone(event: &Event, cx: &Context<'_>) -> bool {
    let place = event.place;
    let Some(module) = cx.program.module_of(place.file).filter(|_| place.file != cx.file) else {
        return false;
    };
    let ir = &cx.program.get(module).ir;
    let around = ir.functions.iter().filter(|f| f.kind == FuncKind::Function && f.span.contains(place.span));
    around.max_by_key(|f| f.span.start).is_some_and(|f| f.class.is_none() || is_given(ir, f, place.span))
}

/// Is what is moved here something that the method was given, or was taken out of that?
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

/// SD605 loop-invariant-transfer
pub(super) fn invariant(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let &Kind::InvariantMove { again } = &event.kind else { return None };
    let (message, help) = match again {
        Again::Forward => (
            "the same tensor is copied again in every call of the module",
            "let the module move it: `self.register_buffer(…, persistent=False)`",
        ),
        Again::Loop => {
            ("the same tensor is copied again in every round of the loop", "move it once, before the loop")
        }
    };
    let f = transfer(605, event, message, "copied every time");
    Some(with_stack(f, event).help(help))
}

/// SD607 timing-without-synchronize
pub(super) fn timed(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::TimedWithoutWait { started, work } = &event.kind else { return None };
    if super::in_tests(event.place, cx) {
        return None;
    }
    let message = "the clock is read while the GPU is still at work: the call above has only queued it";
    let f = transfer(607, event, message, "read before the work is done")
        .related(*work, "queued here")
        .related(*started, "timed from here");
    Some(with_stack(f, event).help("call `torch.cuda.synchronize()` before the clock is read, at both ends"))
}

/// SD604 redundant-transfer, by two moves
pub(super) fn there_and_back(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::ThereAndBack { back } = &event.kind else { return None };
    if event.symbolic && event.speculative {
        return None;
    }
    let message = "this moves a tensor to a device from which it comes back unused";
    let f = transfer(604, event, message, "moved here").related(*back, "and back here");
    Some(with_stack(f, event).help("leave both moves out"))
}
