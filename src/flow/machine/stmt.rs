//! Statements.

use super::Interp;
use super::frame::{ObjKind, TryFrame};
use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::store::{Changes, Mark};
use crate::flow::domain::value::Value;
use crate::ir::{Block, Call, Expr, ExprId, ExprList, Handler, Slot, Stmt, StmtId, Var};
use crate::link::{Resolved, Target};

impl<'p> Interp<'p> {
    pub(crate) fn block(&mut self, block: Block) {
        let linked = self.linked();
        let statements = linked.ir.block(block);
        for (n, &stmt) in statements.iter().enumerate() {
            if !self.live() || !self.step() {
                return;
            }
            self.stmt(stmt);
            if self.waits_after(stmt, &statements[n + 1..]) {
                return;
            }
        }
    }

    pub(crate) fn stmt(&mut self, id: StmtId) {
        let linked = self.linked();
        match linked.ir.stmt(id) {
            Stmt::Expr(e) => self.expression_statement(*e),
            Stmt::Assign { targets, value } => {
                if self.assign_display(linked.ir.list(*targets), *value) {
                    return;
                }
                let v = self.eval(*value);
                self.check_reference(v, *value);
                for &target in linked.ir.list(*targets) {
                    if self.moves_itself(target, *value) {
                        if !self.moves_alone(target, v) {
                            self.forget_modules();
                        }
                    } else {
                        self.assign(target, v);
                        self.unwraps(target, *value, v);
                    }
                }
            }
            Stmt::AugAssign { target, op, value } => self.aug_assign(*target, *op, *value),
            Stmt::AnnAssign { target, annotation, value } => {
                if let Some(value) = value {
                    let v = self.eval(*value);
                    let v = self.annotated(v, *annotation);
                    self.assign(*target, v);
                }
            }
            Stmt::If { test, then, orelse } => {
                let cond = self.test(*test);
                self.branch(
                    cond,
                    &mut |i| {
                        i.block(*then);
                        Value::Absent
                    },
                    &mut |i| {
                        i.block(*orelse);
                        Value::Absent
                    },
                );
            }
            Stmt::While { test, body, orelse } => self.while_loop(*test, *body, *orelse),
            Stmt::For { target, iter, body, orelse } => self.for_loop(*target, *iter, *body, *orelse),
            Stmt::With { items, body } => self.with(items, *body),
            Stmt::Try { body, handlers, orelse, finally } => {
                self.try_block(*body, linked.ir.handlers(*handlers), *orelse);
                if self.live() {
                    self.finally(*finally);
                }
            }
            Stmt::Return(value) => {
                let v = value.map_or(Value::None, |e| self.eval(e));
                if let Some(e) = *value {
                    self.check_reference(v, e);
                }
                self.return_value(v);
            }
            Stmt::Raise { exception, cause } => {
                for e in [exception, cause].into_iter().flatten() {
                    self.eval(*e);
                }
                self.raises_for_certain(self.path);
                self.path = FALSE;
            }
            Stmt::Assert { test, message } => {
                let cond = self.test(*test);
                self.path = self.d.and(self.path, cond);
                if let Some(m) = message.filter(|_| self.path == TRUE) {
                    self.eval(m);
                }
            }
            Stmt::Del(targets) => self.delete(*targets),
            Stmt::Def(func, var) => {
                let v = self.define(*func);
                self.set_var(*var, v);
            }
            Stmt::Class(class, var) => {
                let v = self.define_class(*class);
                self.set_var(*var, v);
            }
            Stmt::Import(imports) => {
                for import in linked.ir.imported(*imports) {
                    let Some(var) = import.target else { continue };
                    let target = linked.targets.get(&(import.level, import.module, import.name)).copied();
                    self.imports_extension(import, linked.ir.stmt_span(id));
                    if let Some(t) = target {
                        self.imports(t, linked.ir.stmt_span(id));
                    }
                    let v = target.map_or(Value::Unknown, |t| self.imported(t));
                    self.set_var(var, v);
                }
            }
            Stmt::Match { subject, cases } => self.match_statement(*subject, cases),
            Stmt::Break => self.leave_loop(true),
            Stmt::Continue => self.leave_loop(false),
            Stmt::Pass => {}
        }
    }

