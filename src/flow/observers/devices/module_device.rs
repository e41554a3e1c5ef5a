//! `.device` of modules, which do not have it, and CPU tensors that are passed to collectives of NCCL.

use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{Expr, ExprId, FuncKind, Stmt, Var};
use crate::sym::Sym;

impl Interp<'_> {
    /// Reports `model.device` for an `nn.Module` without such an attribute. True if it is reported.
    pub(crate) fn check_module_device(&mut self, id: ObjId, e: ExprId) -> bool {
        let known = match self.obj(id).kind {
            ObjKind::ForeignModule(Some(_)) => true,
            ObjKind::List { module } => module,
            ObjKind::Module => self.obj(id).class.is_some_and(|k| self.defines_no_device(k)),
            _ => false,
        };
        // For `self.device`, a subclass or the code that made the object may have set the attribute.
        if !known || self.obj(id).outer.is_some() || self.in_module() || self.asked_whether() {
            return false;
        }
        // `DistributedDataParallel` has a `device` (torch/nn/parallel/distributed.py), and here it is the same object as its module.
        let wrapped =
            self.modules.wraps.get(&id).map_or(crate::flow::domain::diagram::FALSE, |wraps| wraps[1]);
        let plain = self.d.not(wrapped);
        let Some(bite) = self.bite(plain, false) else { return false };
        let place = self.place(e);
        self.emit(Kind::NoDevice, place, bite, Vec::new());
        true
    }

    fn defines_no_device(&self, key: crate::link::ClassKey) -> bool {
        let info = self.program.class(key);
        let sees = |name: &str| self.program.find_method(key, Sym::new(name)).is_some();
        let pure = info
            .externals
            .iter()
            .all(|&p| crate::torch::module(p).is_some() || p.as_str() == "torch.nn.Module");
        pure && !info.unknown_base
            && !info.externals.is_empty()
            && !sees("__getattr__")
            && !sees("__getattribute__")
            && info.mro.iter().all(|&k| !self.sets_device(k.module, key))
            && !self.sets_device(self.here().module, key)
            && !self.sets_device(self.entry, key)
    }

    /// Does the object's class set an attribute `device`?
    pub(crate) fn has_own_device(&self, id: crate::flow::domain::value::ObjId) -> bool {
        self.obj(id)
            .class
            .is_some_and(|key| self.program.class(key).mro.iter().any(|k| self.sets_device(k.module, key)))
    }

    /// Does the file set an attribute `device` on what may be an object of the class, directly or with a computed name?
    fn sets_device(&self, module: crate::link::ModIdx, key: crate::link::ClassKey) -> bool {
        let ir = &self.program.get(module).ir;
        // `self.device = …` belongs to the class around it.
        let of_another = |base: ExprId| {
            let function = ir.function(ir.function_around(base));
            let own = ir.expr(base) == Expr::Var(Var::Local(0)) && function.kind == FuncKind::Function;
            function.class.filter(|_| own).is_some_and(|class| {
                !self.program.class(key).mro.contains(&crate::link::ClassKey { module, class })
            })
        };
        let is_device = |t: ExprId| matches!(ir.expr(t), Expr::Attr { base, name } if name == self.known.device && !of_another(base));
        let sets = ir.stmts.iter().any(|s| match s {
            Stmt::Assign { targets, .. } => ir.list(*targets).iter().any(|&t| is_device(t)),
            Stmt::AnnAssign { target, .. } => is_device(*target),
            _ => false,
        });
        sets || ir.exprs.iter().any(|e| {
            matches!(e, Expr::Var(Var::Unbound(n)) if n.as_str() == "setattr")
                || matches!(e, Expr::Attr { name, .. } if name.as_str() == "__dict__")
        })
    }

    /// Does the function test whether the attribute exists, or catch the error that it does not?
    fn asked_whether(&self) -> bool {
        let ir = &self.linked().ir;
        let function = ir.function(self.here().func).span;
        let whole = self.here().func.0 == 0;
        self.here().tries.iter().any(|t| t.catches_missing)
            || ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
                (whole || function.contains(at))
                    && matches!(e, Expr::Var(Var::Unbound(n)) if matches!(n.as_str(), "hasattr" | "getattr"))
            })
    }

    /// A value is passed to a collective. Reports CPU tensors if the group uses NCCL, or if other code makes the group.
    pub(crate) fn check_collective(&mut self, v: Value, e: ExprId, what: &str) {
        match self.store.get(self.devices.nccl) {
            Value::Bool(nccl) => self.check_carried(v, e, what, nccl),
            // Some paths to this point have made a group.
            made @ Value::Choice(_) => {
                let nccl = self.each(made, &mut |_, v| match v {
                    Value::Bool(_) => v,
                    _ => Value::Bool(crate::flow::domain::diagram::FALSE),
                });
                if let Value::Bool(nccl) = nccl {
                    self.check_carried(v, e, what, nccl);
                }
            }
            _ if self.is_group_elsewhere() => {
                let before = self.events.len();
                self.check_carried(v, e, what, crate::flow::domain::diagram::TRUE);
                for pending in self.events.iter_mut().skip(before) {
                    if let Kind::CpuInCollective { elsewhere, .. } = &mut pending.event.kind {
                        *elsewhere = true;
                    }
                }
            }
            _ => {}
        }
    }

    /// Does other code make the group? That is so if this code neither makes it nor reads its back end.
    fn is_group_elsewhere(&self) -> bool {
        let ir = &self.linked().ir;
        let looks = |name: &Sym| name.as_str().contains("backend");
        self.devices.group_started.is_none() && !ir.attributes.iter().any(looks)
    }

    /// Reports CPU tensors that are passed to a collective, under the condition `nccl` that the group uses NCCL.
    pub(crate) fn check_carried(
        &mut self,
        v: Value,
        e: ExprId,
        what: &str,
        nccl: crate::flow::domain::diagram::Cond,
    ) {
        let mut parts = crate::flow::models::modules::submodules::Parts::default();
        self.parts_of(v, &mut parts, 0);
        for t in parts.tensors {
            let t = self.get_tensor(t);
            if !t.certain {
                continue;
            }
            for (leaf, d, origin) in self.device_leaves(t.device) {
                if d != Device::Cpu {
                    continue;
                }
                let here = self.d.where_leaf(t.device, &mut |p| p == leaf);
                let there = self.available(None);
                let bad = self.d.and(here, there);
                let bad = self.d.and(bad, nccl);
                let Some(bite) = self.bite(bad, false) else { continue };
                let place = self.place(e);
                let tensor = Box::new(self.operand(e, d, origin));
                let kind = Kind::CpuInCollective { what: what.to_owned(), tensor, elsewhere: false };
                self.emit(kind, place, bite, Vec::new());
                return;
            }
        }
    }

    /// From here on, the default group uses this back end.
    pub(crate) fn remember_backend(&mut self, v: Value, at: ExprId) {
        let cond = self.chosen_nccl(v, at);
        if cond != crate::flow::domain::diagram::FALSE {
            let now = self.d.and(self.path, cond);
            self.store.set(self.devices.nccl, Value::Bool(now));
        }
    }
}
