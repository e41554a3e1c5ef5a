//! What has attributes is not `None`: behind `self.group.rank` nobody gets with no group.

use super::super::diagram::FALSE;
use super::super::value::{OuterId, OuterKey, Value};
use super::{Interp, Test};
use crate::ir::{Expr, ExprId, Stmt};
use crate::sym::Sym;

/// A condition with more paths than this is not remembered.
const FEW_PATHS: u32 = 4;

impl Interp<'_> {
    /// `value.name` is read: where that is `None`, the path ends here, unless somebody catches what is raised then.
    pub(super) fn note_read_of(&mut self, value: Value, name: Sym, e: ExprId) {
        let Value::Outer(o) = value else { return };
        // An attribute of something may be set by any call in between.
        let own = matches!(self.t.get_outer(o).key, OuterKey::Param { .. });
        // What everything has says nothing.
        if !own
            || self.muted > 0
            || name.as_str().starts_with("__")
            || self.in_some_try()
            || self.is_suppressed(e)
        {
            return;
        }
        if let Some(&none) = self.tests.get(&Test::Compare(0, value, Value::None)) {
            let none = self.d.atom(none);
            let some = self.d.not(none);
            if let Some(path) = self.d.ite(self.path, some, FALSE).filter(|&path| path != FALSE) {
                self.path = path;
            }
            return;
        }
        let before = self.watch.read_of.get(&o).copied().unwrap_or(FALSE);
        if before == self.path || self.d.paths(self.path) > FEW_PATHS {
            return;
        }
        let read = self.d.or(before, self.path);
        self.watch.read_of.insert(o, read);
    }

    /// Has an attribute of it been read, whatever way leads here?
    pub(super) fn was_read_of(&mut self, o: OuterId) -> bool {
        match self.watch.read_of.get(&o) {
            Some(&read) => self.path != FALSE && self.d.implies(self.path, read),
            None => false,
        }
    }

    /// `with suppress(AttributeError):`
    fn is_suppressed(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        // Few files have any.
        if !ir.imports.iter().any(|i| matches!(i.module.as_str(), "contextlib" | "pytest")) {
            return false;
        }
        let catches = |context: ExprId| {
            let Expr::Call(call) = ir.expr(context) else { return false };
            ir.last_name(ir.call(call).func)
                .is_some_and(|name| matches!(name.as_str(), "suppress" | "raises"))
        };
        ir.stmts_of(ir.function(self.here().func)).any(|n| match &ir.stmts[n] {
            Stmt::With { items, .. } => {
                ir.stmt_spans[n].contains(ir.span(e)) && items.iter().any(|&(context, _)| catches(context))
            }
            _ => false,
        })
    }

    fn in_some_try(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if !frame.tries.is_empty() {
                return true;
            }
            at = frame.caller;
        }
        false
    }
}
