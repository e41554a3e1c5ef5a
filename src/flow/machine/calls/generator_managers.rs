//! Context managers from generators: the code after their `yield` runs at the end of the block.

use crate::flow::domain::diagram::{Cond, FALSE};
use crate::flow::domain::value::FrameId;
use crate::flow::machine::Interp;
use crate::ir::{Block, Expr, FuncId, Stmt, StmtId};
use crate::link::{ModIdx, Resolved};
use crate::torch::{self, Decorator};

/// A manager that has been entered, with the statements that run at its exit.
pub(crate) struct Suspended {
    frame: FrameId,
    rest: Vec<StmtId>,
}

impl Interp<'_> {
    /// Whether the function is a generator with the decorator `contextlib.contextmanager`.
    pub(crate) fn is_manager(&self, module: ModIdx, func: FuncId) -> bool {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        function.is_generator
            && ir.list(function.decorators).iter().any(|&d| {
                matches!(self.program.resolve_expr(module, d), Some(Resolved::External(path))
                    if torch::call(path).and_then(|f| f.decorator) == Some(Decorator::ContextManager))
            })
    }

    /// Whether the current manager stops after this statement. The rest of its block runs at the exit.
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
            // A `yield` in a branch or loop is not certainly the place where the manager stops.
            if !yields || self.here().branches > 0 || !self.here().loops.is_empty() {
                return false;
            }
        }
        self.here_mut().rest.get_or_insert_default().extend(following);
        true
    }

    /// Whether the current manager has reached its `yield`.
    pub(crate) fn is_waiting(&self) -> bool {
        self.here().rest.is_some()
    }

    /// Runs the `finally` block of a `try`, or stores it for the exit of the manager.
    pub(crate) fn finally(&mut self, block: Block) {
        let statements = self.linked().ir.block(block);
        match &mut self.here_mut().rest {
            Some(rest) => rest.extend(statements),
            None => self.block(block),
        }
    }

    /// Ends the call of a manager at its `yield`.
    pub(crate) fn suspend(&mut self, frame: FrameId) {
        if let Some(rest) = self.frames[frame.0 as usize].rest.take().filter(|rest| !rest.is_empty()) {
            self.calls.suspended.push(Suspended { frame, rest });
        }
    }

    /// Runs the exits of a block's managers. `entered` is the path before the block, and `returned` the condition under
    /// which the function had returned before it. The exits also run after a `return` in the block.
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
