//! Facts from statements: what those of a file's body bind, and which `try` statements hide errors.

use rustc_hash::FxHashSet;

use crate::flow::MAX_CHOSEN;
use crate::flow::query::relevance::file_scan::Scan;
use crate::ir::{Expr, ExprId, FuncId, Slot, Stmt, StmtId, Var};
use crate::link::{Binding, Resolved};
use crate::span::Span;

impl Scan<'_> {
    /// Records the variables that each statement of the module's body may bind.
    pub(crate) fn top_level(&mut self) {
        let Some(body) = self.ir.functions.first() else { return };
        let mut changed = None;
        for &s in self.ir.block(body.body) {
            let span = self.ir.stmt_span(s);
            let slots = match self.ir.stmt(s) {
                Stmt::Assign { targets, .. } => {
                    let mut slots = Vec::new();
                    for &t in self.ir.list(*targets) {
                        self.targets(t, &mut slots);
                    }
                    slots
                }
                Stmt::AnnAssign { target, .. } | Stmt::AugAssign { target, .. } => {
                    let mut slots = Vec::new();
                    self.targets(*target, &mut slots);
                    slots
                }
                Stmt::If { .. }
                | Stmt::For { .. }
                | Stmt::While { .. }
                | Stmt::With { .. }
                | Stmt::Try { .. } => {
                    let all: &Vec<_> = changed.get_or_insert_with(|| self.changed());
                    let mut slots: Vec<Slot> =
                        all.iter().filter(|(at, _)| span.contains(*at)).map(|&(_, slot)| slot).collect();
                    slots.sort_unstable();
                    slots.dedup();
                    slots
                }
                _ => Vec::new(),
            };
            if !slots.is_empty() {
                if self.is_large_table(s) {
                    self.tables.push(span);
                }
                self.top.push((span, slots));
            }
        }
    }

    /// Records `x.to(device)` for variables that a loop binds. Parts of the same batch that are not moved stay elsewhere, so the move
    /// matters for any device.
    pub(crate) fn parts_of_batches(&mut self) {
        let mut bound = FxHashSet::default();
        for stmt in &self.ir.stmts {
            let Stmt::For { target, .. } = *stmt else { continue };
            let mut slots = Vec::new();
            self.locals(target, &mut slots);
            let owner = self.owner(target);
            bound.extend(slots.into_iter().map(|slot| (owner, slot)));
        }
        if bound.is_empty() {
            return;
        }
        for call in self.ir.calls() {
            let Expr::Attr { mut base, name } = self.ir.expr(call.func) else { continue };
            if name != self.names.to {
                continue;
            }
            if let Expr::Index { base: whole, .. } = self.ir.expr(base) {
                base = whole;
            }
            if let Expr::Var(Var::Local(slot)) = self.ir.expr(base)
                && bound.contains(&(self.owner(base), slot))
            {
                self.own(base);
            }
        }
    }

    /// Appends the local variables that a target binds.
    fn locals(&self, target: ExprId, slots: &mut Vec<Slot>) {
        match self.ir.expr(target) {
            Expr::Var(Var::Local(slot)) => slots.push(slot),
            Expr::Tuple(list) | Expr::List(list) => {
                self.ir.list(list).iter().for_each(|&t| self.locals(t, slots));
            }
            _ => {}
        }
    }

    /// The places where the file binds a module-level variable, stores into its value, or calls a method on it. A mere mention leaves the
    /// value as it is.
    fn changed(&self) -> Vec<(Span, Slot)> {
        let mut changed = Vec::new();
        for (stmt, &at) in self.ir.stmts.iter().zip(&self.ir.stmt_spans) {
            let mut add = |target: ExprId| {
                let mut slots = Vec::new();
                self.changes(target, &mut slots);
                changed.extend(slots.into_iter().map(|slot| (at, slot)));
            };
            match stmt {
                Stmt::Assign { targets: list, .. } | Stmt::Del(list) => {
                    self.ir.list(*list).iter().for_each(|&t| add(t));
                }
                Stmt::AnnAssign { target, .. }
                | Stmt::AugAssign { target, .. }
                | Stmt::For { target, .. } => add(*target),
                Stmt::With { items, .. } => items.iter().filter_map(|&(_, target)| target).for_each(add),
                _ => {}
            }
        }
        for (expr, &at) in self.ir.exprs.iter().zip(&self.ir.expr_spans) {
            let mut slots = Vec::new();
            match *expr {
                Expr::Walrus(id) => {
                    if let Var::Local(slot) | Var::Global(slot) = self.ir.walrus(id).target {
                        slots.push(slot);
                    }
                }
                Expr::Call(call) => {
                    if let Expr::Attr { base, .. } = self.ir.expr(self.ir.call(call).func) {
                        self.changes(base, &mut slots);
                    }
                }
                _ => {}
            }
            changed.extend(slots.into_iter().map(|slot| (at, slot)));
        }
        changed.retain(|&(_, slot)| self.has_value(slot));
        changed
    }

    /// Appends the variables that an assignment to the target binds or modifies.
    fn changes(&self, target: ExprId, slots: &mut Vec<Slot>) {
        match self.ir.expr(target) {
            Expr::Attr { base, .. } | Expr::Index { base, .. } => self.changes(base, slots),
            Expr::Tuple(list) | Expr::List(list) => {
                self.ir.list(list).iter().for_each(|&t| self.changes(t, slots));
            }
            _ => self.targets(target, slots),
        }
    }

    /// Whether the module-level variable holds a value.
    fn has_value(&self, slot: Slot) -> bool {
        let bindings = &self.program.get(self.module).bindings;
        matches!(bindings.get(usize::from(slot)), Some(Binding::Complex | Binding::Value(_)))
    }

    pub(crate) fn targets(&self, target: ExprId, slots: &mut Vec<Slot>) {
        match self.ir.expr(target) {
            Expr::Var(Var::Local(slot) | Var::Global(slot)) => slots.push(slot),
            Expr::Tuple(list) | Expr::List(list) => {
                for &t in self.ir.list(list) {
                    self.targets(t, slots);
                }
            }
            _ => {}
        }
    }

    /// Whether the statement defines a table of functions, such as `FUNCTIONS = {"linear": by_lines, …}`, that is too large for calls of
    /// its entries to be followed.
    fn is_large_table(&self, s: StmtId) -> bool {
        let (Stmt::Assign { value, .. } | Stmt::AnnAssign { value: Some(value), .. }) = *self.ir.stmt(s)
        else {
            return false;
        };
        let (Expr::Dict(list) | Expr::List(list) | Expr::Tuple(list)) = self.ir.expr(value) else {
            return false;
        };
        let is_function = |&&e: &&ExprId| {
            matches!(self.ir.expr(e), Expr::Var(_) | Expr::Attr { .. })
                && matches!(self.program.resolve_expr(self.module, e), Some(Resolved::Function(..)))
        };
        self.ir.list(list).iter().filter(is_function).count() > MAX_CHOSEN
    }

    /// Whether the place is in such a table.
    pub(crate) fn is_in_table(&self, owner: FuncId, span: Span) -> bool {
        if owner != FuncId(0) || self.tables.is_empty() {
            return false;
        }
        let at = self.tables.partition_point(|s| s.start <= span.start);
        at.checked_sub(1).and_then(|i| self.tables.get(i)).is_some_and(|s| s.contains(span))
    }

    /// Records `try` statements that hide all errors: `try: return torch.cuda.…() except Exception: return False`
    pub(crate) fn caught(&mut self) {
        let raises = |within: Span| {
            let mut all = self.ir.stmts.iter().zip(&self.ir.stmt_spans);
            all.any(|(s, &at)| matches!(s, Stmt::Raise { .. }) && within.contains(at))
        };
        let everything = |types: Option<ExprId>| {
            types.is_none_or(|t| {
                matches!(self.ir.expr(t), Expr::Var(Var::Unbound(n)) if matches!(n.as_str(), "Exception" | "BaseException"))
            })
        };
        let mut caught = Vec::new();
        for (stmt, &span) in self.ir.stmts.iter().zip(&self.ir.stmt_spans) {
            let Stmt::Try { handlers, .. } = stmt else { continue };
            let handlers = self.ir.handlers(*handlers);
            if let Some(first) = handlers.first()
                && handlers.iter().any(|h| everything(h.types))
                && !handlers.iter().any(|h| raises(h.span))
            {
                caught.push(Span { start: span.start, end: first.span.start });
            }
        }
        self.caught = caught;
    }

    pub(crate) fn is_caught(&self, at: Span) -> bool {
        self.caught.iter().any(|s| s.contains(at))
    }
}
