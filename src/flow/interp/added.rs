//! Attributes that methods only add to: `self.total = self.total + x.sum()`.
//!
//! Each call makes the new value of the one before, and the first of what the constructor has left. A module that has been
//! moved since then has not moved that, so the first call after the move finds it where it was made.

use super::super::device_words::speaks_of_devices;
use super::super::value::{ObjId, Value};
use super::Interp;
use crate::ir::{Expr, ExprId, FuncId, Module, Stmt};
use crate::link::ModIdx;
use crate::sym::Sym;

impl Interp<'_> {
    /// Has the constructor of a module that only moves what is registered left a plain tensor there, on the CPU?
    pub(super) fn rests(&self, id: ObjId, name: Sym) -> bool {
        let plain = match self.get_field(id, name) {
            Value::Tensor(t) => {
                let t = self.get_tensor(t);
                !t.role.registered() && self.is_cpu(t.device)
            }
            _ => false,
        };
        plain && self.is_module_object(id) && !self.keeps_its_own_books(id)
    }

    /// Does each of the methods make the attribute's new value of the old one, without speaking of places?
    pub(super) fn only_added_to(&self, setters: &[(ModIdx, FuncId)], name: Sym) -> bool {
        let assigned = &self.relevance.assigned;
        setters.iter().filter(|&&(m, f)| assigned.by(m, f).contains(&name)).all(|&(m, f)| {
            let ir = &self.program.get(m).ir;
            let adds = |s: &Stmt| match *s {
                Stmt::Assign { targets, value } => {
                    let targets = ir.list(targets);
                    targets.iter().all(|&t| !sets(ir, t, name))
                        || targets.len() == 1 && mentions(ir, value, name) && !speaks_of_places(ir, value)
                }
                Stmt::AugAssign { target, value, .. } => {
                    !sets(ir, target, name) || !speaks_of_places(ir, value)
                }
                Stmt::AnnAssign { target, value: Some(_), .. } => !sets(ir, target, name),
                _ => true,
            };
            ir.stmts[ir.stmts_of(ir.function(f))].iter().all(adds)
        })
    }
}

/// Is the attribute among what an assignment to this target sets?
fn sets(ir: &Module, target: ExprId, name: Sym) -> bool {
    match ir.expr(target) {
        Expr::Attr { name: n, .. } => n == name,
        Expr::Tuple(list) | Expr::List(list) => ir.list(list).iter().any(|&t| sets(ir, t, name)),
        _ => false,
    }
}

fn mentions(ir: &Module, e: ExprId, name: Sym) -> bool {
    ir.exprs[ir.exprs_in(e)].iter().any(|e| matches!(*e, Expr::Attr { name: n, .. } if n == name))
}

/// Is something moved there, or made in a place that is told?
fn speaks_of_places(ir: &Module, e: ExprId) -> bool {
    const MOVES: &[&str] = &["to", "cuda", "cpu", "type_as", "copy_", "data"];
    ir.exprs[ir.exprs_in(e)].iter().any(|e| match *e {
        Expr::Attr { name, .. } => MOVES.contains(&name.as_str()) || speaks_of_devices(name.as_str()),
        _ => false,
    })
}
