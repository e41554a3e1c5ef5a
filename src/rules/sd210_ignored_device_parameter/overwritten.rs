//! SD210 ignored-device-parameter: a function takes a device and overwrites it.

use super::IGNORES_CALLER;
use crate::finding::Finding;
use crate::ir::{Expr, ExprId, Function, IfElse, Param, Stmt, StmtId, Var};
use crate::link::Resolved;
use crate::rules::shared::file::File;
use crate::words::Words;

static CHOICES: Words = Words::of("plain device strings with mps");

impl File<'_> {
    /// `device = torch.device("cuda" if … else "cpu")`, before the function has read the parameter.
    pub(super) fn overwritten(&self, function: &Function, param: &Param) -> Option<Finding> {
        let own = Var::Local(param.slot);
        let sets = |&s: &StmtId| match *self.ir.stmt(s) {
            Stmt::Assign { targets, value } if matches!(*self.ir.list(targets), [t] if self.ir.expr(t) == Expr::Var(own)) => {
                Some((s, value))
            }
            _ => None,
        };
        let (stmt, value) = self.ir.block(function.body).iter().find_map(sets)?;
        let at = self.ir.stmt_span(stmt);
        let looked_at = self.inside(function).any(|(_, e, x)| match e {
            Expr::Var(v) if v == own => x.start < at.start || self.ir.span(value).contains(x),
            Expr::Var(Var::Unbound(n)) => matches!(n.as_str(), "locals"),
            _ => false,
        });
        if looked_at || !self.chooses_device(value) || self.is_from_base(function) {
            return None;
        }
        let name = param.name;
        let message = format!("`{}` overwrites its parameter `{name}` before it reads it", function.name);
        let found = self.parameter_finding(at, message, IGNORES_CALLER, function.name_span);
        Some(found.help(if param.default.is_some_and(|d| self.ir.expr(d) == Expr::None) {
            format!("choose a device only if the caller gives none: `if {name} is None:` before this line")
        } else {
            format!("remove this line, and use the `{name}` of the caller")
        }))
    }

    /// Is it `"cuda"`, `torch.device(…)`, or a choice between two of these?
    pub(super) fn chooses_device(&self, e: ExprId) -> bool {
        match self.ir.expr(e) {
            Expr::Str(s) => CHOICES.has(s.as_str()),
            Expr::IfElse(id) => {
                let IfElse { then, orelse, .. } = self.ir.if_else(id);
                self.chooses_device(then) && self.chooses_device(orelse)
            }
            Expr::Call(c) => matches!(self.cx.program.resolve_expr(self.module, self.ir.call(c).func),
                Some(Resolved::External(p)) if p.as_str() == "torch.device"),
            _ => false,
        }
    }
}
