//! `with`: what is entered, what the block does, and what leaving it does.

use super::super::store::Changes;
use super::super::value::{ObjId, Value};
use super::Interp;
use super::args::Args;
use crate::ir::{Block, Expr, ExprId, FuncId};
use crate::link::{ModIdx, Resolved};
use crate::sym::Sym;

/// What happens once the block of a `with` has been left.
enum Leaving {
    /// What a generator does after its `yield`.
    Rest(Changes),
    /// The manager's `__exit__`.
    Exit(ObjId, ExprId),
}

/// What PyTorch raises where a device is missing or full, or where tensors are apart, and what these are kinds of.
const DEVICE_ERRORS: &[&str] = &[
    "BaseException",
    "Exception",
    "RuntimeError",
    "AssertionError",
    "TypeError",
    "OutOfMemoryError",
    "AcceleratorError",
];

impl Interp<'_> {
    pub(super) fn with(&mut self, items: &[(ExprId, Option<ExprId>)], body: Block) {
        let saved = self.store.get(self.default_device);
        let mut scoped = false;
        let casts = self.watch.autocasts.len();
        let mut leaving = Vec::new();
        for &(context, target) in items {
            self.enter_autocast(self.here().module, context);
            self.rest_of_generator = None;
            let manager = self.eval(context);
            let rest = self.rest_of_generator.take();
            scoped |= self.enter(manager, context);
            let v = self.entered(manager, context);
            match (rest, manager) {
                (Some(rest), _) => leaving.push(Leaving::Rest(rest)),
                (None, Value::Object(id)) => leaving.push(Leaving::Exit(id, context)),
                _ => {}
            }
            if let Some(t) = target {
                self.assign(t, v);
            }
        }
        match items.iter().find_map(|&(context, _)| self.expected_error(context)) {
            Some(awaited) => self.block_that_raises(body, awaited),
            None => self.block(body),
        }
        if self.live() {
            self.leave(leaving);
        }
        self.watch.autocasts.truncate(casts);
        if scoped {
            let cell = self.default_device;
            self.store.set(cell, saved);
        }
    }

    /// Is it `pytest.raises(…)`, `self.assertRaises(…)`, `contextlib.suppress(…)`? Then, whether what PyTorch raises where
    /// devices are missing, full or mixed is among what they wait for.
    fn expected_error(&self, context: ExprId) -> Option<bool> {
        let ir = &self.linked().ir;
        let Expr::Call(id) = ir.expr(context) else { return None };
        let call = ir.call(id);
        if !matches!(self.last_name(call.func)?, "raises" | "assertRaises" | "assertRaisesRegex" | "suppress")
        {
            return None;
        }
        Some(call.args.iter().any(|a| {
            let errors = match ir.expr(a.value) {
                Expr::Tuple(list) => ir.list(list).to_vec(),
                _ => vec![a.value],
            };
            errors.into_iter().filter_map(|e| self.last_name(e)).any(|n| DEVICE_ERRORS.contains(&n))
        }))
    }

    /// What raises in such a block ends the block and nothing else; what is waited for is no finding.
    fn block_that_raises(&mut self, body: Block, awaited: bool) {
        let before = self.path;
        self.muted += u32::from(awaited);
        self.block(body);
        self.muted -= u32::from(awaited);
        if !self.live() {
            self.path = before;
        }
    }

    /// The last that was entered is left first.
    fn leave(&mut self, leaving: Vec<Leaving>) {
        for manager in leaving.into_iter().rev() {
            match manager {
                Leaving::Rest(changes) => self.apply(&changes),
                Leaving::Exit(id, context) => {
                    let class = self.obj(id).class;
                    if let Some((m, f)) =
                        class.and_then(|k| self.program.find_method(k, Sym::new("__exit__")))
                    {
                        // Nothing was raised.
                        let args = Args { positional: vec![(Value::None, context); 3], ..Args::default() };
                        self.call_function(m, f, None, Some(Value::Object(id)), &args, context);
                    }
                }
            }
        }
    }

    /// What `with … as name` binds.
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

    /// At the first `yield` of a generator that makes a context manager: what follows is done when the block is left.
    pub(super) fn pause(&mut self) {
        let mark = self.store.mark();
        let frame = self.here();
        let first = frame.yields == Value::Absent && frame.branches == 0 && frame.loops.is_empty();
        if first && self.makes_manager(frame.module, frame.func) {
            self.here_mut().paused = Some(mark);
        }
    }

    /// Puts aside what the generator that has just been interpreted does after its `yield`.
    pub(super) fn put_rest_aside(&mut self) {
        let frame = self.here();
        if let (Some(mark), true) = (frame.paused, frame.exits.is_empty()) {
            let rest = self.store.take(mark);
            self.rest_of_generator = Some(rest);
        }
    }

    /// Is the function decorated with `contextlib.contextmanager` or its asynchronous twin?
    fn makes_manager(&self, module: ModIdx, func: FuncId) -> bool {
        let ir = &self.program.get(module).ir;
        ir.list(ir.function(func).decorators).iter().any(|&d| {
            matches!(self.program.resolve_expr(module, d), Some(Resolved::External(path))
                if matches!(path.as_str(), "contextlib.contextmanager" | "contextlib.asynccontextmanager"))
        })
    }
}
