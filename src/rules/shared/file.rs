//! The common base of rules that read the intermediate representation of a file instead of events.

use crate::rules::check::Context;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::ir::{Call, Class, ClassId, Expr, ExprId, FuncId, Function, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::span::Span;
use crate::sym::Sym;
use crate::torch::{self, State};

/// A file. Rules that read files add methods to it.
pub struct File<'a> {
    pub cx: &'a Context<'a>,
    pub module: ModIdx,
    pub ir: &'a Module,
    /// The subclasses of a class among the files that this one imports directly or indirectly. A cache.
    pub mixed: RefCell<BTreeMap<ClassKey, Rc<[ClassKey]>>>,
}

impl<'a> File<'a> {
    /// The file of the context; `None` if it could not be read.
    pub fn of(cx: &'a Context<'a>) -> Option<Self> {
        let module = cx.program.module_of(cx.file)?;
        Some(Self::new(cx, module, &cx.program.get(module).ir))
    }

    pub fn new(cx: &'a Context<'a>, module: ModIdx, ir: &'a Module) -> Self {
        Self { cx, module, ir, mixed: RefCell::default() }
    }

    /// The classes of the file.
    pub fn classes(&self) -> impl Iterator<Item = (ClassKey, &'a Class)> {
        let module = self.module;
        (0..).zip(&self.ir.classes).map(move |(n, class)| (ClassKey { module, class: ClassId(n) }, class))
    }

    /// The name in `self.name`.
    pub fn own_attribute(&self, e: ExprId) -> Option<Sym> {
        match self.ir.expr(e) {
            Expr::Attr { base, name } if is_self(self.ir, base) => Some(name),
            _ => None,
        }
    }

    /// The expressions of a function, each with its index and its span.
    pub fn inside(&self, function: &Function) -> impl Iterator<Item = (usize, Expr, Span)> {
        let body = function.exprs.start as usize..function.exprs.end as usize;
        let exprs = body.clone().zip(&self.ir.exprs[body.clone()]).zip(&self.ir.expr_spans[body]);
        exprs.map(|((n, e), at)| (n, *e, *at))
    }

    /// The calls in a function.
    pub fn calls_in(&self, method: &Function) -> impl Iterator<Item = (Call<'_>, Span)> {
        self.inside(method).filter_map(|(_, e, at)| match e {
            Expr::Call(id) => Some((self.ir.call(id), at)),
            _ => None,
        })
    }

    /// Does a call of this create a parameter, or a layer of PyTorch with parameters?
    pub fn makes_weights(&self, module: ModIdx, func: ExprId) -> bool {
        match self.cx.program.resolve_expr(module, func) {
            Some(Resolved::External(path)) => {
                path.as_str().ends_with("nn.Parameter")
                    || torch::module(path).is_some_and(|m| m.state == State::Yes)
            }
            _ => false,
        }
    }
}

/// The values that a method assigns to `self.name`, in order.
pub fn given_to_own(ir: &Module, method: &Function, name: Sym) -> Vec<ExprId> {
    let own =
        |&t: &ExprId| matches!(ir.expr(t), Expr::Attr { base, name: n } if n == name && is_self(ir, base));
    let given = ir.stmts[ir.stmts_of(method)].iter().filter_map(|s| match *s {
        Stmt::Assign { targets, value } => ir.list(targets).iter().any(own).then_some(value),
        _ => None,
    });
    given.collect()
}

/// The assignments `self.name = value` anywhere in a method, with the spans of the statements.
pub fn assigned_to_own(ir: &Module, f: FuncId) -> Vec<(Sym, ExprId, Span)> {
    let body = ir.stmts_of(ir.function(f));
    let mut assigned = Vec::new();
    for (stmt, &at) in ir.stmts[body.clone()].iter().zip(&ir.stmt_spans[body]) {
        let (targets, value) = match *stmt {
            Stmt::Assign { targets, value } => (ir.list(targets), value),
            Stmt::AnnAssign { ref target, value: Some(value), .. } => (std::slice::from_ref(target), value),
            _ => continue,
        };
        for &t in targets {
            if let Expr::Attr { base, name } = ir.expr(t)
                && is_self(ir, base)
            {
                assigned.push((name, value, at));
            }
        }
    }
    assigned
}

/// Is it the first variable of a function, which is the instance in a method?
pub fn is_self(ir: &Module, e: ExprId) -> bool {
    ir.expr(e) == Expr::Var(Var::Local(0))
}
