//! SD206, by parameters: a pipeline is given a generator, and draws with it wherever it likes.

use super::super::file::File;
use super::own;
use crate::finding::{Code, Finding};
use crate::ir::{ArgKind, Block, Call, CmpOp, Expr, ExprId, Function, Slot, Stmt, StmtId, Var};
use crate::link::{ClassKey, Resolved};
use crate::span::Span;
use crate::sym::Sym;

/// Draws that refuse a generator of another device than their own.
const DRAWS: &[&str] = &["torch.rand", "torch.randn", "torch.randint", "torch.randperm", "torch.normal"];

/// `torch.randn(…, generator=generator, device=device)` in a method of a class that decides itself where it runs: who calls it
/// gives a generator of the CPU as well as one of the GPU.
pub(super) fn with_given(file: &File<'_>, function: &Function) -> Option<Finding> {
    let class = function.class?;
    // A class's methods have many parameters, and hardly one is a generator.
    let generator = Sym::new("generator");
    let slot = function.params.iter().find(|p| p.name == generator)?.slot;
    let at = file.inside(function).find_map(|(_, e, at)| {
        let Expr::Call(call) = e else { return None };
        (draws_with(file, file.ir.call(call), slot) && !for_mps(file, at)).then_some(at)
    })?;
    if looks_at(file, function, slot) || !own::offloads(file, ClassKey { module: file.module, class }) {
        return None;
    }
    let message = format!(
        "`{}` draws here with the generator that it is given, and never asks where that is",
        function.name
    );
    let label = "raises where the generator is on another device";
    let mut finding = file.parameter_finding(at, message, label, function.name_span);
    finding.code = Code(206);
    for given in &mut finding.related {
        "given a generator here".clone_into(&mut given.text);
    }
    finding.help =
        Some("draw where the generator is, `device=generator.device`, and move what is drawn".to_owned());
    Some(finding)
}

fn draws_with(file: &File<'_>, call: Call<'_>, slot: Slot) -> bool {
    let given = call.args.iter().any(|a| {
        matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == "generator")
            && file.ir.expr(a.value) == Expr::Var(Var::Local(slot))
    });
    given
        && matches!(file.cx.program.resolve_expr(file.module, call.func),
            Some(Resolved::External(path)) if DRAWS.contains(&path.as_str()))
}

/// Is it done only where a test has found Apple's device? No CUDA is there.
fn for_mps(file: &File<'_>, at: Span) -> bool {
    let ir = file.ir;
    let says = |e: ExprId| matches!(ir.expr(e), Expr::Str(s) if s.as_str() == "mps");
    let covers = |then: Block| ir.block(then).iter().any(|&s| ir.stmt_span(s).contains(at));
    ir.stmts.iter().any(|s| match *s {
        Stmt::If { test, then, .. } => {
            matches!(ir.expr(test), Expr::Compare { op: CmpOp::Eq, left, right } if says(left) || says(right))
                && covers(then)
        }
        _ => false,
    })
}

/// Does the function ask where the generator is, or make it another one than it was given?
fn looks_at(file: &File<'_>, function: &Function, slot: Slot) -> bool {
    let own = Expr::Var(Var::Local(slot));
    let asks = file.inside(function).any(|(_, e, _)| match e {
        Expr::Attr { base, name } => name.as_str() == "device" && file.ir.expr(base) == own,
        _ => false,
    });
    // `if generator is None: generator = torch.Generator(device=device)` leaves the caller's as it is.
    let makes = |e: ExprId| {
        file.ir.exprs.iter().zip(&file.ir.expr_spans).any(|(x, &at)| {
            let Expr::Call(call) = *x else { return false };
            file.ir.span(e).contains(at)
                && matches!(file.cx.program.resolve_expr(file.module, file.ir.call(call).func),
                    Some(Resolved::External(path)) if path.as_str() == "torch.Generator")
        })
    };
    asks || file.ir.stmts.iter().enumerate().any(|(n, s)| {
        let Stmt::Assign { targets, value } = *s else { return false };
        let at = file.ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX)));
        function.span.contains(at)
            && file.ir.list(targets).iter().any(|&t| file.ir.expr(t) == own)
            && !makes(value)
    })
}
