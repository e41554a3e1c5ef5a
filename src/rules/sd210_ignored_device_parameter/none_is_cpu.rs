//! SD210 ignored-device-parameter: `device=None` of a module, by which PyTorch makes its weights on the CPU.

use crate::flow::is_module_class;
use crate::ir::{ArgKind, Expr, ExprId, FuncId, Function, Param, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::rules::shared::file::File;
use crate::sym::Sym;

impl File<'_> {
    /// Is `None` the CPU for this parameter of a module's constructor, and is it asked for in another module's? It is if the
    /// constructor never looks at it, but hands it on by its name, to PyTorch as well. Then the part is not where the whole is.
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

    /// The constructor of a module.
    fn makes_a_module(&self, module: ModIdx, function: &Function) -> bool {
        let of_module = |class| is_module_class(self.cx.program, ClassKey { module, class });
        function.name == Sym::new("__init__") && function.class.is_some_and(of_module)
    }
}
