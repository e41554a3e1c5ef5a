//! SD307 stale-device-attribute: a module stores a device that may become wrong.

use crate::finding::{Code, Finding, Label};
use crate::flow::is_module_class;
use crate::ir::{Class, Expr, ExprId, FuncId, FuncKind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::device_words::is_device_name;
use crate::rules::shared::file::{File, assigned_to_own};
use crate::rules::shared::module_device::module_device;
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::words::Words;
use crate::world::World;

pub(super) const CODE: Code = Code(307);
pub(super) struct Rule;

impl Check for Rule {
    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        remembered(cx)
    }
}

static FOLLOWING: Words = Words::of("methods that move a module");

/// SD307 stale-device-attribute
fn remembered(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = File::of(cx) else { return Vec::new() };
    let mut found = Vec::new();
    if !file.ir.attributes.iter().any(|name| is_device_name(name.as_str())) {
        return found;
    }
    for (key, class) in file.classes() {
        if is_module_class(cx.program, key)
            && !class.methods.iter().any(|(name, _)| FOLLOWING.has(name.as_str()))
        {
            found.extend(file.of_class(class));
        }
    }
    found
}

impl File<'_> {
    /// The devices that the constructor stores and that other methods use without updating them.
    fn of_class(&self, class: &Class) -> Vec<Finding> {
        let Some(&(_, init)) = class.methods.iter().find(|(name, _)| name.as_str() == "__init__") else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (name, at) in self.kept(init) {
            // A method or property with that name is read instead of the attribute.
            if class.methods.iter().any(|&(method, _)| method == name) {
                continue;
            }
            let others = class.methods.iter().filter(|&&(_, f)| f != init).map(|&(_, f)| f);
            let (mut uses, mut updated) = (Vec::new(), false);
            for f in others {
                updated |= assigned_to_own(self.ir, f).into_iter().any(|(n, _, _)| n == name);
                uses.extend(self.uses(f, name));
            }
            if let (false, Some(&first)) = (updated, uses.first()) {
                found.push(self.stale_finding(name, at, first));
            }
        }
        found
    }

    /// The devices that a constructor stores: the attribute, and where.
    fn kept(&self, init: FuncId) -> Vec<(Sym, Span)> {
        let mut kept: Vec<(Sym, Span)> = Vec::new();
        for (name, value, at) in assigned_to_own(self.ir, init) {
            if self.is_device(name, value) && !kept.iter().any(|k| k.0 == name) {
                kept.push((name, at));
            }
        }
        kept
    }

    /// Is the stored value a device? Its name says so, and it is not a number, a dtype or a list of these.
    fn is_device(&self, name: Sym, value: ExprId) -> bool {
        if !is_device_name(name.as_str()) {
            return false;
        }
        match self.ir.expr(value) {
            Expr::Call(call) => match self.ir.expr(self.ir.call(call).func) {
                Expr::Attr { name, .. } => name.as_str() == "device",
                _ => false,
            },
            Expr::Attr { name, .. } => name.as_str() == "device",
            Expr::Str(_) | Expr::Var(_) | Expr::IfElse(_) => true,
            _ => false,
        }
    }

    /// Where a method moves or creates something on the stored device: `.to(self.name)`, `device=self.name`.
    fn uses(&self, f: FuncId, name: Sym) -> Vec<Span> {
        let function = self.ir.function(f);
        if function.kind != FuncKind::Function {
            return Vec::new();
        }
        let calls = self.ir.calls().flat_map(|call| {
            let to = matches!(self.ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "to");
            call.args.iter().filter_map(move |a| match a.kind {
                crate::ir::ArgKind::Keyword(k) if k.as_str() == "device" => Some(a.value),
                crate::ir::ArgKind::Positional if to => Some(a.value),
                _ => None,
            })
        });
        calls
            .filter(|&e| function.span.contains(self.ir.span(e)) && self.own_attribute(e) == Some(name))
            .map(|e| self.ir.span(e))
            .collect()
    }

    fn stale_finding(&self, name: Sym, at: Span, used: Span) -> Finding {
        let place = |span| Place { file: self.cx.file, span };
        let message =
            format!("`self.{name}` keeps the device from the constructor: `.to()` does not update it");
        let label = Label::new(place(at), "set only in the constructor");
        let device = module_device(self.cx, place(used)).unwrap_or_else(|| "x.device".to_owned());
        Finding::new(CODE, World::Cuda, message, label)
            .related(place(used), "used here, after the module may have moved")
            .help(format!("where it is used, take the device of an input or of a parameter: `{device}`"))
    }
}
