//! SD210 ignored-device-parameter: methods of objects whose class a test around the call checks.

use crate::ir::{ArgKind, Call, Expr, ExprId, FuncId, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::rules::shared::file::File;
use crate::span::Span;

impl File<'_> {
    /// The method in `x.method(…)` below `if isinstance(x, Class):`, for a class of the project.
    pub(super) fn method_of_checked(&self, call: Call<'_>) -> Option<(ModIdx, FuncId)> {
        let Expr::Attr { base, name } = self.ir.expr(call.func) else { return None };
        let Expr::Var(Var::Local(_)) = self.ir.expr(base) else { return None };
        let class = self.checked_class(base)?;
        let (m, f) = self.cx.program.find_method(class, name)?;
        // The first parameter of a static method or a property is not its object, or there is none.
        let ir = &self.cx.program.get(m).ir;
        (ir.function(f).decorators.len == 0).then_some((m, f))
    }

    /// The class that the innermost test around the use of a variable checks for.
    fn checked_class(&self, variable: ExprId) -> Option<ClassKey> {
        let at = self.ir.span(variable);
        let tests = self.ir.stmts.iter().filter_map(|s| match *s {
            Stmt::If { test, then, .. } => {
                let stmts = self.ir.block(then);
                let start = stmts.first().map(|&s| self.ir.stmt_span(s).start)?;
                let end = stmts.last().map(|&s| self.ir.stmt_span(s).end)?;
                let below = Span { start, end };
                below.contains(at).then_some((start, test))
            }
            _ => None,
        });
        let checks = tests.filter_map(|(start, test)| Some((start, self.class_asked_for(test, variable)?)));
        checks.max_by_key(|&(start, _)| start).map(|(_, class)| class)
    }

    /// `isinstance(x, Class)`
    fn class_asked_for(&self, test: ExprId, variable: ExprId) -> Option<ClassKey> {
        let Expr::Call(id) = self.ir.expr(test) else { return None };
        let call = self.ir.call(id);
        let asks =
            matches!(self.ir.expr(call.func), Expr::Var(Var::Unbound(name)) if name.as_str() == "isinstance");
        let [subject, class] = call.args else { return None };
        if !asks || self.ir.expr(subject.value) != self.ir.expr(variable) || class.kind != ArgKind::Positional
        {
            return None;
        }
        match self.cx.program.resolve_expr(self.module, class.value)? {
            Resolved::Class(key) => Some(key),
            _ => None,
        }
    }
}
