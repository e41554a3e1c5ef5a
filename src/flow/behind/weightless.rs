//! Modules that have nothing to move, by the text alone: `nn.CrossEntropyLoss().cuda()` needs no CUDA.

use super::refuses::Refuses;
use crate::ir::{Expr, ExprId, Stmt, Var};
use crate::link::{ClassKey, Program, Resolved};
use crate::sym::Sym;
use crate::torch::{self, State};

/// How deep what is made of such modules is looked into.
const MAX_NESTING: u32 = 4;

impl Refuses<'_> {
    /// Is it a module that has neither parameters nor buffers, or a variable that holds one?
    pub(super) fn is_weightless(&self, e: ExprId) -> bool {
        self.holds_weightless(e, MAX_NESTING)
    }

    fn holds_weightless(&self, e: ExprId, depth: u32) -> bool {
        let ir = self.ir();
        let Some(depth) = depth.checked_sub(1) else { return false };
        match ir.expr(e) {
            Expr::Call(id) => {
                let (func, args) = (ir.call(id).func, &ir.call(id).args);
                match (self.program.resolve_expr(self.module, func), ir.expr(func)) {
                    // It has what it is given.
                    (Some(Resolved::External(path)), _) if is_container(path) => {
                        !args.is_empty() && args.iter().all(|a| self.holds_weightless(a.value, depth))
                    }
                    (Some(Resolved::External(path)), _) => is_weightless_module(path),
                    (Some(Resolved::Class(key)), _) => is_weightless_class(self.program, key, depth),
                    // `nn.ReLU().to(device)`
                    (None, Expr::Attr { base, .. }) => self.holds_weightless(base, depth),
                    _ => false,
                }
            }
            // What an attribute holds, another function may have put there.
            Expr::Attr { .. } => self.is_given(e, &ir.stmts, depth),
            Expr::Var(_) => self.is_given(e, &ir.stmts[ir.stmts_of(ir.function(self.func))], depth),
            _ => false,
        }
    }

    /// Does one of the statements put such a module there?
    fn is_given(&self, to: ExprId, stmts: &[Stmt], depth: u32) -> bool {
        let ir = self.ir();
        stmts.iter().any(|s| match *s {
            Stmt::Assign { targets, value } => {
                ir.list(targets).iter().any(|&t| ir.names_the_same(t, to))
                    && self.holds_weightless(value, depth)
            }
            _ => false,
        })
    }
}

/// A module of PyTorch without a state. A loss may be given weights, but rarely is.
fn is_weightless_module(path: Sym) -> bool {
    torch::module(path).is_some_and(|op| match op.state {
        State::No => !is_container(path),
        State::Sometimes => op.name.as_str().ends_with("Loss"),
        State::Yes | State::Unknown => false,
    })
}

/// Is it no module for certain?
fn is_plain(e: Expr) -> bool {
    matches!(e, Expr::Int(_) | Expr::Float(_) | Expr::Str(_) | Expr::True | Expr::False)
}

fn is_container(path: Sym) -> bool {
    matches!(path.as_str().rsplit('.').next(), Some("Sequential" | "ModuleList" | "ModuleDict"))
}

/// A class of the project whose constructor makes nothing but such modules.
fn is_weightless_class(program: &Program, key: ClassKey, depth: u32) -> bool {
    let info = program.class(key);
    let plain =
        |&path: &Sym| path.as_str() == "torch.nn.Module" || is_weightless_module(torch::canonical(path));
    if info.unknown_base || !info.externals.iter().all(plain) {
        return false;
    }
    let Some((m, f)) = program.find_method(key, Sym::new("__init__")) else { return true };
    let ir = &program.get(m).ir;
    let (function, whole) = (ir.function(f), ir.function(f).span);
    // What a constructor is given may be a module.
    let given = |value: ExprId| {
        let param = |p: &&crate::ir::Param| ir.expr(value) == Expr::Var(Var::Local(p.slot));
        function.params.iter().find(param).is_some_and(|p| !p.default.is_some_and(|d| is_plain(ir.expr(d))))
    };
    let keeps = |s: &Stmt| matches!(*s, Stmt::Assign { value, .. } if given(value));
    if ir.stmts[ir.stmts_of(function)].iter().any(keeps) {
        return false;
    }
    ir.calls.iter().filter(|call| whole.contains(ir.span(call.func))).all(|call| {
        match (program.resolve_expr(m, call.func), ir.expr(call.func)) {
            (Some(Resolved::External(path)), _) => {
                path.as_str().starts_with("builtins.") || is_weightless_module(path)
            }
            (Some(Resolved::Class(key)), _) => {
                depth > 0 && is_weightless_class(program, key, depth.saturating_sub(1))
            }
            (None, Expr::Attr { name, .. }) => name.as_str() == "__init__",
            (None, Expr::Var(Var::Unbound(name))) => name.as_str() == "super",
            _ => false,
        }
    })
}
