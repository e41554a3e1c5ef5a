//! `self.bias = self.bias.cuda()`: the program replaces a registered parameter by a copy.
//!
//! Under the name of a parameter, `nn.Module` accepts parameters only, and otherwise raises (torch/nn/modules/module.py, `__setattr__`).
//! If the parameter is already on that device, `.cuda()` returns it unchanged and the line does nothing. So the line works on a machine
//! without a GPU, and after an earlier move of the module.

use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, ObjId, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{Expr, ExprId, Stmt};
use crate::sym::Sym;

impl Interp<'_> {
    /// `module.name = value`, before the assignment. True if this reports it.
    pub(crate) fn check_parameter_replaced(
        &mut self,
        id: ObjId,
        name: Sym,
        value: Value,
        at: ExprId,
    ) -> bool {
        let (ObjKind::Module, Value::Tensor(new)) = (self.obj(id).kind, value) else { return false };
        let new = self.get_tensor(new);
        if new.role.registered() || !new.certain || self.modules.unseen.contains(&(id, name)) {
            return false;
        }
        let parameter = |t: &Tensor| t.role == Role::Parameter && t.certain;
        let held = self.values_of(self.get_field(id, name)).into_iter().find_map(|v| match v {
            Value::Tensor(t) => Some(self.get_tensor(t)).filter(parameter),
            _ => None,
        });
        let Some(held) = held.filter(|_| self.moves_what_it_replaces(at)) else { return false };
        for (leaf, device, origin) in self.device_leaves(new.device) {
            let elsewhere = match device {
                Device::Cuda(_) | Device::CudaSome | Device::Other(_) | Device::Named(_) => self
                    .device_leaves(held.device)
                    .iter()
                    .all(|&(_, d, _)| matches!(d, Device::Cpu | Device::Of(_))),
                _ => false,
            };
            let moved = self.chain(origin).first().filter(|s| s.reason == Reason::Moved).map(|s| s.place);
            let (true, Some(moved)) = (elsewhere, moved) else { continue };
            let here = self.d.where_leaf(new.device, &mut |p| p == leaf);
            let there = self.accelerator_condition(device, Device::Cpu);
            let bad = self.d.and(here, there);
            let Some(bite) = self.bite(bad, false) else { continue };
            let used = self.place(at);
            self.emit(Kind::NonLeaf { what: REPLACED.to_owned(), used }, moved, bite, Vec::new());
            return true;
        }
        false
    }

    /// Is the assignment to this target of the form `self.bias = self.bias.to(device)`?
    fn moves_what_it_replaces(&self, target: ExprId) -> bool {
        let ir = &self.linked().ir;
        ir.stmts.iter().any(|s| match *s {
            Stmt::Assign { targets, value } if ir.list(targets).contains(&target) => {
                let Expr::Call(call) = ir.expr(value) else { return false };
                let Expr::Attr { base, name } = ir.expr(ir.call(call).func) else { return false };
                matches!(name.as_str(), "to" | "cuda" | "xpu" | "npu" | "mps" | "hpu")
                    && ir.names_the_same(base, target)
            }
            _ => false,
        })
    }
}

/// The name of the use in the event.
const REPLACED: &str = "the parameter's name";
