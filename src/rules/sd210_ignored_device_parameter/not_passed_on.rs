//! SD210 ignored-device-parameter: a function has a device, and omits it in a call that takes one.

use crate::finding::Finding;
use crate::ir::{ArgKind, Expr, ExprId, Function, Param, Stmt, Var};
use crate::link::Resolved;
use crate::rules::shared::file::File;
use crate::span::Span;
use crate::sym::Sym;

/// A device that a function has.
struct Given {
    /// Its variable.
    slot: u16,
    /// The name of the callees' parameter for it.
    name: Sym,
    /// Its origin: the place; and next, the text of the label.
    at: Span,
    told: &'static str,
    /// Whether the function has chosen it itself.
    own: bool,
}

impl File<'_> {
    /// A call of a function of the project that takes a device, has another default, and does not get the parameter.
    pub(super) fn not_passed_on(&self, function: &Function, param: &Param) -> Option<Finding> {
        // After an assignment, or a choice inside the function, the device is no longer the caller's.
        let rebound = !self.assignments(function, param.slot).is_empty();
        let at = function.name_span;
        let given = Given { slot: param.slot, name: param.name, at, told: "takes a device", own: false };
        (!rebound).then(|| self.left_out(function, &given))?
    }

    /// The same for a device that the function has chosen itself and passes to other calls: `device = args.device`.
    pub(super) fn own_not_passed_on(&self, function: &Function, device: Sym) -> Option<Finding> {
        let slot = u16::try_from(function.slots.iter().position(|&name| name == device)?).ok()?;
        if function.params.iter().any(|p| p.slot == slot) {
            return None;
        }
        let &[(at, value)] = &*self.assignments(function, slot) else { return None };
        let picked = self.picks_device(value);
        let given = Given { slot, name: device, at, told: "the device is chosen here", own: true };
        (picked && self.is_handed_out(function, slot)).then(|| self.left_out(function, &given))?
    }

    /// `args.device`, `options.pop("device")`, `torch.device(args.device)`, `pick_device(…)`, or one of two literals: an expression that
    /// can have several values.
    fn picks_device(&self, e: ExprId) -> bool {
        let speaks = |n: Sym| n.as_str().contains("device");
        match self.ir.expr(e) {
            Expr::Attr { name, .. } => speaks(name),
            Expr::Index { index, .. } => matches!(self.ir.expr(index), Expr::Str(s) if speaks(s)),
            Expr::Call(c) => {
                let call = self.ir.call(c);
                let first = call.args.first().map(|a| self.ir.expr(a.value));
                let named = match self.ir.expr(call.func) {
                    Expr::Attr { name, .. } => speaks(name),
                    Expr::Var(_) => self.ir.variable_of(call.func).is_some_and(speaks),
                    _ => false,
                };
                match first {
                    Some(Expr::Str(s)) => speaks(s),
                    _ => named,
                }
            }
            Expr::IfElse(_) => self.chooses_device(e),
            _ => false,
        }
    }

    /// Is the variable given to calls, as `device=device` or `x.to(device)`?
    fn is_handed_out(&self, function: &Function, slot: u16) -> bool {
        let it = |e: ExprId| self.ir.expr(e) == Expr::Var(Var::Local(slot));
        self.inside(function).any(|(_, e, _)| {
            let Expr::Call(c) = e else { return false };
            let call = self.ir.call(c);
            let to = matches!(self.ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "to");
            call.args.iter().any(|a| match a.kind {
                ArgKind::Keyword(k) => k.as_str() == "device" && it(a.value),
                _ => to && it(a.value),
            })
        })
    }

    /// The assignments of a function to a variable, with their values.
    pub(super) fn assignments(&self, function: &Function, slot: u16) -> Vec<(Span, ExprId)> {
        let body = self.ir.stmts_of(function);
        let is_it = |&t: &ExprId| self.ir.expr(t) == Expr::Var(Var::Local(slot));
        let stmts = self.ir.stmts[body.clone()].iter().zip(&self.ir.stmt_spans[body]);
        stmts
            .filter_map(|(s, &at)| match *s {
                Stmt::Assign { targets, value } if self.ir.list(targets).iter().any(is_it) => {
                    Some((at, value))
                }
                Stmt::AnnAssign { target, value: Some(value), .. } if is_it(&target) => Some((at, value)),
                _ => None,
            })
            .collect()
    }

    /// The first call that omits the function's device, so that the callee uses another default.
    fn left_out(&self, function: &Function, given: &Given) -> Option<Finding> {
        self.inside(function).filter(|(.., at)| at.start > given.at.start).find_map(|(_, e, at)| {
            let Expr::Call(c) = e else { return None };
            let call = self.ir.call(c);
            let (name, default) = self.left_to_default(function, call, given.name)?;
            // An object that is created on the CPU may be moved to the device later. An instance keeps its device, even if it becomes a
            // part of another object.
            let kept = self.is_own_class(function, call.func)
                || matches!(self.cx.program.resolve_expr(self.module, call.func), Some(Resolved::Class(_)));
            let later = || {
                self.comes_later(function, given.slot, at, kept)
                    || self.results_follow(function, given.slot, at, !kept)
                    || self.is_placed_later(function, at)
            };
            // A call whose result is not used may load a checkpoint to the CPU, from where it is copied.
            let read = || given.own && self.is_statement(at);
            let along = || {
                self.is_taken_along(function, at)
                    || self.moves_with_owner(function, call, at)
                    || self.works_for_loader(function, at)
            };
            if matches!(default.as_str(), "cpu" | "None") && (later() || read() || along()) {
                return None;
            }
            let what = given.name;
            let message =
                format!("this call does not pass `{what}` on: `{name}` uses its default, `{default}`");
            let found = self
                .device_finding(at, message, format!("`{what}` is not passed on"), (given.at, given.told))
                .help(self.pass_on(at, what));
            Some(found)
        })
    }

    /// Is the expression a statement, so that its result is not used?
    fn is_statement(&self, at: Span) -> bool {
        self.ir.stmts.iter().any(|s| matches!(*s, Stmt::Expr(e) if self.ir.span(e) == at))
    }

    /// The variables that an assignment to this target sets.
    pub(super) fn names_in(&self, target: ExprId) -> Vec<u16> {
        match self.ir.expr(target) {
            Expr::Var(Var::Local(s)) => vec![s],
            Expr::Tuple(list) | Expr::List(list) => {
                self.ir.list(list).iter().flat_map(|&t| self.names_in(t)).collect()
            }
            _ => Vec::new(),
        }
    }
}
