//! SD202 module-input-mismatch: a copy of a model is made before the model is moved, and does not move with it.
//!
//! `self.average = deepcopy(self.model)` in a constructor, `self.model.to(self.device)` in another method, and then an average over
//! `zip(self.model.parameters(), self.average.parameters())`: the copy stays on the model's first device.

use super::CODE;
use crate::finding::{Finding, Label};
use crate::flow::is_module_class;
use crate::ir::{ArgKind, Call, Class, Expr, ExprId, FuncId, Function, Stmt, Var};
use crate::link::Resolved;
use crate::rules::check::Context;
use crate::rules::shared::device_words::is_device_name;
use crate::rules::shared::file::{File, is_self};
use crate::rules::shared::naming::is_short;
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::words::Words;
use crate::world::World;

static BRINGS: Words = Words::of("may bring weights together");

/// SD202 module-input-mismatch, about averaged weights
pub(super) fn left(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = File::of(cx) else { return Vec::new() };
    if !file.ir.has_attribute(Sym::new("parameters")) {
        return Vec::new();
    }
    // A module moves with all its submodules, so a copy in it moves too.
    let plain = file.classes().filter(|&(key, _)| !is_module_class(cx.program, key));
    plain.filter_map(|(_, class)| file.copy_left(class)).collect()
}

impl File<'_> {
    fn copy_left(&self, class: &Class) -> Option<Finding> {
        let &(_, init) = class.methods.iter().rev().find(|(name, _)| name.as_str() == "__init__")?;
        let (copy, model, made) = self.copied(self.ir.function(init))?;
        // A copy of a moved model is on the same device.
        if self.calls_in(self.ir.function(init)).any(|(call, _)| self.moved_by(call).is_some()) {
            return None;
        }
        let methods: Vec<FuncId> = class.methods.iter().map(|&(_, f)| f).collect();
        let moves = |f: FuncId, name: Sym| self.moves_of(self.ir.function(f), name);
        // A method that moves only the copy handles it separately.
        let alone = methods.iter().any(|&f| moves(f, copy).is_some() && moves(f, model).is_none());
        if alone || !self.averages(class, model, copy) {
            return None;
        }
        let moved = methods.iter().filter(|&&f| f != init && moves(f, copy).is_none());
        let at =
            moved.filter(|&&f| !self.hands_out(self.ir.function(f), copy)).find_map(|&f| moves(f, model))?;
        let place = |span| Place { file: self.cx.file, span };
        let message = format!(
            "the average of `self.{model}` and `self.{copy}` raises: this call moves only `self.{model}`, `self.{copy}` stays on the CPU"
        );
        let label = Label::new(place(at), "moves the model, not its copy");
        let found = Finding::new(CODE, World::Cuda, message, label);
        let text = self.cx.sources.text(place(at));
        let how = [".to(", ".cuda("].into_iter().find_map(|method| text.rfind(method)).map(|n| &text[n..]);
        let how = how.filter(|how| is_short(how)).unwrap_or(".to(…)");
        Some(
            found
                .related(place(made), "copied before the move")
                .help(format!("move the copy too: `self.{copy}{how}`")),
        )
    }

    /// `self.copy = deepcopy(self.model)`, or a copy of the variable that is stored as `self.model`: the names, and the place.
    fn copied(&self, init: &Function) -> Option<(Sym, Sym, Span)> {
        let assigned: Vec<(Sym, ExprId, Span)> = self.kept_in(init).collect();
        assigned.iter().find_map(|&(copy, value, at)| {
            let Expr::Call(id) = self.ir.expr(value) else { return None };
            let call = self.ir.call(id);
            let Some(Resolved::External(path)) = self.cx.program.resolve_expr(self.module, call.func) else {
                return None;
            };
            let [of] = call.args else { return None };
            let model = match self.ir.expr(of.value) {
                Expr::Attr { base, name } if is_self(self.ir, base) => name,
                var @ Expr::Var(Var::Local(_)) => {
                    assigned.iter().find(|&&(_, v, _)| self.ir.expr(v) == var).map(|&(name, ..)| name)?
                }
                _ => return None,
            };
            // No other value is ever assigned to the attribute, except `None`.
            let only = assigned
                .iter()
                .filter(|a| a.0 == copy)
                .all(|&(_, v, _)| v == value || self.ir.expr(v) == Expr::None);
            (path.as_str() == "copy.deepcopy" && only).then_some((copy, model, at))
        })
    }

    /// `self.name = value` in the method.
    fn kept_in(&self, method: &Function) -> impl Iterator<Item = (Sym, ExprId, Span)> {
        let body = self.ir.stmts_of(method);
        self.ir.stmts[body.clone()].iter().zip(&self.ir.stmt_spans[body]).filter_map(|(s, &at)| {
            let Stmt::Assign { targets, value } = *s else { return None };
            let [target] = *self.ir.list(targets) else { return None };
            self.own_attribute(target).map(|name| (name, value, at))
        })
    }

    /// `self.name.to(…)` in the method, if the target is not the CPU.
    fn moves_of(&self, method: &Function, part: Sym) -> Option<Span> {
        self.calls_in(method).find_map(|(call, at)| {
            let moved = self.moved_by(call)?;
            (self.own_attribute(moved) == Some(part) && self.goes_away(call)).then_some(at)
        })
    }

    /// The moved object in `x.to(…)` or `x.cuda()`.
    fn moved_by(&self, call: Call<'_>) -> Option<ExprId> {
        match self.ir.expr(call.func) {
            Expr::Attr { base, name } if matches!(name.as_str(), "to" | "cuda") => Some(base),
            _ => None,
        }
    }

    /// Is the argument of `.to(…)` or `.cuda(…)` a device other than the CPU?
    fn goes_away(&self, call: Call<'_>) -> bool {
        if matches!(self.ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "cuda") {
            return true;
        }
        let told = call.args.iter().find(|a| match a.kind {
            ArgKind::Positional => true,
            ArgKind::Keyword(name) => name.as_str() == "device",
            _ => false,
        });
        told.is_some_and(|a| match self.ir.expr(a.value) {
            Expr::Str(s) => !s.as_str().starts_with("cpu"),
            _ => self.ir.last_name(a.value).is_some_and(|n| is_device_name(n.as_str())),
        })
    }

    /// Does the method pass the attribute to a function, which may move it?
    fn hands_out(&self, method: &Function, part: Sym) -> bool {
        self.calls_in(method)
            .any(|(call, _)| call.args.iter().any(|a| self.own_attribute(a.value) == Some(part)))
    }

    /// Does the class iterate over `zip(self.model.parameters(), self.copy.parameters())` without moving one to the other?
    fn averages(&self, class: &Class, model: Sym, copy: Sym) -> bool {
        let weights = |e: ExprId, part: Sym| {
            let Expr::Call(id) = self.ir.expr(e) else { return false };
            matches!(self.ir.expr(self.ir.call(id).func), Expr::Attr { base, name }
                if name.as_str() == "parameters" && self.own_attribute(base) == Some(part))
        };
        class.methods.iter().any(|&(_, f)| {
            let method = self.ir.function(f);
            let zipped = self.calls_in(method).any(|(call, _)| {
                let has = |part| call.args.iter().any(|a| weights(a.value, part));
                self.ir.is_builtin(call.func, "zip") && has(model) && has(copy)
            });
            let brings = |e: Expr| matches!(e, Expr::Attr { name, .. } if BRINGS.has(name.as_str()));
            zipped && !self.inside(method).any(|(_, e, _)| brings(e))
        })
    }
}
