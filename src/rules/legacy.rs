//! SD106 where CUDA is there anyway: tensors of the current GPU beside those that a function is given.
//!
//! `out = torch.cuda.FloatTensor(n, c)`, with `n, c = rows.shape`, and then `kernel(rows, out)`: the two are on one GPU only if the
//! caller's tensors are on the current one.

use super::Context;
use super::file::File;
use crate::finding::{Code, Finding, Label};
use crate::ir::{Call, Expr, ExprId, Function, Slot, Stmt, Var};
use crate::link::Resolved;
use crate::span::{Place, Span};
use crate::world::World;

/// Who names one of these has seen to it which GPU is the current one.
const CHOOSES: &[&str] = &["device_of", "set_device", "current_device"];

/// SD106 legacy-cuda-tensor-type, in a file that is for CUDA alone
pub(super) fn beside_given(cx: &Context<'_>) -> Vec<Finding> {
    if !(cx.cuda_only || cx.refuses) || super::in_tests(Place { file: cx.file, span: Span::default() }, cx) {
        return Vec::new();
    }
    let Some(file) = File::of(cx) else { return Vec::new() };
    let chosen = file.ir.attributes.iter().any(|name| CHOOSES.contains(&name.as_str()));
    if chosen {
        return Vec::new();
    }
    file.ir.functions.iter().filter_map(|function| Look { file: &file, function }.finding()).collect()
}

/// A function that is given tensors.
struct Look<'a> {
    file: &'a File<'a>,
    function: &'a Function,
}

impl Look<'_> {
    /// The first such tensor of the function.
    fn finding(&self) -> Option<Finding> {
        let ir = self.file.ir;
        if self.switches() {
            return None;
        }
        let (at, name, given) = self.file.inside(self.function).find_map(|(_, e, at)| {
            let Expr::Call(id) = e else { return None };
            let call = ir.call(id);
            let name = self.legacy_type(call)?;
            let given = self.sized_by(call)?;
            self.used_beside(at, given).then_some((at, name, given))
        })?;
        let like = self.function.slots.get(usize::from(given))?;
        let place = |span| Place { file: self.file.cx.file, span };
        let message = format!(
            "`{name}` makes this on the current GPU, and `{like}`, which it is used with, may be on another one"
        );
        let label = Label { place: place(at), text: "always on the current GPU".to_owned() };
        Some(
            Finding::new(Code(106), World::Cuda, message, label)
                .related(place(self.function.name_span), format!("`{like}` is given here"))
                .help(format!("make it where that is: `device={like}.device`")),
        )
    }

    /// `with torch.cuda.device(x.device):`
    fn switches(&self) -> bool {
        self.file.inside(self.function).any(|(_, e, _)| {
            let Expr::Call(id) = e else { return false };
            matches!(self.file.cx.program.resolve_expr(self.file.module, self.file.ir.call(id).func),
                Some(Resolved::External(path)) if path.as_str() == "torch.cuda.device")
        })
    }

    /// `torch.cuda.FloatTensor`
    fn legacy_type(&self, call: Call<'_>) -> Option<&'static str> {
        match self.file.cx.program.resolve_expr(self.file.module, call.func)? {
            Resolved::External(path) => {
                let path = path.as_str();
                (path.starts_with("torch.cuda.") && path.ends_with("Tensor")).then_some(path)
            }
            _ => None,
        }
    }

    /// The parameter whose sizes the tensor has, written in the call or unpacked before.
    fn sized_by(&self, call: Call<'_>) -> Option<Slot> {
        let ir = self.file.ir;
        call.args.iter().find_map(|arg| {
            self.size_of(arg.value).or_else(|| match ir.expr(arg.value) {
                Expr::Var(Var::Local(slot)) => self.unpacked_from(slot),
                _ => None,
            })
        })
    }

    /// The parameter of which this is a size: `x.shape`, `x.shape[0]`, `x.size()`, `x.size(0)`
    fn size_of(&self, e: ExprId) -> Option<Slot> {
        let ir = self.file.ir;
        match ir.expr(e) {
            Expr::Index { base, .. } => self.size_of(base),
            Expr::Attr { base, name } if name.as_str() == "shape" => self.parameter(base),
            Expr::Call(id) => match ir.expr(ir.call(id).func) {
                Expr::Attr { base, name } if name.as_str() == "size" => self.parameter(base),
                _ => None,
            },
            _ => None,
        }
    }

    fn parameter(&self, e: ExprId) -> Option<Slot> {
        let Expr::Var(Var::Local(slot)) = self.file.ir.expr(e) else { return None };
        self.function.params.iter().any(|p| p.slot == slot).then_some(slot)
    }

    /// `n, c = x.shape`, and nothing else for `n`
    fn unpacked_from(&self, size: Slot) -> Option<Slot> {
        let mut values = self.statements().filter_map(|(s, _)| match *s {
            Stmt::Assign { targets, value } => {
                let named = self.file.ir.list(targets).iter().any(|&t| self.file.names_in(t).contains(&size));
                named.then_some(value)
            }
            _ => None,
        });
        let value = values.next()?;
        if values.next().is_some() { None } else { self.size_of(value) }
    }

    fn statements(&self) -> impl Iterator<Item = (&Stmt, Span)> {
        let ir = self.file.ir;
        let range = ir.stmts_of(self.function);
        ir.stmts[range.clone()].iter().zip(ir.stmt_spans[range].iter().copied())
    }

    /// Is what is made there, under its name, handed to something together with the parameter, or computed with it?
    fn used_beside(&self, made: Span, given: Slot) -> bool {
        let named: Vec<Slot> = self
            .statements()
            .filter_map(|(s, at)| match *s {
                Stmt::Assign { targets, .. } if at.contains(made) => Some(targets),
                _ => None,
            })
            .flat_map(|targets| self.file.ir.list(targets).iter().flat_map(|&t| self.file.names_in(t)))
            .collect();
        let mentions = |at: Span, slot: &dyn Fn(Slot) -> bool| {
            self.file.inside(self.function).any(|(_, e, span)| match e {
                Expr::Var(Var::Local(s)) => slot(s) && at.contains(span),
                _ => false,
            })
        };
        let both = |at: Span| mentions(at, &|s| named.contains(&s)) && mentions(at, &|s| s == given);
        let handed = self.file.inside(self.function).any(|(_, e, at)| match e {
            Expr::Call(id) => at.start >= made.end && !self.only_keeps(self.file.ir.call(id)) && both(at),
            _ => false,
        });
        handed
            || self
                .statements()
                .any(|(s, at)| matches!(s, Stmt::AugAssign { .. }) && at.start >= made.end && both(at))
    }

    /// `ctx.save_for_backward(x, out)` asks nothing of where they are.
    fn only_keeps(&self, call: Call<'_>) -> bool {
        matches!(self.file.ir.expr(call.func), Expr::Attr { name, .. }
            if matches!(name.as_str(), "save_for_backward" | "mark_non_differentiable" | "append" | "view" | "format"))
    }
}