    /// Does the body try whether something is there at all? Then either outcome is as good as the other.
    fn asks_by_trying(&self, body: Block) -> bool {
        let ir = &self.linked().ir;
        ir.block(body).iter().any(|&s| matches!(ir.stmt(s), Stmt::Import(_)))
    }

    fn raises_again(&self, handler: &crate::ir::Handler) -> bool {
        let ir = &self.linked().ir;
        ir.block(handler.body).iter().any(|&s| matches!(ir.stmt(s), Stmt::Raise { .. }))
    }

    /// `p.data = p.data.to(device)`, `p.data = p.data.float().to(device)`: a move written by hand.
    fn moves_itself(&mut self, target: ExprId, value: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Attr { base, name } = ir.expr(target) else { return false };
        let (mut at, mut moved) = (value, false);
        while let Expr::Call(call) = ir.expr(at) {
            let Expr::Attr { base: of, name: method } = ir.expr(ir.call(call).func) else { return false };
            match method.as_str() {
                "to" if self.names_dtype_alone(ir.call(call)) => {}
                "to" | "cuda" | "cpu" | "xpu" | "npu" | "mps" | "hpu" => moved = true,
                "float" | "half" | "bfloat16" | "double" | "type" | "detach" | "clone" | "contiguous" => {}
                _ => return false,
            }
            at = of;
        }
        name.as_str() == "data" && moved && (same(ir, at, target) || same(ir, at, base))
    }

    /// `.to(dtype)`, of which it is known that it is a type of numbers: it stays where it is.
    fn names_dtype_alone(&mut self, call: Call<'_>) -> bool {
        let [only] = call.args else { return false };
        self.run.muted += 1;
        let given = self.eval(only.value);
        self.run.muted -= 1;
        let dtype = |v: &Value| matches!(*v, Value::External(path) if crate::flow::models::tensors::sizes::dtype_width(path.as_str()).is_some());
        self.values_of(given).iter().all(dtype)
    }

    /// Parameters are moved one by one: where modules are now, nobody knows.
    fn forget_modules(&mut self) {
        let unknown = self.unknown_device();
        for n in 0..self.objects.len() {
            let id = crate::flow::domain::value::ObjId(u32::try_from(n).unwrap_or(u32::MAX));
            if matches!(self.obj(id).kind, ObjKind::Module | ObjKind::ForeignModule(_))
                && self.obj(id).outer.is_none()
            {
                self.set_own(id, Value::Device(unknown));
            }
        }
    }

    fn expression_statement(&mut self, e: ExprId) {
        let v = self.eval_unused(e);
        self.check_discarded(e, v);
        self.graph_moves(e, v);
    }

    pub(crate) fn imported(&mut self, target: Target) -> Value {
        match self.program.resolve(target) {
            Some(r) => self.resolved(r),
            None => Value::Unknown,
        }
    }

    pub(crate) fn resolved(&mut self, r: Resolved) -> Value {
        match r {
            Resolved::Module(m) => Value::Module(m),
            Resolved::Function(m, f) => self.module_function(m, f),
            Resolved::Class(key) => Value::Class(key),
            Resolved::Variable(m, slot) => self.global(m, slot),
            Resolved::External(path) => Value::External(path),
        }
    }

    /// Binds a target to a value.
    pub(crate) fn assign(&mut self, target: ExprId, value: Value) {
        let linked = self.linked();
        match linked.ir.expr(target) {
            Expr::Var(var) => self.set_var(var, value),
            Expr::Attr { base, name } => {
                let b = self.eval(base);
                self.set_attr(b, name, value, target);
            }
            Expr::Index { base, index } => {
                let b = self.eval(base);
                let i = self.eval(index);
                self.set_item(b, i, value, target, base, index);
            }
            Expr::Tuple(list) | Expr::List(list) => self.unpack(list, value, target),
            Expr::Star(inner) => {
                let v = self.many(value);
                self.assign(inner, v);
            }
            _ => {}
        }
    }

