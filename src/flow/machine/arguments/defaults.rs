//! Defaults of parameters: evaluated once, at the definition of the function, and the same value at every call.

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{Expr, ExprId, FuncId};
use crate::link::ModIdx;

impl Interp<'_> {
    /// Handles `lambda t, d=d: t.to(d)` in a loop: the default is the variable's value in this round. The engine has
    /// one function for all rounds, so a default that differs between rounds is unknown.
    pub(crate) fn captures_defaults(&mut self, func: FuncId) {
        if self.here().loops.is_empty() {
            return;
        }
        let module = self.here().module;
        let ir = &self.linked().ir;
        for param in &ir.function(func).params {
            let Some(default) = param.default.filter(|&e| matches!(ir.expr(e), Expr::Var(_))) else {
                continue;
            };
            let v = self.eval(default);
            let known = self.calls.captured.entry((module, func, param.name)).or_insert(v);
            if *known != v {
                *known = Value::Unknown;
            }
        }
    }

    /// Handles `def add(x, seen=[])`: the default contains what earlier calls have added.
    pub(crate) fn is_kept_between_calls(&mut self, module: ModIdx, default: ExprId, v: Value) {
        let empty = match self.program.get(module).ir.expr(default) {
            Expr::List(items) | Expr::Dict(items) => items.len == 0,
            _ => false,
        };
        if let (true, Value::Object(id)) = (empty, v)
            && matches!(self.obj(id).kind, ObjKind::List { .. } | ObjKind::Dict { .. })
        {
            let content = self.many(Value::Unknown);
            self.set_own(id, content);
        }
    }
}
