//! SD205, by parameters: a tensor that a class follows to whatever device it is on, and that one of its functions hands to NumPy.
//!
//! Who hands its argument to NumPy mostly knows that it is on the host. Where the same function, or another method of its class,
//! makes tensors on the device of that argument, it is meant to be anywhere.

use super::Context;
use super::file::File;
use crate::finding::{Code, Finding, Label};
use crate::ir::{ArgKind, Expr, ExprId, FuncKind, Function, Slot, Stmt, Var};
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::world::World;

/// SD205 cuda-tensor-to-numpy, of arguments
pub(super) fn to_numpy(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = File::of(cx) else { return Vec::new() };
    let asked = ["numpy", "device"].map(Sym::new).into_iter().all(|name| file.ir.has_attribute(name));
    let here = Place { file: cx.file, span: Span::default() };
    if !asked || super::in_tests(here, cx) {
        return Vec::new();
    }
    let functions = file.ir.functions.iter().filter(|f| f.kind == FuncKind::Function);
    functions.filter_map(|f| file.hands_followed_to_numpy(f)).collect()
}

impl File<'_> {
    fn hands_followed_to_numpy(&self, function: &Function) -> Option<Finding> {
        let (slot, at) = self.inside(function).find_map(|(_, e, at)| {
            let Expr::Call(call) = e else { return None };
            let call = self.ir.call(call);
            let Expr::Attr { base, name } = self.ir.expr(call.func) else { return None };
            let slot = self.plainly(base)?;
            let param = function.params.iter().any(|p| p.slot == slot && p.name.as_str() != "self");
            (name.as_str() == "numpy" && call.args.is_empty() && param).then_some((slot, at))
        })?;
        if self.is_set_before(function, slot, at) || self.asks_where(function, slot) {
            return None;
        }
        let param = function.params.iter().find(|p| p.slot == slot)?.name;
        let followed = self.followed_by_its_like(function, param)?;
        let message = format!(
            "`{param}` may be on CUDA, as tensors are made where it is, and CUDA tensors cannot become NumPy arrays"
        );
        let place = |span| Place { file: self.cx.file, span };
        let label = Label { place: place(at), text: "raises `TypeError` for a CUDA tensor".to_owned() };
        Some(
            Finding::new(Code(205), World::Cuda, message, label)
                .related(place(followed), "what is made here is where it is")
                .help(format!("bring it to the host first: `{param}.cpu().numpy()`")),
        )
    }

    /// The variable, perhaps detached.
    fn plainly(&self, e: ExprId) -> Option<Slot> {
        match self.ir.expr(e) {
            Expr::Var(Var::Local(slot)) => Some(slot),
            Expr::Call(call) => match self.ir.expr(self.ir.call(call).func) {
                Expr::Attr { base, name } if name.as_str() == "detach" => self.plainly(base),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_set_before(&self, function: &Function, slot: Slot, at: Span) -> bool {
        self.ir.stmts_of(function).any(|n| match self.ir.stmts[n] {
            Stmt::Assign { targets, .. } if self.ir.stmt_spans[n].start < at.start => {
                self.ir.list(targets).iter().any(|&t| self.ir.binds(t, Var::Local(slot)))
            }
            _ => false,
        })
    }

    /// Does the function ask where it is, other than to make something there?
    fn asks_where(&self, function: &Function, slot: Slot) -> bool {
        let own = Expr::Var(Var::Local(slot));
        let of_it = |e: ExprId, what: &[&str]| {
            matches!(self.ir.expr(e), Expr::Attr { base, name }
                if what.contains(&name.as_str()) && self.ir.expr(base) == own)
        };
        self.inside(function).any(|(n, e, _)| match e {
            Expr::Attr { base, .. } => {
                let n = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
                of_it(n, &["is_cuda", "is_cpu", "cpu", "get_device", "to"]) || of_it(base, &["device"])
            }
            Expr::Compare { left, right, .. } => of_it(left, &["device"]) || of_it(right, &["device"]),
            _ => false,
        })
    }

    /// Where the function, or another method of its class, makes something on the device of its argument of that name.
    fn followed_by_its_like(&self, function: &Function, param: Sym) -> Option<Span> {
        let like = |f: &&Function| {
            let same = f.span == function.span || function.class.is_some() && f.class == function.class;
            same && f.kind == FuncKind::Function
        };
        self.ir.functions.iter().filter(like).find_map(|f| {
            let slot = f.params.iter().find(|p| p.name == param)?.slot;
            let device = |e: ExprId| {
                matches!(self.ir.expr(e), Expr::Attr { base, name }
                    if name.as_str() == "device" && self.ir.expr(base) == Expr::Var(Var::Local(slot)))
            };
            self.inside(f).find_map(|(_, e, at)| {
                let Expr::Call(call) = e else { return None };
                let mut args = self.ir.call(call).args.iter();
                let placed = args.any(|a| {
                    matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == "device") && device(a.value)
                });
                placed.then_some(at)
            })
        })
    }
}
