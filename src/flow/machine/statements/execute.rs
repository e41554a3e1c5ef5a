//! Statements.

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::statements::try_blocks::same;
use crate::ir::{Block, Call, Expr, ExprId, ExprList, ImportList, Slot, Stmt, StmtId, Var};
use crate::link::{Resolved, Target};
use crate::span::Span;
use crate::words::Words;

static MOVES: Words = Words::of("move to any device");
static STAYS: Words = Words::of("give the same values on the same device");

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
                self.assign_statement(*targets, *value);
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
                self.import_statement(*imports, linked.ir.stmt_span(id));
            }
            Stmt::Match { subject, cases } => self.match_statement(*subject, cases),
            Stmt::Break => self.leave_loop(true),
            Stmt::Continue => self.leave_loop(false),
            Stmt::Pass => {}
        }
    }

    /// Runs `a = b = value`.
    fn assign_statement(&mut self, targets: ExprList, value: ExprId) {
        let linked = self.linked();
        if self.assign_display(linked.ir.list(targets), value) {
            return;
        }
        let v = self.eval(value);
        self.check_reference(v, value);
        for &target in linked.ir.list(targets) {
            if self.moves_itself(target, value) {
                self.forget_modules();
            } else {
                self.assign(target, v);
                self.unwraps(target, value, v);
            }
        }
    }

    /// `import a, b as c`, `from a import b`: checks each import and binds its name.
    fn import_statement(&mut self, imports: ImportList, at: Span) {
        let linked = self.linked();
        for import in linked.ir.imported(imports) {
            let Some(var) = import.target else { continue };
            let target = linked.targets.get(&(import.level, import.module, import.name)).copied();
            self.imports_extension(import, at);
            if let Some(t) = target {
                self.imports(t, at);
            }
            let v = target.map_or(Value::Unknown, |t| self.imported(t));
            self.set_var(var, v);
        }
    }

    /// Whether the body tries an import. Then both outcomes are equally likely.
    pub(crate) fn asks_by_trying(&self, body: Block) -> bool {
        let ir = &self.linked().ir;
        ir.block(body).iter().any(|&s| matches!(ir.stmt(s), Stmt::Import(_)))
    }

    pub(crate) fn raises_again(&self, handler: &crate::ir::Handler) -> bool {
        let ir = &self.linked().ir;
        ir.block(handler.body).iter().any(|&s| matches!(ir.stmt(s), Stmt::Raise { .. }))
    }

    /// Whether the assignment moves a value by hand: `p.data = p.data.to(device)`,
    /// `p.data = p.data.float().to(device)`.
    fn moves_itself(&mut self, target: ExprId, value: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Attr { base, name } = ir.expr(target) else { return false };
        let (mut at, mut moved) = (value, false);
        while let Expr::Call(call) = ir.expr(at) {
            let Expr::Attr { base: of, name: method } = ir.expr(ir.call(call).func) else { return false };
            match method.as_str() {
                "to" if self.names_dtype_alone(ir.call(call)) => {}
                method if MOVES.has(method) => moved = true,
                method if STAYS.has(method) => {}
                _ => return false,
            }
            at = of;
        }
        name.as_str() == "data" && moved && (same(ir, at, target) || same(ir, at, base))
    }

    /// Whether the only argument is certainly a number type: `.to(dtype)`. Such a call does not move.
    fn names_dtype_alone(&mut self, call: Call<'_>) -> bool {
        let [only] = call.args else { return false };
        self.run.muted += 1;
        let given = self.eval(only.value);
        self.run.muted -= 1;
        let dtype = |v: &Value| matches!(*v, Value::External(path) if crate::flow::models::tensors::sizes::dtype_width(path.as_str()).is_some());
        self.values_of(given).iter().all(dtype)
    }

    /// Makes the devices of all modules unknown: the program moves parameters one by one.
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

    /// Assigns `b, n, device = *x.shape, x.device`: the items after the star are the last targets, for any length of
    /// the starred value.
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
        // Outside of branches, the store already has the state at the function's end.
        self.path = FALSE;
    }

    /// The result of a `return`, joined with earlier results. The path excludes earlier returns, unless its condition
    /// was too large. Where both seem to hold, the result is either the current or the earlier one.
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
}
