//! SD210 ignored-device-parameter: a module whose `device=None` makes PyTorch create the weights on the CPU.

use crate::flow::is_module_class;
use crate::ir::{ArgKind, Expr, ExprId, FuncId, Function, Param, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::rules::shared::file::File;
use crate::sym::Sym;

impl File<'_> {
    /// Does `None` mean the CPU for this parameter of a module's constructor, in a call by another module's constructor? It does if the
    /// constructor only passes the parameter on by its name, also to PyTorch. Then the part and the whole are on different devices.
    pub(super) fn none_is_the_cpu(&self, caller: &Function, (m, f): (ModIdx, FuncId), param: &Param) -> bool {
        let program = self.cx.program;
        let ir = &program.get(m).ir;
        let function = ir.function(f);
        let written = param.default.is_some_and(|d| ir.expr(d) == Expr::None);
        if !written || !self.makes_a_module(self.module, caller) || !self.makes_a_module(m, function) {
            return false;
        }
        let body = function.exprs.start..function.exprs.end;
        let is_it = |e: ExprId| matches!(ir.expr(e), Expr::Var(Var::Local(s) | Var::Enclosing { slot: s, .. }) if s == param.slot);
        let (mut handed, mut placed) = (Vec::new(), false);
        for call in body.clone().filter_map(|n| match ir.expr(ExprId(n)) {
            Expr::Call(id) => Some(ir.call(id)),
            _ => None,
        }) {
            for arg in call.args.iter().filter(|a| a.kind == ArgKind::Keyword(param.name) && is_it(a.value)) {
                handed.push(arg.value);
                placed |= matches!(program.resolve_expr(m, call.func),
                    Some(Resolved::External(path)) if path.as_str().starts_with("torch."));
            }
        }
        placed && body.map(ExprId).all(|e| !is_it(e) || handed.contains(&e))
    }

    /// Is it the constructor of a module?
    fn makes_a_module(&self, module: ModIdx, function: &Function) -> bool {
        let of_module = |class| is_module_class(self.cx.program, ClassKey { module, class });
        function.name == Sym::new("__init__") && function.class.is_some_and(of_module)
    }
}
