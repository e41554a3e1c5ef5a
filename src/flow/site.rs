//! Places in functions of a project, and the calls that lead to these functions.

use rustc_hash::FxHashMap;

use crate::ir::{ArgKind, Call, CallId, ExprId, FuncId, Var};
use crate::link::{ModIdx, Program};
use crate::sym::Sym;

/// The function of a project that an expression is in, and the call that led to it, if only that one is looked at.
#[derive(Clone, Copy)]
pub(super) struct Site<'s> {
    pub(super) module: ModIdx,
    pub(super) func: FuncId,
    pub(super) via: Option<(&'s Site<'s>, CallId)>,
}

impl<'s> Site<'s> {
    /// Whoever calls the function.
    pub(super) fn of(module: ModIdx, func: FuncId) -> Self {
        Self { module, func, via: None }
    }

    /// What the call gives for the parameter that the variable is.
    pub(super) fn argument(&self, program: &Program, var: Var) -> Option<(Site<'s>, ExprId)> {
        let (caller, call) = self.via?;
        let Var::Local(slot) = var else { return None };
        let params = &program.get(self.module).ir.function(self.func).params;
        let at = params.iter().position(|p| p.slot == slot)?;
        let ir = &program.get(caller.module).ir;
        Some((*caller, argument(ir.call(call), at, params[at].name)?))
    }
}

/// The argument for a parameter, by its position and name.
pub(super) fn argument(call: &Call, at: usize, name: Sym) -> Option<ExprId> {
    let keyword = call.args.iter().find(|a| a.kind == ArgKind::Keyword(name));
    let spread = call.args.iter().take(at + 1).any(|a| a.kind == ArgKind::Star);
    let positional = || call.args.get(at).filter(|a| a.kind == ArgKind::Positional && !spread);
    keyword.or_else(positional).map(|a| a.value)
}

/// The calls of each function of the project.
pub(super) type Callers = FxHashMap<(ModIdx, FuncId), Vec<(Site<'static>, CallId)>>;

/// Calls of one function that are looked at.
pub(super) const MAX_CALLERS: usize = 16;
