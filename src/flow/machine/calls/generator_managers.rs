//! Context managers made of generators: what comes after their `yield` runs when the block ends.

use crate::flow::domain::diagram::{Cond, FALSE};
use crate::flow::domain::value::FrameId;
use crate::flow::machine::Interp;
use crate::ir::{Block, Expr, FuncId, Stmt, StmtId};
use crate::link::{ModIdx, Resolved};
use crate::torch::{self, Decorator};

/// A manager that has been entered, and what it does in the end.
pub(crate) struct Suspended {
    frame: FrameId,
    rest: Vec<StmtId>,
}

impl Interp<'_> {
    /// Is the function a generator that `contextlib.contextmanager` makes a context manager of?
    pub(crate) fn is_manager(&self, module: ModIdx, func: FuncId) -> bool {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        function.is_generator
            && ir.list(function.decorators).iter().any(|&d| {
                matches!(self.program.resolve_expr(module, d), Some(Resolved::External(path))
                    if torch::call(path).and_then(|f| f.decorator) == Some(Decorator::ContextManager))
            })
    }

    /// Does the manager that is interpreted wait after this statement? What follows in its block is left for later.
    pub(crate) fn waits_after(&mut self, stmt: StmtId, following: &[StmtId]) -> bool {
        if !self.here().manager {
            return false;
        }
        if !self.is_waiting() {
            let ir = &self.linked().ir;
            let yields = match *ir.stmt(stmt) {
                Stmt::Expr(e) | Stmt::Assign { value: e, .. } => matches!(ir.expr(e), Expr::Yield(_)),
                _ => false,
            };
            // One of several, or of any number, is not where it waits for certain.
            if !yields || self.here().branches > 0 || !self.here().loops.is_empty() {
                return false;
            }
        }
        self.here_mut().rest.get_or_insert_default().extend(following);
        true
    }

    /// Has the manager that is interpreted come to its `yield`?
    pub(crate) fn is_waiting(&self) -> bool {
        self.here().rest.is_some()
    }

    /// What a `try` does in the end, at once or later.
    pub(crate) fn finally(&mut self, block: Block) {
        let statements = self.linked().ir.block(block);
        match &mut self.here_mut().rest {
            Some(rest) => rest.extend(statements),
            None => self.block(block),
        }
    }

    /// The call of a manager ends at its `yield`.
    pub(crate) fn suspend(&mut self, frame: FrameId) {
        if let Some(rest) = self.frames[frame.0 as usize].rest.take().filter(|rest| !rest.is_empty()) {
            self.calls.suspended.push(Suspended { frame, rest });
        }
    }

    /// Runs what the managers of a block left for its end. `entered` and `returned` are the path and what had been
    /// returned before the block: after a `return` in it they run all the same.
    pub(crate) fn leave_managers(&mut self, open: usize, entered: Cond, returned: Cond) {
        while self.calls.suspended.len() > open {
            let Some(Suspended { frame, rest }) = self.calls.suspended.pop() else { return };
            let after = self.path;
            if after == FALSE {
                if self.here().returned == returned || self.here().branches > 0 {
                    continue;
                }
                self.path = entered;
            }
            let saved = std::mem::replace(&mut self.frame, frame);
            for stmt in rest {
                if !self.live() || !self.step() {
                    break;
                }
                self.stmt(stmt);
            }
            self.frame = saved;
            if after == FALSE || self.path == FALSE {
                self.path = after;
            }
        }
    }
}