    fn unpack(&mut self, list: ExprList, value: Value, at: ExprId) {
        let linked = self.linked();
        let targets = linked.ir.list(list);
        let star = targets.iter().position(|&t| matches!(linked.ir.expr(t), Expr::Star(_)));
        let items = self.elements(value, targets.len(), at);
        if let (Some(star), Some(items)) = (star, self.exact_elements(value)) {
            let after = targets.len() - star - 1;
            if items.len() >= star + after {
                let middle = self.seq(&items[star..items.len() - after]);
                for (n, &t) in targets.iter().enumerate() {
                    match linked.ir.expr(t) {
                        Expr::Star(inner) => self.assign(inner, middle),
                        _ if n < star => self.assign(t, items[n]),
                        _ => self.assign(t, items[items.len() - (targets.len() - n)]),
                    }
                }
                return;
            }
        }
        for (&t, v) in targets.iter().zip(items) {
            self.assign(t, v);
        }
    }

    /// `b, n, device = *x.shape, x.device`: what stands after the star comes last, however much the star gives.
    fn assign_display(&mut self, targets: &[ExprId], value: ExprId) -> bool {
        let linked = self.linked();
        let ir = &linked.ir;
        let starred = |&&x: &&ExprId| matches!(ir.expr(x), Expr::Star(_));
        let (&[target], Expr::Tuple(items)) = (targets, ir.expr(value)) else { return false };
        let Expr::Tuple(names) = ir.expr(target) else { return false };
        let (names, items) = (ir.list(names), ir.list(items));
        let Some(star) = items.iter().position(|x| matches!(ir.expr(*x), Expr::Star(_))) else {
            return false;
        };
        if items.iter().filter(starred).count() != 1
            || names.iter().any(|x| starred(&x))
            || names.len() + 1 < items.len()
        {
            return false;
        }
        let values: Vec<Value> = items.iter().map(|&x| self.eval(x)).collect();
        let middle = names.len() + 1 - items.len();
        let given = self.elements(values[star], middle, items[star]);
        let rest = values[star + 1..].iter();
        let all: Vec<Value> = values[..star].iter().chain(&given).chain(rest).copied().collect();
        for (&name, v) in names.iter().zip(all) {
            self.assign(name, v);
        }
        true
    }

    pub(crate) fn set_var(&mut self, var: Var, value: Value) {
        let cell = match var {
            Var::Local(slot) => crate::flow::domain::store::Cell(self.here().base.0 + u32::from(slot)),
            Var::Enclosing { depth, slot } => match self.enclosing(depth, slot) {
                Some(cell) => cell,
                None => return,
            },
            Var::Global(slot) => self.global_cell(self.here().module, slot),
            Var::Unbound(_) => return,
        };
        self.note_bound(var, cell, value);
        self.store.set(cell, value);
    }

    pub(crate) fn enclosing(&self, depth: u8, slot: Slot) -> Option<crate::flow::domain::store::Cell> {
        let mut frame = self.here();
        for _ in 0..depth {
            frame = &self.frames[frame.parent?.0 as usize];
        }
        Some(crate::flow::domain::store::Cell(frame.base.0 + u32::from(slot)))
    }

    fn delete(&mut self, targets: ExprList) {
        let linked = self.linked();
        for &t in linked.ir.list(targets) {
            match linked.ir.expr(t) {
                Expr::Var(var) => self.set_var(var, Value::Absent),
                Expr::Attr { base, name } => {
                    if let Value::Object(id) = self.eval(base) {
                        self.set_field(id, name, Value::Absent);
                    }
                }
                Expr::Index { base, index } => {
                    let (base, key) = (self.eval(base), self.eval(index));
                    self.delete_item(base, key, t);
                }
                _ => {}
            }
        }
    }

