//! `with`: entering the managers, the block, and the exit.

use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::TryFrame;
use crate::flow::machine::statements::handlers::{MISSING_DEVICE, OUT_OF_MEMORY, drops_all};
use crate::ir::{Block, Expr, ExprId};
use crate::link::Resolved;
use crate::sym::Sym;
use crate::words::Words;

static EXPECT_ERRORS: Words = Words::of("expect an error");

impl Interp<'_> {
    pub(crate) fn with(&mut self, items: &[(ExprId, Option<ExprId>)], body: Block) {
        let saved = self.store.get(self.tensors.default_device);
        let gradless = self.store.get(self.observed.gradless);
        let (mut scoped, mut fake) = (false, false);
        let casts = self.tensors.autocasts.len();
        let open = self.calls.suspended.len();
        let mut entered = Vec::new();
        for &(context, target) in items {
            let manager = self.eval(context);
            self.enter_gradients(context);
            self.enter_autocast(manager);
            scoped |= self.enter(manager, context);
            fake |= self.is_fake(manager, context);
            let v = self.entered(manager, context);
            if let Value::Object(id) = manager {
                entered.push((id, context));
            }
            if let Some(t) = target {
                self.assign(t, v);
            }
        }
        let (path, returned) = (self.path, self.here().returned);
        match items.iter().find_map(|&(context, _)| self.expected_error(context)) {
            Some(awaited) => {
                let drops = items.iter().find(|&&(context, _)| self.drops_every_error(context));
                self.block_that_drops(body, awaited, drops.map(|&(context, _)| context));
            }
            None if fake => self.fake_block(body),
            None => self.block(body),
        }
        self.leave_managers(open, path, returned);
        self.leave(entered);
        self.tensors.autocasts.truncate(casts);
        if items.iter().any(|&(context, _)| self.switches_gradients(context)) {
            self.store.set(self.observed.gradless, gradless);
        }
        if scoped {
            let cell = self.tensors.default_device;
            self.store.set(cell, saved);
        }
    }

    /// For `pytest.raises(…)`, `self.assertRaises(…)` and `contextlib.suppress(…)`: whether their errors include what
    /// PyTorch raises for missing, full or mixed devices. `None` for other managers.
    fn expected_error(&self, context: ExprId) -> Option<bool> {
        let ir = &self.linked().ir;
        let Expr::Call(id) = ir.expr(context) else { return None };
        let call = ir.call(id);
        if !EXPECT_ERRORS.has(self.last_name(call.func)?) {
            return None;
        }
        Some(call.args.iter().any(|a| {
            let errors = match ir.expr(a.value) {
                Expr::Tuple(list) => ir.list(list).to_vec(),
                _ => vec![a.value],
            };
            errors.into_iter().filter_map(|e| self.last_name(e)).any(|n| {
                // A conversion to NumPy raises a `TypeError`, and an operation without a kernel for the device raises a
                // `NotImplementedError`.
                MISSING_DEVICE.has(n)
                    || OUT_OF_MEMORY.has(n)
                    || matches!(n, "TypeError" | "NotImplementedError")
            })
        }))
    }

    /// Whether the manager is `contextlib.suppress(…)` of general errors that include out-of-memory errors.
    fn drops_every_error(&self, context: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Call(id) = ir.expr(context) else { return false };
        let call = ir.call(id);
        let suppresses = matches!(self.program.resolve_expr(self.here().module, call.func),
            Some(Resolved::External(path)) if path.as_str() == "contextlib.suppress");
        suppresses && drops_all(&call.args.iter().flat_map(|a| self.names_of(a.value)).collect::<Vec<_>>())
    }

    /// Interprets such a block. If the block works on a device, reports an event: out-of-memory errors are dropped like
    /// all others.
    fn block_that_drops(&mut self, body: Block, awaited: bool, drops: Option<ExprId>) {
        let Some(context) = drops else { return self.block_that_raises(body, awaited) };
        let (before, work, mark) = (self.path, self.run.work, self.store.mark());
        self.here_mut().tries.push(TryFrame {
            start: before,
            mark,
            left: Vec::new(),
            raised: Vec::new(),
            survived: TRUE,
            imported: TRUE,
            catches_cuda: false,
            catches_oom: true,
            catches_missing: false,
        });
        self.block_that_raises(body, awaited);
        self.here_mut().tries.pop();
        if self.run.work > work {
            let after = std::mem::replace(&mut self.path, before);
            let there = self.available(None);
            if let Some(bite) = self.bite(there, false) {
                let place = self.place(context);
                self.emit(Kind::Swallowed { said: None }, place, bite, Vec::new());
            }
            self.path = after;
        }
        // An error that is dropped here does not reach outer handlers.
        self.run.work = work;
    }

    /// Interprets a block with expected errors. An error ends only the block, and an expected error is no finding.
    fn block_that_raises(&mut self, body: Block, awaited: bool) {
        let before = self.path;
        self.run.muted += u32::from(awaited);
        self.run.awaiting += 1;
        self.block(body);
        self.run.awaiting -= 1;
        self.run.muted -= u32::from(awaited);
        if !self.live() {
            self.path = before;
        }
    }

    /// Calls each `__exit__` as after a block without an error, the last entered manager first.
    fn leave(&mut self, entered: Vec<(ObjId, ExprId)>) {
        for (id, context) in entered.into_iter().rev() {
            if !self.live() {
                return;
            }
            let class = self.obj(id).class;
            if let Some((m, f)) = class.and_then(|k| self.program.find_method(k, Sym::new("__exit__"))) {
                let args = Args { positional: vec![(Value::None, context); 3], ..Args::default() };
                self.call_function(m, f, None, Some(Value::Object(id)), &args, context);
            }
        }
    }

    /// The value that `with … as name` binds.
    fn entered(&mut self, manager: Value, e: ExprId) -> Value {
        match manager {
            Value::Object(id) => {
                let enter =
                    self.obj(id).class.and_then(|k| self.program.find_method(k, Sym::new("__enter__")));
                match enter {
                    Some((m, f)) => {
                        let args = Args::default();
                        self.call_function(m, f, None, Some(manager), &args, e)
                    }
                    None => manager,
                }
            }
            Value::Many(m) => *self.t.values.get(m),
            _ => self.result_of(e),
        }
    }
}
