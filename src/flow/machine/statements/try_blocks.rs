//! `try`: the state that its body leaves to the handlers. Also `match`.

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::store::{Changes, Mark};
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::frame::TryFrame;
use crate::ir::{Block, Expr, ExprId, Handler};

impl<'p> Interp<'p> {
    pub(crate) fn try_block(&mut self, body: Block, handlers: &[Handler], orelse: Block) {
        if handlers.is_empty() {
            self.block(body);
            if self.live() {
                self.block(orelse);
            }
            return;
        }
        let (catches_cuda, catches_oom, catches_missing) = self.caught(handlers);
        let before = self.path;
        let mark = self.store.mark();
        self.here_mut().branches += 1;
        self.here_mut().tries.push(TryFrame {
            start: before,
            mark,
            left: Vec::new(),
            raised: Vec::new(),
            survived: TRUE,
            imported: TRUE,
            catches_cuda,
            catches_oom,
            catches_missing,
        });
        let work = self.run.work;
        let returned = self.here().returned;
        self.block(body);
        let returns = self.here().returned != returned;
        let worked = self.run.work > work;
        let tried = self.here_mut().tries.pop();
        let (survived, imported, left, known) = tried.map_or_else(
            || (TRUE, TRUE, Vec::new(), Vec::new()),
            |t| (t.survived, t.imported, t.left, t.raised),
        );
        self.path = self.d.and(self.path, survived);
        let in_body = self.store.changes(mark);
        if self.live() {
            self.block(orelse);
        }
        let (good_path, good) = (self.path, self.store.take(mark));
        let in_body = self.with_left_arms(in_body, &left, mark);
        if worked {
            self.path = before;
            self.check_swallowed(handlers);
        }
        // An error that is caught here does not reach outer handlers.
        if catches_oom && !handlers.iter().any(|h| self.raises_again(h)) {
            self.run.work = work;
        }
        let mut state = (good_path, good);
        let asks = self.asks_by_trying(body);
        let failed = self.d.not(survived);
        let missing = self.d.and(before, failed);
        // An error that no handler catches leaves the statement: the handlers are reached only without it.
        let catches = catches_cuda || catches_oom || catches_missing;
        let reachable = if catches { before } else { self.d.and(before, survived) };
        // `try: torch.zeros(1).cuda()`: the handler is for machines without the device.
        let probe =
            handlers.len() == 1 && catches && survived != TRUE && missing != FALSE && self.only_torch(body);
        for handler in handlers {
            let (reached, raised) = if probe {
                (missing, missing)
            } else {
                let raised = if asks { self.raised_atom() } else { self.caught_atom(good_path) };
                // If an import lacks what it needs, it has raised.
                let not_imported = self.d.not(imported);
                (reachable, self.d.or(raised, not_imported))
            };
            // Only a GPU has memory of its own that can be full.
            let reached = if self.is_for_full_memory(handler) {
                let there = self.available(None);
                self.d.and(reached, there)
            } else {
                reached
            };
            self.path = reached;
            // The handler may start after any part of the body.
            let partly = self.atoms.add(Atom::Partly);
            let partly = self.d.atom(partly);
            self.merge(partly, &in_body, &Vec::new());
            for (path, changes) in &known {
                self.merge(*path, changes, &Vec::new());
            }
            if let Some(t) = handler.types {
                self.eval(t);
            }
            if let Some(name) = handler.name {
                self.set_var(name, Value::Unknown);
            }
            // The handler's return value does not apply where the body has returned.
            self.path = if returns { self.d.and(reached, raised) } else { reached };
            let exits = self.here().exits.len();
            self.block(handler.body);
            self.left_by_handler(exits, raised);
            let (path, changes) = (self.path, self.store.take(mark));
            if path == FALSE {
                continue;
            }
            if state.0 == FALSE {
                state = (path, changes);
                continue;
            }
            self.merge(raised, &changes, &state.1);
            let joined = self.store.take(mark);
            let not_raised = self.d.not(raised);
            let (a, b) = (self.d.and(path, raised), self.d.and(state.0, not_raised));
            state = (self.d.or(a, b), joined);
        }
        self.here_mut().branches -= 1;
        self.apply(&state.1);
        self.path = state.0;
    }

    /// The changes that a handler may see: those of the body, and of its branches that did not reach their end.
    fn with_left_arms(&mut self, in_body: Changes, left: &[(Cond, Changes)], mark: Mark) -> Changes {
        if left.is_empty() {
            return in_body;
        }
        self.apply(&in_body);
        for (path, changes) in left {
            self.merge(*path, changes, &Vec::new());
        }
        self.store.take(mark)
    }

    /// Restricts the handler's returns to where something was raised.
    fn left_by_handler(&mut self, exits: usize, raised: Cond) {
        for n in exits..self.here().exits.len() {
            let path = self.here().exits[n].0;
            let path = self.d.and(path, raised);
            self.here_mut().exits[n].0 = path;
        }
    }

    pub(crate) fn match_statement(&mut self, subject: ExprId, cases: &[crate::ir::Case]) {
        let value = self.eval(subject);
        self.match_cases(value, cases);
    }

    fn match_cases(&mut self, value: Value, cases: &[crate::ir::Case]) {
        let Some((case, rest)) = cases.split_first() else { return };
        let linked = self.linked();
        for &var in &case.binds {
            self.set_var(var, Value::Unknown);
        }
        let mut cond = if case.irrefutable { TRUE } else { FALSE };
        for &e in linked.ir.list(case.values) {
            let v = self.eval(e);
            let equal = self.equal(value, v, e);
            cond = self.d.or(cond, equal);
        }
        if !case.irrefutable && case.values.len == 0 {
            cond = self.raised_atom();
        }
        if let Some(guard) = case.guard {
            let g = self.test(guard);
            cond = self.d.and(cond, g);
        }
        self.branch(
            cond,
            &mut |i| {
                i.block(case.body);
                Value::Absent
            },
            &mut |i| {
                i.match_cases(value, rest);
                Value::Absent
            },
        );
    }
}

/// Whether two expressions are the same name, or the same path of attributes.
pub(crate) fn same(ir: &crate::ir::Module, a: ExprId, b: ExprId) -> bool {
    match (ir.expr(a), ir.expr(b)) {
        (Expr::Var(x), Expr::Var(y)) => x == y,
        (Expr::Str(x), Expr::Str(y)) => x == y,
        (Expr::Attr { base: x, name: n }, Expr::Attr { base: y, name: m }) => n == m && same(ir, x, y),
        _ => false,
    }
}
