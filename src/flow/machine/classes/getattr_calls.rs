//! Calls of methods by a name in a variable: `getattr(x, name)()` is `x.cuda()` if the name is `"cuda"`.

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::ir::{ArgKind, Call, Expr, ExprId};
use crate::sym::Sym;

impl Interp<'_> {
    /// The receiver and name of the called method, written as an attribute or as `getattr` with a known name.
    pub(crate) fn method_called(&mut self, func: ExprId) -> Option<(ExprId, Sym)> {
        match self.linked().ir.expr(func) {
            Expr::Attr { base, name } => Some((base, name)),
            Expr::Call(id) => {
                let ir = &self.linked().ir;
                let (base, name) = self.attribute_asked_for(ir.call(id))?;
                self.run.muted += 1;
                let name = self.eval(name);
                self.run.muted -= 1;
                match name {
                    Value::Str(name, _) => Some((base, name)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The object and the name of `getattr(object, name)` without a default.
    pub(crate) fn attribute_asked_for(&self, call: Call<'_>) -> Option<(ExprId, ExprId)> {
        let [object, name] = call.args else { return None };
        let plain = object.kind == ArgKind::Positional && name.kind == ArgKind::Positional;
        (plain && self.linked().ir.is_builtin(call.func, "getattr")).then_some((object.value, name.value))
    }
}
