//! Reaching values: what a function's variable holds at a use, according to the statements before it.

use crate::ir::{Block, Expr, ExprId, Module, Stmt, StmtId, Var};
use crate::span::Span;
use crate::words::Words;

/// Methods that put their last argument into a container.
static FILLS: Words = Words::of("fill a container");

/// Where the tensors of a value are. For a value with several tensors, the first variant that applies to one of them counts, so a join is
/// `min`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stored {
    /// On a GPU, or on the device of a module.
    Elsewhere,
    /// Unknown.
    Unknown,
    /// Certainly on the CPU.
    Host,
    /// The value contains no tensors.
    Plain,
}

/// The values that may reach a use of a variable.
pub(crate) struct Given<'a> {
    ir: &'a Module,
    var: Var,
    /// `None`: the variable may still have its initial value, for example its argument. `Some(None)`: it holds one of `values`.
    /// `Some(Some(stored))`: it may also hold something else, which is stored there.
    pub(crate) held: Option<Option<Stored>>,
    /// Values that the variable may have been assigned, or that were stored in it.
    pub(crate) values: Vec<ExprId>,
}

impl<'a> Given<'a> {
    /// No assignment is known yet.
    pub(crate) fn new(ir: &'a Module, var: Var) -> Self {
        Self { ir, var, held: None, values: Vec::new() }
    }

    /// Processes the statements of a block that come before a place. `host` says whether a value is on the host.
    pub(crate) fn before(&mut self, block: Block, at: Span, host: &mut dyn FnMut(ExprId) -> bool) {
        let ir = self.ir;
        for &s in ir.block(block) {
            let span = ir.stmt_span(s);
            if span.start >= at.start {
                return;
            }
            if span.contains(at) {
                for inner in blocks(ir, ir.stmt(s)) {
                    let last = ir.block(inner).last().map(|&l| ir.stmt_span(l).end);
                    let first = ir.block(inner).first().map(|&f| ir.stmt_span(f).start);
                    if first.is_some_and(|f| f <= at.start) && last.is_some_and(|l| l >= at.end) {
                        self.before(inner, at, host);
                    }
                }
                return;
            }
            self.statement(s, true, host);
        }
    }

    /// Processes an earlier statement. If it always runs, an assignment replaces the variable's values; otherwise it adds one.
    fn statement(&mut self, s: StmtId, always: bool, host: &mut dyn FnMut(ExprId) -> bool) {
        let ir = self.ir;
        match *ir.stmt(s) {
            Stmt::Assign { targets, value } => {
                for &t in ir.list(targets) {
                    self.target(t, value, always);
                }
            }
            Stmt::AnnAssign { target, value: Some(value), .. } => self.target(target, value, always),
            Stmt::AugAssign { target, value, .. } => self.target(target, value, false),
            Stmt::Expr(e) => self.filled(e),
            Stmt::For { iter, body, .. } if always && self.goes_through(iter) => {
                if let Some(value) = self.replaced(body).filter(|&v| host(v)) {
                    self.held = Some(None);
                    self.values = vec![value];
                } else {
                    ir.block(body).iter().for_each(|&s| self.statement(s, false, host));
                }
            }
            _ => {
                for block in blocks(ir, ir.stmt(s)) {
                    ir.block(block).iter().for_each(|&s| self.statement(s, false, host));
                }
            }
        }
    }

    fn target(&mut self, target: ExprId, value: ExprId, always: bool) {
        let ir = self.ir;
        match ir.expr(target) {
            Expr::Var(v) if v == self.var => {
                if always {
                    self.values.clear();
                    self.held = Some(None);
                }
                self.values.push(value);
            }
            Expr::Index { base, .. } if ir.expr(base) == Expr::Var(self.var) => self.values.push(value),
            // Unpacking: the element is unknown.
            Expr::Tuple(_) | Expr::List(_) if ir.binds(target, self.var) => {
                self.held = Some(Some(Stored::Unknown))
            }
            _ => {}
        }
    }

    /// `state.update(more)`, `parts.append(x)`
    fn filled(&mut self, e: ExprId) {
        let ir = self.ir;
        let Expr::Call(id) = ir.expr(e) else { return };
        let call = ir.call(id);
        let Expr::Attr { base, name } = ir.expr(call.func) else { return };
        let fills = FILLS.has(name.as_str());
        if fills && ir.expr(base) == Expr::Var(self.var) {
            self.values.extend(call.args.last().map(|a| a.value));
        }
    }

    /// `for key, value in state.items()`
    fn goes_through(&self, iter: ExprId) -> bool {
        let ir = self.ir;
        let mentioned = ir.exprs_in(iter).any(|n| ir.exprs[n] == Expr::Var(self.var));
        mentioned && matches!(ir.expr(iter), Expr::Var(_) | Expr::Call(_))
    }

    /// `state[key] = value.cpu()` in the loop's body, for every element; behind `isinstance`, for every tensor.
    fn replaced(&self, body: Block) -> Option<ExprId> {
        let ir = self.ir;
        ir.block(body).iter().find_map(|&s| match *ir.stmt(s) {
            Stmt::Assign { targets, value } => {
                let own = |&t: &ExprId| {
                    matches!(ir.expr(t), Expr::Index { base, .. } if ir.expr(base) == Expr::Var(self.var))
                };
                ir.list(targets).iter().any(own).then_some(value)
            }
            Stmt::If { test, then, .. } if asks_for_tensors(ir, test) => self.replaced(then),
            _ => None,
        })
    }
}

/// `isinstance(value, torch.Tensor)`, `torch.is_tensor(value)`
fn asks_for_tensors(ir: &Module, test: ExprId) -> bool {
    let Expr::Call(id) = ir.expr(test) else { return false };
    let call = ir.call(id);
    let named = |e: ExprId| match ir.expr(e) {
        Expr::Attr { name, .. } | Expr::Var(Var::Unbound(name)) => Some(name.as_str()),
        _ => None,
    };
    match named(call.func) {
        Some("is_tensor") => true,
        Some("isinstance") => call.args.get(1).is_some_and(|a| named(a.value) == Some("Tensor")),
        _ => false,
    }
}

/// The blocks of a compound statement, in execution order.
pub fn blocks(ir: &Module, stmt: &Stmt) -> Vec<Block> {
    match stmt {
        Stmt::If { then, orelse, .. } => vec![*then, *orelse],
        Stmt::While { body, orelse, .. } | Stmt::For { body, orelse, .. } => vec![*body, *orelse],
        Stmt::With { body, .. } => vec![*body],
        Stmt::Try { body, handlers, orelse, finally } => {
            let handlers = ir.handlers(*handlers).iter().map(|h| h.body);
            [*body].into_iter().chain(handlers).chain([*orelse, *finally]).collect()
        }
        Stmt::Match { cases, .. } => cases.iter().map(|c| c.body).collect(),
        _ => Vec::new(),
    }
}
