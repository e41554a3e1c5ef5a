//! Forward hooks: functions of the project that a module calls with what it was given and what it gives.

use super::super::diagram::FALSE;
use super::super::value::{ObjId, Value};
use super::args::Args;
use super::{Cond, Interp, ObjKind};
use crate::ir::{Expr, ExprId};
use crate::sym::Sym;

/// More hooks than these are not followed.
const MAX_HOOKS: usize = 16;

/// The field of a handle that says which hook it takes away.
const NUMBER: &str = " hook";

/// A hook.
pub(super) struct Hook {
    /// The module whose calls call it: an object, or what stands for one of which nothing else is known.
    on: Value,
    /// It is one of the module's parts that has the hook, nobody knows which.
    inside: bool,
    /// It comes before the module.
    before: bool,
    function: Value,
    /// When it was registered.
    path: Cond,
    removed: bool,
    /// What `remove()` is called on.
    pub(super) handle: ObjId,
}

impl Interp<'_> {
    /// `module.register_forward_hook(f)`: gives the handle. `None` for what may be anything.
    pub(super) fn add_hook(&mut self, on: Value, inside: bool, name: &str, args: &Args) -> Option<Value> {
        let &[(function, _)] = args.positional.as_slice() else { return None };
        let followed = match function {
            Value::Closure(_) => true,
            Value::Bound(b) => self.t.bounds.get(b.0).function.is_some(),
            _ => false,
        };
        let hooks = &mut self.watch.hooks;
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
        self.watch.hooks.push(Hook { on, inside, before, function, path, removed, handle });
        Some(Value::Object(handle))
    }

    /// `handle.remove()`
    pub(super) fn remove_hook(&mut self, handle: ObjId) {
        if let Value::Int(n) = self.get_field(handle, Sym::new(NUMBER))
            && let Some(hook) = usize::try_from(n).ok().and_then(|n| self.watch.hooks.get_mut(n))
        {
            hook.removed = true;
        }
    }

    /// `model.layer4.register_forward_hook(f)`, of a part of a model whose code is not in sight.
    pub(super) fn add_inner_hook(&mut self, name: &str, args: &Args, e: ExprId) -> Option<Value> {
        let ir = &self.linked().ir;
        let Expr::Call(call) = ir.expr(e) else { return None };
        let mut at = ir.call(call).func;
        let mut prefixes = Vec::new();
        while let Expr::Attr { base, .. } | Expr::Index { base, .. } = ir.expr(at) {
            prefixes.push(base);
            at = base;
        }
        // The first is the part itself.
        for &whole in prefixes.iter().skip(1).rev() {
            self.muted += 1;
            let v = self.eval(whole);
            self.muted -= 1;
            if self.stands_for_model(v) {
                return self.add_hook(v, true, name, args);
            }
        }
        None
    }

    fn stands_for_model(&self, v: Value) -> bool {
        match v {
            Value::Object(id) => self.obj(id).kind == ObjKind::ForeignModule(None),
            Value::Tensor(t) => !self.get_tensor(t).certain,
            _ => false,
        }
    }

    fn hooks_on(&mut self, on: Value, before: bool) -> Vec<(Value, bool)> {
        let of_it: Vec<(Value, bool, Cond)> = self
            .watch
            .hooks
            .iter()
            .filter(|h| h.on == on && h.before == before && !h.removed)
            .map(|h| (h.function, h.inside, h.path))
            .collect();
        of_it.into_iter().filter(|h| self.d.implies(self.path, h.2)).map(|h| (h.0, h.1)).collect()
    }

    /// Has the module hooks that are followed?
    pub(super) fn has_hooks(&self, on: Value) -> bool {
        !self.watch.hooks.is_empty() && self.watch.hooks.iter().any(|h| h.on == on && !h.removed)
    }

    /// The arguments, as the hooks before the module leave them.
    pub(super) fn hooks_before(&mut self, on: Value, args: &Args, e: ExprId) -> Args {
        let mut args = args.clone();
        for (hook, inside) in self.hooks_on(on, true) {
            let inputs: Vec<Value> = args.positional.iter().map(|&(v, _)| v).collect();
            let inputs = self.seq(&inputs);
            let (module, inputs) = if inside { (Value::Unknown, Value::Unknown) } else { (on, inputs) };
            let given = Args { positional: vec![(module, e), (inputs, e)], ..Args::default() };
            match self.call_value(hook, &given, e) {
                _ if inside => {}
                Value::None | Value::Absent => {}
                v @ Value::Tensor(_) => args.positional = vec![(v, e)],
                Value::Seq(s) => args.positional = self.seq_items(s).iter().map(|&v| (v, e)).collect(),
                _ => args.positional = args.positional.iter().map(|&(_, at)| (Value::Unknown, at)).collect(),
            }
        }
        args
    }

    /// The result, as the hooks after the module leave it.
    pub(super) fn hooks_after(&mut self, on: Value, args: &Args, out: Value, e: ExprId) -> Value {
        let mut out = out;
        for (hook, inside) in self.hooks_on(on, false) {
            if self.path == FALSE {
                return out;
            }
            let inputs: Vec<Value> = args.positional.iter().map(|&(v, _)| v).collect();
            let inputs = self.seq(&inputs);
            let (module, inputs, result) =
                if inside { (Value::Unknown, Value::Unknown, self.inside_of(on)) } else { (on, inputs, out) };
            let given = Args { positional: vec![(module, e), (inputs, e), (result, e)], ..Args::default() };
            let v = self.call_value(hook, &given, e);
            if !inside {
                out = match v {
                    Value::None | Value::Absent => out,
                    Value::Unknown => self.result_of(e),
                    v => self.each(v, &mut |_, v| if v == Value::None { out } else { v }),
                };
            }
        }
        out
    }

    /// What a part of a model gives: it is where the model is.
    fn inside_of(&mut self, model: Value) -> Value {
        match model {
            Value::Object(id) => {
                let device = self.module_device(id, 0);
                self.possible_tensor(device)
            }
            v => v,
        }
    }
}
