//! What rules that read the intermediate representation of a whole file, not events, start from.

use super::Context;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::ir::{Expr, ExprId, Function, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::sym::Sym;
use crate::torch::{self, State};

/// One file. Each rule that reads files adds its own questions to it.
pub(super) struct File<'a> {
    pub(super) cx: &'a Context<'a>,
    pub(super) module: ModIdx,
    pub(super) ir: &'a Module,
    /// The classes, among the files that this one leads to, that a class is a base of, once somebody has asked.
    pub(super) mixed: RefCell<BTreeMap<ClassKey, Rc<[ClassKey]>>>,
}

impl<'a> File<'a> {
    /// The file that is being judged; nothing if it could not be read.
    pub(super) fn of(cx: &'a Context<'a>) -> Option<Self> {
        let module = cx.program.module_of(cx.file)?;
        Some(Self::new(cx, module, &cx.program.get(module).ir))
    }

    pub(super) fn new(cx: &'a Context<'a>, module: ModIdx, ir: &'a Module) -> Self {
        Self { cx, module, ir, mixed: RefCell::default() }
    }

    /// The name in `self.name`.
    pub(super) fn own_attribute(&self, e: ExprId) -> Option<Sym> {
        match self.ir.expr(e) {
            Expr::Attr { base, name } if is_self(self.ir, base) => Some(name),
            _ => None,
        }
    }

    /// Does calling this make a parameter, or a layer of PyTorch's that has some?
    pub(super) fn makes_weights(&self, module: ModIdx, func: ExprId) -> bool {
        match self.cx.program.resolve_expr(module, func) {
            Some(Resolved::External(path)) => {
                path.as_str().ends_with("nn.Parameter")
                    || torch::module(path).is_some_and(|m| m.state == State::Yes)
            }
            _ => false,
        }
    }
}

/// What a method gives to `self.name`, in order.
pub(super) fn given_to_own(ir: &Module, method: &Function, name: Sym) -> Vec<ExprId> {
    let own =
        |&t: &ExprId| matches!(ir.expr(t), Expr::Attr { base, name: n } if n == name && is_self(ir, base));
    let given = ir.stmts[ir.stmts_of(method)].iter().filter_map(|s| match *s {
        Stmt::Assign { targets, value } => ir.list(targets).iter().any(own).then_some(value),
        _ => None,
    });
    given.collect()
}

/// Is it the first variable of a function, which a method is given as its instance?
pub(super) fn is_self(ir: &Module, e: ExprId) -> bool {
    ir.expr(e) == Expr::Var(Var::Local(0))
}
