//! Modules whose own `forward` takes gradients: forces are what an energy changes by. They cannot be run without a graph.

use super::super::value::{ObjId, Value};
use super::Interp;
use crate::flow::site::own_method;
use crate::ir::{Expr, ExprId, FuncId, Module, Var};
use crate::link::{ModIdx, Resolved};

/// So many functions are followed into one another, and so many modules.
const MAX_DEPTH: u32 = 3;

impl Interp<'_> {
    /// Does the module, or one that it keeps, take gradients as it computes?
    pub(super) fn takes_gradients(&self, id: ObjId) -> bool {
        self.takes_gradients_within(id, MAX_DEPTH)
    }

    /// Is it one of several models of which one in sight does? Whoever calls them has all of them in mind.
    pub(super) fn is_one_that_takes_gradients(&self, v: Value) -> bool {
        !self.watch.evaluated.is_empty()
            && self.values_of(v).into_iter().any(|v| match v {
                Value::Object(id) => self.is_module_object(id) && self.takes_gradients(id),
                _ => false,
            })
    }

    fn takes_gradients_within(&self, id: ObjId, depth: u32) -> bool {
        let object = self.obj(id);
        let forward = object.class.and_then(|class| self.program.find_method(class, self.known.forward));
        forward.is_some_and(|(m, f)| self.differentiates(m, f, MAX_DEPTH))
            || depth > 0
                && object.attrs.iter().any(|&(_, cell)| match self.store.get(cell) {
                    Value::Object(part) => part != id && self.takes_gradients_within(part, depth - 1),
                    _ => false,
                })
    }

    fn differentiates(&self, module: ModIdx, func: FuncId, depth: u32) -> bool {
        let ir = &self.program.get(module).ir;
        ir.exprs[ir.exprs_of(ir.function(func))].iter().any(|e| {
            let Expr::Call(id) = *e else { return false };
            let callee = ir.call(id).func;
            let next = match self.program.resolve_expr(module, callee) {
                Some(Resolved::External(path)) => {
                    return ["torch.autograd.", "torch.func."].iter().any(|p| path.as_str().starts_with(p));
                }
                Some(Resolved::Function(m, f)) => Some((m, f)),
                _ => own_method(self.program, module, ir.function_around(callee), callee)
                    .or_else(|| nested(ir, callee).map(|f| (module, f))),
            };
            depth > 0 && next.is_some_and(|(m, f)| self.differentiates(m, f, depth - 1))
        })
    }
}

/// The function that is defined around the call under the callee's name.
fn nested(ir: &Module, callee: ExprId) -> Option<FuncId> {
    let Expr::Var(Var::Enclosing { depth, slot }) = ir.expr(callee) else { return None };
    let owner = (0..depth).try_fold(ir.function_around(callee), |f, _| ir.function(f).parent)?;
    let name = ir.function(owner).slots.get(usize::from(slot))?;
    let n = ir.functions.iter().position(|f| f.parent == Some(owner) && f.name == *name)?;
    Some(FuncId(u32::try_from(n).ok()?))
}
