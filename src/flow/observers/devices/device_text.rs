//! Whether a value is a `torch.device` or a string that names one.

use crate::flow::domain::value::{Device, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::observers::devices::spelling::takes_text;
use crate::ir::{Expr, ExprId, IfElse, Stmt, Var};
use crate::link::Resolved;

impl Interp<'_> {
    /// Is the value a `torch.device` in every world?
    pub(crate) fn is_known_device(&self, v: Value) -> bool {
        let Value::Device(d) = v else { return false };
        let known = |d| {
            matches!(d, Device::Cpu | Device::Cuda(_) | Device::CudaSome | Device::Meta | Device::Other(_))
        };
        !self.is_text(d) && self.device_leaves(d).into_iter().all(|(_, d, _)| known(d))
    }

    /// May the value be a string, here or for another caller?
    pub(crate) fn may_be_text(&self, v: Value, at: ExprId) -> bool {
        let text = |v: Value| match v {
            Value::Str(..) | Value::Host(crate::flow::domain::value::Host::Text) => true,
            Value::Device(d) => self.is_text(d),
            Value::Outer(o) => match self.t.get_outer(o).key {
                OuterKey::Param { module, func, index } => {
                    let ir = &self.program.get(module).ir;
                    ir.function(func).params.get(usize::from(index)).is_some_and(|p| takes_text(ir, p))
                }
                _ => matches!(self.t.get_outer(o).default, Some(Value::Str(..))),
            },
            _ => false,
        };
        self.values_of(v).into_iter().any(text) || self.is_declared_text(at)
    }

    /// Does a parameter with the name of the expression take strings? It may belong to the function or to the object's constructor.
    fn is_declared_text(&self, at: ExprId) -> bool {
        let ir = &self.linked().ir;
        match ir.expr(at) {
            Expr::Var(var @ Var::Local(slot)) => {
                let param = ir.function(self.here().func).params.iter().find(|p| p.slot == slot);
                param.is_some_and(|p| takes_text(ir, p) || self.is_one_of_several(var))
            }
            Expr::Attr { name, .. } => self.here().class.is_some_and(|class| {
                self.program.find_method(class, self.known.init).is_some_and(|(m, f)| {
                    let ir = &self.program.get(m).ir;
                    ir.function(f).params.iter().any(|p| p.name == name && takes_text(ir, p))
                })
            }),
            _ => false,
        }
    }

    /// Does the function also compare the variable with a `torch.device`, or with a string that names no device?
    fn is_one_of_several(&self, var: Var) -> bool {
        let ir = &self.linked().ir;
        let exprs = &ir.function(self.here().func).exprs;
        let other = |e: ExprId| match ir.expr(e) {
            Expr::Str(s) => crate::flow::models::devices::from_values::parse_device(s.as_str()).is_none(),
            _ => self.is_device_call(e),
        };
        (exprs.start..exprs.end).map(ExprId).any(|e| match ir.expr(e) {
            Expr::Compare { left, right, .. } => {
                ir.expr(left) == Expr::Var(var) && other(right)
                    || ir.expr(right) == Expr::Var(var) && other(left)
            }
            _ => false,
        })
    }

    /// Is the expression `torch.device("cuda")`?
    pub(crate) fn is_bare_cuda(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Call(c) = ir.expr(e) else { return false };
        let call = ir.call(c);
        self.is_device_call(e)
            && matches!(call.args, [a] if matches!(ir.expr(a.value), Expr::Str(s) if s.as_str() == "cuda"))
    }

    fn is_device_call(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        match ir.expr(e) {
            Expr::Call(c) => matches!(
                self.program.resolve_expr(self.here().module, ir.call(c).func),
                Some(Resolved::External(p))
                    if matches!(p.as_str(), "torch.device" | "torch.accelerator.current_accelerator")
            ),
            Expr::IfElse(id) => {
                let IfElse { then, orelse, .. } = ir.if_else(id);
                self.is_device_call(then) && self.is_device_call(orelse)
            }
            _ => false,
        }
    }

    /// Is the expression certainly a `torch.device`? With `any` false, only the device of a tensor counts.
    pub(crate) fn is_device_object(&mut self, e: ExprId, any: bool) -> bool {
        match self.linked().ir.expr(e) {
            Expr::Attr { base, name } if name == self.known.device => {
                if self.is_device_of_parameter(e) {
                    return true;
                }
                self.run.muted += 1;
                let v = self.eval(base);
                self.run.muted -= 1;
                match v {
                    Value::Tensor(t) => self.get_tensor(t).certain,
                    Value::Outer(o) => self.t.get_outer(o).tensor,
                    _ => false,
                }
            }
            Expr::Call(_) => any && self.is_device_call(e),
            Expr::Var(var) => any && !self.is_parameter(var) && self.holds_device_object(var),
            _ => false,
        }
    }

    pub(crate) fn is_parameter(&self, var: Var) -> bool {
        let function = self.linked().ir.function(self.here().func);
        matches!(var, Var::Local(slot) if function.params.iter().any(|p| p.slot == slot))
    }

    /// Is it the argument of this call, where other callers may pass another device?
    pub(crate) fn is_given_by_caller(&self, e: ExprId) -> bool {
        matches!(self.linked().ir.expr(e), Expr::Var(var) if self.is_parameter(var))
            && self.here().site.is_some()
    }

    /// Are all values that the function assigns to the variable a `torch.device(…)`?
    fn holds_device_object(&self, var: Var) -> bool {
        let ir = &self.linked().ir;
        let function = ir.function(self.here().func);
        let module_level = self.here().func.0 == 0;
        let mut any = false;
        for (n, s) in ir.stmts.iter().enumerate() {
            let at = ir.stmt_span(crate::ir::StmtId(u32::try_from(n).unwrap_or(u32::MAX)));
            let Stmt::Assign { targets, value } = s else { continue };
            if !module_level && !function.span.contains(at) {
                continue;
            }
            let inner = ir.functions.iter().any(|f| {
                f.parent.is_some()
                    && f.span != function.span
                    && f.span.contains(at)
                    && f.span.start >= function.span.start
            });
            if inner || !ir.list(*targets).iter().any(|&t| ir.expr(t) == Expr::Var(var)) {
                continue;
            }
            let device = match ir.expr(*value) {
                // `device or torch.device("cpu")`
                Expr::Or(list) => {
                    ir.list(list).iter().all(|&x| ir.expr(x) == Expr::Var(var) || self.is_device_call(x))
                }
                _ => self.is_device_call(*value),
            };
            if !device {
                return false;
            }
            any = true;
        }
        any && matches!(var, Var::Local(_))
    }
}
