//! Files that a call before has written: what a run reads back goes to where it was.

use super::{Load, Writers};
use crate::flow::file_names::assigned;
use crate::flow::site::{Site, argument, given_for};
use crate::ir::{ArgKind, CallId, Expr, ExprId, FuncId, Module, Var};
use crate::sym::Sym;

impl Writers<'_> {
    /// `self.save(best)`, then `self.save(last, best)`, which looks into the first: does every call that says which file is loaded
    /// come after one, in the same function, that has saved it?
    pub(super) fn is_read_back(&self, load: &Load) -> bool {
        let (m, f) = (load.site.module, load.site.func);
        let ir = &self.program.get(m).ir;
        let Some(at) = lasting_parameter(ir, f, load.path) else { return false };
        let function = ir.function(f);
        let optional = function.params[at].default.is_some_and(|d| ir.expr(d) == Expr::None);
        let mut read = false;
        for &(caller, call) in self.callers.get(&(m, f)).into_iter().flatten() {
            let ir = &self.program.get(caller.module).ir;
            let open = |kind| matches!(kind, ArgKind::Star | ArgKind::DoubleStar);
            if ir.call(call).args.iter().any(|a| open(a.kind)) {
                return false;
            }
            let file = given_for(function, at, ir, ir.call(call)).filter(|&e| ir.expr(e) != Expr::None);
            match file {
                Some(file) if self.is_saved_before(caller, call, file) => read = true,
                None if optional => {}
                _ => return false,
            }
        }
        read
    }

    /// Has the function called something before that saves to the same file?
    fn is_saved_before(&self, caller: Site<'_>, until: CallId, file: ExprId) -> bool {
        let ir = &self.program.get(caller.module).ir;
        let starts = |call: CallId| ir.span(ir.call(call).func).start;
        self.saves.iter().any(|&(site, save)| {
            let there = &self.program.get(site.module).ir;
            let path = argument(there.call(save), 1, Sym::new("f"));
            let Some(at) = path.and_then(|e| lasting_parameter(there, site.func, e)) else { return false };
            let saves = |&(by, call): &(Site<'_>, CallId)| {
                (by.module, by.func) == (caller.module, caller.func)
                    && starts(call) < starts(until)
                    && given_for(there.function(site.func), at, ir, ir.call(call))
                        .is_some_and(|e| ir.names_the_same(e, file))
            };
            self.callers.get(&(site.module, site.func)).is_some_and(|calls| calls.iter().any(saves))
        })
    }
}

/// The position of the parameter that the expression is, if the function gives it no other value.
fn lasting_parameter(ir: &Module, f: FuncId, e: ExprId) -> Option<usize> {
    let Expr::Var(var @ Var::Local(slot)) = ir.expr(e) else { return None };
    let at = ir.function(f).params.iter().position(|p| p.slot == slot)?;
    (f != FuncId(0) && assigned(ir, f, var).is_empty()).then_some(at)
}
