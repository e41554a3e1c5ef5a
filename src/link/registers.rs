//! Classes that behave like modules because they register state.

use rustc_hash::FxHashSet;

use super::{ClassKey, Linked, ModIdx, Program, Resolved};
use crate::ir::{Class, ClassId, Expr, ExprId, FuncId, Stmt, Var};

/// Methods by which a module registers state.
const REGISTERS: &[&str] = &["register_buffer", "register_parameter", "register_module", "add_module"];

impl Program {
    /// Does the class register buffers or parameters of its own after it has called the constructor of its base?
    pub fn registers_state(&self, key: ClassKey) -> bool {
        self.class(key).mro.iter().any(|&ClassKey { module, class }| {
            let linked = self.get(module);
            linked.registering.get_or_init(|| self.registering(module)).contains(&class)
        })
    }

    fn registering(&self, module: ModIdx) -> FxHashSet<ClassId> {
        let linked = self.get(module);
        let all = linked.ir.classes.iter().enumerate();
        let some = all.filter(|(_, class)| {
            let init = class.methods.iter().find(|(name, _)| name.as_str() == "__init__");
            init.is_some_and(|&(_, f)| calls_base(linked, f)) && self.has_state(module, class)
        });
        some.map(|(n, _)| ClassId(u32::try_from(n).unwrap_or(u32::MAX))).collect()
    }

    /// `self.register_buffer("mean", …)`, `self.weight = nn.Parameter(…)`
    fn has_state(&self, module: ModIdx, class: &Class) -> bool {
        let ir = &self.get(module).ir;
        let parameter = |e: ExprId| {
            let Expr::Call(id) = ir.expr(e) else { return false };
            matches!(self.resolve_expr(module, ir.call(id).func), Some(Resolved::External(path))
                if matches!(path.as_str(), "torch.nn.Parameter" | "torch.nn.parameter.Parameter"))
        };
        class.methods.iter().any(|&(_, f)| {
            let function = ir.function(f);
            let Some(receiver) = function.params.first() else { return false };
            let own = |e: ExprId| ir.expr(e) == Expr::Var(Var::Local(receiver.slot));
            let registers = ir.exprs[ir.exprs_of(function)].iter().any(|e| {
                let Expr::Call(id) = *e else { return false };
                matches!(ir.expr(ir.call(id).func), Expr::Attr { base, name }
                    if own(base) && REGISTERS.contains(&name.as_str()))
            });
            let keeps = |s: &Stmt| match *s {
                Stmt::Assign { targets, value } => {
                    parameter(value)
                        && ir
                            .list(targets)
                            .iter()
                            .any(|&t| matches!(ir.expr(t), Expr::Attr { base, .. } if own(base)))
                }
                _ => false,
            };
            registers || ir.stmts[ir.stmts_of(function)].iter().any(keeps)
        })
    }
}

/// `super().__init__()`
fn calls_base(linked: &Linked, init: FuncId) -> bool {
    let ir = &linked.ir;
    ir.exprs[ir.exprs_of(ir.function(init))].iter().any(|e| {
        let Expr::Call(id) = *e else { return false };
        let Expr::Attr { base, name } = ir.expr(ir.call(id).func) else { return false };
        let Expr::Call(base) = ir.expr(base) else { return false };
        name.as_str() == "__init__" && ir.is_builtin(ir.call(base).func, "super")
    })
}
