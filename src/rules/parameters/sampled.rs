//! SD506, by classes: a pipeline of `diffusers` that samples with gradients.

use super::super::file::File;
use super::own;
use crate::finding::{Code, Finding};
use crate::ir::{Expr, Function, Stmt, StmtId, Var};
use crate::link::ClassKey;

/// Names that say that somebody has thought about gradients.
const ABOUT_GRADIENTS: &[&str] = &[
    "no_grad",
    "inference_mode",
    "set_grad_enabled",
    "enable_grad",
    "requires_grad",
    "requires_grad_",
    "backward",
    "autograd",
    "grad",
    "detach",
];

/// `__call__` of a pipeline, which has a loop and calls its own networks, in a file that never speaks of gradients: what is
/// loaded is in evaluation mode, and each step hands its graph to the next one.
pub(super) fn with_graph(file: &File<'_>, function: &Function) -> Option<Finding> {
    let class = function.class?;
    let receiver = function.params.first().filter(|p| p.name.as_str() == "self")?.slot;
    if function.name.as_str() != "__call__" {
        return None;
    }
    let thinks = file.ir.exprs.iter().any(|e| match *e {
        Expr::Attr { name, .. } | Expr::Var(Var::Unbound(name)) => ABOUT_GRADIENTS.contains(&name.as_str()),
        _ => false,
    });
    let loops = file.ir.stmts.iter().enumerate().any(|(n, s)| {
        matches!(s, Stmt::For { .. } | Stmt::While { .. })
            && function.span.contains(file.ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX))))
    });
    // `self.unet(…)`, here or in a function that is made here.
    let own_network = |e: &Expr| {
        let Expr::Call(call) = *e else { return false };
        let Expr::Attr { base, name } = file.ir.expr(file.ir.call(call).func) else { return false };
        let own = match file.ir.expr(base) {
            Expr::Var(Var::Local(slot) | Var::Enclosing { slot, .. }) => slot == receiver,
            _ => false,
        };
        own && matches!(name.as_str(), "unet" | "transformer" | "prior" | "model")
    };
    let runs = file
        .ir
        .exprs
        .iter()
        .zip(&file.ir.expr_spans)
        .any(|(e, &at)| function.span.contains(at) && own_network(e));
    if thinks || !loops || !runs || !own::offloads(file, ClassKey { module: file.module, class }) {
        return None;
    }
    let message =
        "a pipeline samples with gradients: the graph of each step is kept until the last one".to_owned();
    let label = "nothing here switches gradients off";
    let mut finding = file.parameter_finding(function.name_span, message, label, function.name_span);
    finding.code = Code(506);
    finding.related.clear();
    finding.help = Some("decorate it: `@torch.no_grad()`".to_owned());
    Some(finding)
}
