//! What modules register, and the containers that their constructors keep.

use crate::flow::query::relevance::file_scan::Scan;
use crate::flow::query::relevance::graph::{Node, number};
use crate::ir::{Expr, ExprId, FuncId, FuncKind, Stmt, Var};
use crate::link::{ClassKey, Resolved};
use crate::span::Span;
use crate::torch::{self};

impl<'a> Scan<'a> {
    /// Whether the function is the constructor of a module. The module's parts move with it.
    pub(crate) fn builds_module(&self, owner: FuncId) -> bool {
        let function = self.ir.function(owner);
        let class = match function.kind {
            FuncKind::Function => function.class.filter(|_| function.name == self.names.init),
            // For example a lambda in a comprehension.
            _ => None,
        };
        class.is_some_and(|class| self.is_module_class(ClassKey { module: self.module, class }))
    }

    /// Finds `self.scale = nn.Parameter(…)` and `self.register_buffer("steps", …)` in the constructors of modules.
    ///
    /// A value created there moves with the module, so its creation decides no device.
    pub(crate) fn registering(&mut self) {
        let mut spans = Vec::new();
        for (stmt, &span) in self.ir.stmts.iter().zip(&self.ir.stmt_spans) {
            let registers = match *stmt {
                Stmt::Assign { targets, value } => {
                    self.ir.list(targets).iter().all(|&t| self.is_own_attribute(t))
                        && self.makes_parameter(value)
                }
                Stmt::Expr(e) => match self.ir.expr(e) {
                    Expr::Call(id) => self.registers(self.ir.call(id).func),
                    _ => false,
                },
                _ => false,
            };
            if registers && self.builds_module(self.owner_at(span)) {
                spans.push(span);
            }
        }
        spans.sort_unstable_by_key(|s| s.start);
        self.registering = spans;
    }

    pub(crate) fn is_own_attribute(&self, e: ExprId) -> bool {
        matches!(self.ir.expr(e), Expr::Attr { base, .. } if self.ir.expr(base) == Expr::Var(Var::Local(0)))
    }

    fn makes_parameter(&self, e: ExprId) -> bool {
        let Expr::Call(id) = self.ir.expr(e) else { return false };
        matches!(self.program.resolve_expr(self.module, self.ir.call(id).func),
            Some(Resolved::External(path)) if matches!(path.as_str(), "torch.nn.Parameter" | "torch.nn.parameter.Parameter"))
    }

    fn registers(&self, callee: ExprId) -> bool {
        self.is_own_attribute(callee)
            && matches!(self.ir.expr(callee), Expr::Attr { name, .. } if self.names.registering.contains(&name))
    }

    /// Whether the place is in a statement that registers a new value with a module.
    pub(crate) fn is_registered(&self, span: Span) -> bool {
        let at = self.registering.partition_point(|s| s.start <= span.start);
        at.checked_sub(1).and_then(|i| self.registering.get(i)).is_some_and(|s| s.contains(span))
    }

    /// `layers = []`, `self.layers = layers`: the first value that the local variable was assigned.
    fn first_content(&self, owner: FuncId, value: ExprId) -> ExprId {
        let var @ Expr::Var(Var::Local(_)) = self.ir.expr(value) else { return value };
        let body = self.ir.stmts_of(self.ir.function(owner));
        let given = self.ir.stmts[body].iter().find_map(|s| match *s {
            Stmt::Assign { targets, value }
                if self.ir.list(targets).iter().any(|&t| self.ir.expr(t) == var) =>
            {
                Some(value)
            }
            _ => None,
        });
        given.unwrap_or(value)
    }

    /// The elements of a list: `steps` in `tuple(steps)`.
    fn listed(&self, value: ExprId) -> ExprId {
        let Expr::Call(id) = self.ir.expr(value) else { return value };
        let call = self.ir.call(id);
        match call.args {
            [only] if ["list", "tuple"].iter().any(|name| self.ir.is_builtin(call.func, name)) => only.value,
            _ => value,
        }
    }

    /// `self.layers = [nn.Linear(…), …]`, or an empty container that is filled later, in a module's constructor.
    pub(crate) fn kept_container(&mut self, targets: crate::ir::ExprList, value: ExprId) {
        let kept = self.ir.list(targets).iter().any(|&t| matches!(self.ir.expr(t), Expr::Attr { .. }));
        if !kept {
            return;
        }
        let owner = self.owner(value);
        if !self.builds_module(owner) {
            return;
        }
        let value = self.first_content(owner, self.listed(value));
        let (empty, aliases) = match self.ir.expr(value) {
            // `[self.small, self.large]`
            Expr::List(list) | Expr::Dict(list) | Expr::Tuple(list) => {
                (list.len == 0, self.ir.list(list).iter().any(|&e| self.is_own_attribute(e)))
            }
            Expr::Comp(_) => (false, false),
            _ => return,
        };
        let around = if empty { self.ir.exprs_of(self.ir.function(owner)) } else { self.ir.exprs_in(value) };
        let around = &self.ir.exprs[around];
        let makes = |e: &Expr| match *e {
            Expr::Call(call) => match self.program.resolve_expr(self.module, self.ir.call(call).func) {
                Some(Resolved::External(path)) => {
                    path.as_str().ends_with("nn.Parameter")
                        || torch::module(path).is_some_and(|m| m.state == torch::State::Yes)
                }
                Some(Resolved::Class(key)) => self.is_module_class(key),
                _ => self.is_of_modules(self.ir.call(call).func),
            },
            _ => false,
        };
        let fills = |e: &Expr| match *e {
            Expr::Attr { name, .. } => matches!(name.as_str(), "append" | "extend"),
            Expr::Index { .. } => true,
            _ => false,
        };
        let made = || around.iter().any(makes) && (!empty || around.iter().any(fills));
        if aliases || made() {
            self.seed_in(owner, self.ir.span(value));
        }
    }

    /// Adds edges from each function to its nested functions: the seeds of a nested function count for the outer one.
    pub(crate) fn enclosing(&mut self) {
        for (n, f) in self.ir.functions.iter().enumerate() {
            let Some(parent) = f.parent else { continue };
            if parent != FuncId(0) && self.ir.function(parent).kind != FuncKind::ClassBody {
                let (from, to) =
                    (Node::Function(self.module, parent), Node::Function(self.module, FuncId(number(n))));
                self.found.edges.push((from, to));
            }
            // Class-level variables belong to every method.
            if parent != FuncId(0)
                && self.ir.function(parent).kind == FuncKind::ClassBody
                && f.kind == FuncKind::Function
            {
                let (from, to) =
                    (Node::Function(self.module, FuncId(number(n))), Node::Function(self.module, parent));
                self.found.edges.push((from, to));
            }
        }
    }
}
