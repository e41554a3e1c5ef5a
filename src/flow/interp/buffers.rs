//! Buffers: PyTorch registers nothing but tensors under a buffer's name, and moves them with the module, whoever has made them.

use super::super::dims::Dims;
use super::super::value::{ObjId, OuterKey, Role, Value};
use super::Interp;
use crate::ir::{Expr, ExprId, FuncId, Stmt};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::sym::Sym;
use crate::torch::{self, Kind as OpKind};

impl Interp<'_> {
    /// Is it made by code that nobody sees? PyTorch registers nothing but tensors, and `None` where the class asks for that.
    pub(super) fn is_buffer_of_unknown(&self, id: ObjId, field: Sym, v: Value) -> bool {
        let made = match v {
            Value::Unknown => true,
            Value::Outer(o) => matches!(self.t.get_outer(o).key, OuterKey::Result { .. }),
            _ => false,
        };
        made && self.obj(id).class.is_some_and(|key| !self.may_be_none(key, field))
    }

    /// Such a buffer, wherever it is until its module moves.
    pub(super) fn buffer_of_unknown(&mut self) -> Value {
        let device = self.unknown_device();
        let tensor = self.plain_tensor(device, Dims::ANY);
        self.with_role(tensor, Role::Buffer)
    }

    /// One of a module's own buffers, wherever that is.
    pub(super) fn buffer_of(&mut self, id: ObjId) -> Value {
        let device = match self.own(id) {
            Value::Device(device) => device,
            _ => self.unknown_device(),
        };
        let buffer = self.plain_tensor(device, Dims::ANY);
        self.with_role(buffer, Role::Buffer)
    }

    /// Is it a buffer, in whose place methods put only tensors that they are given or that they work out, and that moves with
    /// its module as the one before did?
    pub(super) fn stays_buffer(&self, key: ClassKey, id: ObjId, name: Sym) -> bool {
        let buffer = match self.get_field(id, name) {
            Value::Tensor(t) => self.get_tensor(t).role == Role::Buffer,
            // PyTorch takes nothing but tensors and `None` there.
            v => v != Value::Absent && self.obj(id).reserved.contains(&name) && !self.may_be_none(key, name),
        };
        buffer && self.is_module_class(key) && self.only_worked_out(key, name)
    }

    /// Do the methods other than the constructor that set it put nothing there that they make somewhere themselves, or move?
    fn only_worked_out(&self, key: ClassKey, name: Sym) -> bool {
        self.program.class(key).mro.iter().all(|k| {
            let methods = &self.program.get(k.module).ir.class(k.class).methods;
            methods.iter().all(|&(method, f)| {
                let others = !self.relevance.assigned.by(k.module, f).contains(&name);
                method == self.known.init || others || self.works_out(k.module, f, name)
            })
        })
    }

    /// The same of one method. What it adds to in place stays where it is.
    fn works_out(&self, m: ModIdx, f: FuncId, name: Sym) -> bool {
        let ir = &self.program.get(m).ir;
        let stmts = || ir.stmts[ir.stmts_of(ir.function(f))].iter();
        let is_it = |t: ExprId| matches!(ir.expr(t), Expr::Attr { name: n, .. } if n == name);
        let mut set = stmts().filter_map(|s| match *s {
            Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| is_it(t)) => {
                Some(Some(value))
            }
            Stmt::AnnAssign { target, value: Some(value), .. } if is_it(target) => Some(Some(value)),
            Stmt::AugAssign { target, .. } if is_it(target) => Some(None),
            _ => None,
        });
        let decides = |e: ExprId| {
            self.may_decide(m, e)
                || matches!(ir.expr(e), Expr::Var(_))
                    && stmts().any(|s| match *s {
                        Stmt::Assign { targets, value } => {
                            let bound = ir.list(targets).iter().any(|&t| ir.expr(t) == ir.expr(e));
                            bound && self.may_decide(m, value)
                        }
                        _ => false,
                    })
        };
        let first = set.next();
        first.is_some() && first.into_iter().chain(set).all(|e| !e.is_some_and(decides))
    }

    /// Does the expression say where its value is, or that it is `None`?
    fn may_decide(&self, m: ModIdx, e: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        matches!(ir.expr(e), Expr::None)
            || ir.exprs_in(e).filter_map(|n| u32::try_from(n).ok()).map(ExprId).any(|e| match ir.expr(e) {
                Expr::Call(id) => {
                    let func = ir.call(id).func;
                    let moves = ir
                        .last_name(func)
                        .is_some_and(|n| matches!(n.as_str(), "to" | "cpu" | "cuda" | "type" | "numpy"));
                    let makes = matches!(self.program.resolve_expr(m, func), Some(Resolved::External(path))
                        if torch::function(path).is_some_and(|op| op.kind == OpKind::Factory));
                    moves || makes
                }
                _ => false,
            })
    }
}
