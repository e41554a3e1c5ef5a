//! Forward hooks: functions of the project that a module calls with its arguments and its result.

use crate::flow::domain::diagram::Cond;
use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::sym::Sym;

/// The maximum number of hooks that the engine follows.
const MAX_HOOKS: usize = 16;

/// The field of a handle that has the number of its hook.
const NUMBER: &str = " hook";

/// A registered forward hook.
pub(crate) struct Hook {
    /// The module that calls the hook.
    on: Value,
    /// Whether the module calls it before its `forward`.
    before: bool,
    function: Value,
    /// The path condition of its registration.
    path: Cond,
    removed: bool,
    /// The handle that `register_forward_hook` returned. `handle.remove()` removes the hook.
    pub(crate) handle: ObjId,
}

impl Interp<'_> {
    /// `module.register_forward_hook(f)`: returns the handle. `None` if the engine cannot follow the hook.
    pub(crate) fn add_hook(&mut self, on: Value, name: &str, args: &Args) -> Option<Value> {
        let &[(function, _)] = args.positional.as_slice() else { return None };
        let followed = match function {
            Value::Closure(_) => true,
            Value::Bound(b) => self.t.bounds.get(b.0).function.is_some(),
            _ => false,
        };
        let hooks = &mut self.modules.hooks;
        if !followed || !args.keywords.is_empty() || args.open || hooks.len() >= MAX_HOOKS {
            return None;
        }
        let before = name == "register_forward_pre_hook";
        if let Some(known) = hooks.iter().find(|h| h.on == on && h.function == function && !h.removed) {
            return Some(Value::Object(known.handle));
        }
        let number = i64::try_from(hooks.len()).unwrap_or(0);
        let handle = self.object(ObjKind::Inert, None, Value::Absent);
        self.set_field(handle, Sym::new(NUMBER), Value::Int(number));
        let (path, removed) = (self.path, false);
        self.modules.hooks.push(Hook { on, before, function, path, removed, handle });
        Some(Value::Object(handle))
    }

    /// `handle.remove()`
    pub(crate) fn remove_hook(&mut self, handle: ObjId) {
        if let Value::Int(n) = self.get_field(handle, Sym::new(NUMBER))
            && let Some(hook) = usize::try_from(n).ok().and_then(|n| self.modules.hooks.get_mut(n))
        {
            hook.removed = true;
        }
    }

    fn hooks_on(&mut self, on: Value, before: bool) -> Vec<Value> {
        let of_it: Vec<(Value, Cond)> = self
            .modules
            .hooks
            .iter()
            .filter(|h| h.on == on && h.before == before && !h.removed)
            .map(|h| (h.function, h.path))
            .collect();
        of_it.into_iter().filter(|h| self.d.implies(self.path, h.1)).map(|h| h.0).collect()
    }

    /// Does the module have hooks that the engine follows?
    pub(crate) fn has_hooks(&self, on: Value) -> bool {
        !self.modules.hooks.is_empty() && self.modules.hooks.iter().any(|h| h.on == on && !h.removed)
    }

    /// The module's arguments, after the hooks before the call.
    pub(crate) fn hooks_before(&mut self, on: Value, args: &Args, e: ExprId) -> Args {
        let mut args = args.clone();
        for hook in self.hooks_on(on, true) {
            let inputs: Vec<Value> = args.positional.iter().map(|&(v, _)| v).collect();
            let inputs = self.seq(&inputs);
            let given = Args { positional: vec![(on, e), (inputs, e)], ..Args::default() };
            match self.call_value(hook, &given, e) {
                Value::None | Value::Absent => {}
                v @ Value::Tensor(_) => args.positional = vec![(v, e)],
                Value::Seq(s) => args.positional = self.seq_items(s).iter().map(|&v| (v, e)).collect(),
                _ => args.positional = args.positional.iter().map(|&(_, at)| (Value::Unknown, at)).collect(),
            }
        }
        args
    }

    /// The module's result, after the hooks behind the call.
    pub(crate) fn hooks_after(&mut self, on: Value, args: &Args, out: Value, e: ExprId) -> Value {
        let mut out = out;
        for hook in self.hooks_on(on, false) {
            if self.path == FALSE {
                return out;
            }
            let inputs: Vec<Value> = args.positional.iter().map(|&(v, _)| v).collect();
            let inputs = self.seq(&inputs);
            let given = Args { positional: vec![(on, e), (inputs, e), (out, e)], ..Args::default() };
            out = match self.call_value(hook, &given, e) {
                Value::None | Value::Absent => out,
                Value::Unknown => self.result_of(e),
                v => self.each(v, &mut |_, v| if v == Value::None { out } else { v }),
            };
        }
        out
    }
}