    fn return_value(&mut self, value: Value) {
        let path = self.d.given(self.path, self.here().entry);
        let frame = self.here();
        let (mut result, returned, branches, start) =
            (frame.result, frame.returned, frame.branches, frame.start);
        if returned == FALSE {
            result = value;
        } else {
            let either = self.ite(path, value, result);
            result = match value {
                Value::Device(_) => self.now_or_before(either, result, path, returned),
                _ => either,
            };
        }
        let now = self.d.or(returned, path);
        if branches > 0 {
            let changes = self.store.changes(start);
            self.here_mut().exits.push((path, changes));
        }
        let frame = self.here_mut();
        frame.result = result;
        frame.returned = now;
        // Outside of branches the state stays as it is: it is the state at the function's end.
        self.path = FALSE;
    }

    /// Nobody comes here who has returned before, but a path that has no room for all that it says forgets that: where both seem to
    /// hold, it is what is returned now or what has been returned before.
    fn now_or_before(&mut self, either: Value, before: Value, path: Cond, returned: Cond) -> Value {
        let both = self.d.and(path, returned);
        if both == FALSE || either == before {
            return either;
        }
        let now = self.atoms.add(Atom::Raised);
        let now = self.d.atom(now);
        let not = self.d.not(now);
        let earlier = self.d.and(both, not);
        self.ite(earlier, before, either)
    }

    fn try_block(&mut self, body: Block, handlers: &[Handler], orelse: Block) {
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
        // What is caught here does not reach handlers further out.
        if catches_oom && !handlers.iter().any(|h| self.raises_again(h)) {
            self.run.work = work;
        }
        let mut state = (good_path, good);
        let asks = self.asks_by_trying(body);
        let failed = self.d.not(survived);
        let missing = self.d.and(before, failed);
        // What none of the handlers catches leaves the statement: a handler is reached where it does not happen.
        let catches = catches_cuda || catches_oom || catches_missing;
        let reachable = if catches { before } else { self.d.and(before, survived) };
        // `try: torch.zeros(1).cuda()`: the handler is for machines where that is missing.
        let probe =
            handlers.len() == 1 && catches && survived != TRUE && missing != FALSE && self.only_torch(body);
        for handler in handlers {
            let (reached, raised) = if probe {
                (missing, missing)
            } else {
                let raised = if asks { self.raised_atom() } else { self.caught_atom(good_path) };
                // Without what an import needs, it has raised.
                let not_imported = self.d.not(imported);
                (reachable, self.d.or(raised, not_imported))
            };
            // Nothing else has memory of its own that could be full.
            let reached = if self.is_for_full_memory(handler) {
                let there = self.available(None);
                self.d.and(reached, there)
            } else {
                reached
            };
            self.path = reached;
            // The handler may be reached after any part of the body.
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
            // What the handler returns is not the answer where the body has given one.
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

    /// What a handler may find: what the body has done, and its arms that were left.
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

    /// What a handler does before it returns has happened only where something was raised.
    fn left_by_handler(&mut self, exits: usize, raised: Cond) {
        for n in exits..self.here().exits.len() {
            let path = self.here().exits[n].0;
            let path = self.d.and(path, raised);
            self.here_mut().exits[n].0 = path;
        }
    }

    fn match_statement(&mut self, subject: ExprId, cases: &[crate::ir::Case]) {
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

/// Are they the same name, or the same path of attributes?
pub(crate) fn same(ir: &crate::ir::Module, a: ExprId, b: ExprId) -> bool {
    match (ir.expr(a), ir.expr(b)) {
        (Expr::Var(x), Expr::Var(y)) => x == y,
        (Expr::Str(x), Expr::Str(y)) => x == y,
        (Expr::Attr { base: x, name: n }, Expr::Attr { base: y, name: m }) => n == m && same(ir, x, y),
        _ => false,
    }
}
