//! A `device=None` that who calls leaves out: what is made there is on the default device, then, whatever else the function is given.

use super::super::value::{OuterKey, Reason, Value};
use super::{Dd, Interp};
use crate::ir::{ArgKind, Expr, ExprId, Function, Module};

impl Interp<'_> {
    /// The place of what is made on `device`, by the value that is given for it: in the function that is interpreted for itself
    /// that may be its own parameter, and nothing.
    pub(super) fn unless_left_out(&mut self, given: Value, device: Dd, at: ExprId, e: ExprId) -> Dd {
        if !self.may_be_left_out(given) {
            return device;
        }
        let left_out = self.equal(given, Value::None, at);
        self.d.support(left_out, &mut self.watch.devices_left_out);
        let default = self.default_device_at(e, Reason::Default);
        self.ite_device(left_out, default, device)
    }

    /// What a constructor is given is its object's, and who calls that follows it.
    fn may_be_left_out(&self, given: Value) -> bool {
        let Value::Outer(o) = given else { return false };
        let OuterKey::Param { module, func, index } = self.t.get_outer(o).key else { return false };
        let frame = self.here();
        let own = frame.site.is_none() && (frame.module, frame.func) == (module, func);
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        let none = |e: ExprId| ir.expr(e) == Expr::None;
        own && self.symbolic
            && function.name != self.known.init
            && function.params.get(usize::from(index)).and_then(|p| p.default).is_some_and(none)
            && !is_given_by_name(ir, function, usize::from(index))
    }
}

/// Does a call of that name in the file give something for the parameter? Then so do those who know what the function is for.
fn is_given_by_name(ir: &Module, function: &Function, index: usize) -> bool {
    let Some(wanted) = function.params.get(index) else { return false };
    let bound = usize::from(function.class.is_some());
    ir.calls().any(|call| {
        let named = ir.last_name(call.func) == Some(function.name);
        let before = call.args.iter().filter(|a| a.kind == ArgKind::Positional).count();
        named
            && (before + bound > index
                || call.args.iter().any(|a| match a.kind {
                    ArgKind::Keyword(name) => name == wanted.name,
                    ArgKind::Positional => false,
                    ArgKind::Star | ArgKind::DoubleStar => true,
                }))
    })
}
