//! SD505 graph-retained-by-accumulation: losses in dicts: their keys, and loops over all of them.

use super::{File, Loss, Part, Slot};
use crate::ir::{Expr, ExprId, Stmt, Var};
use crate::span::Span;

impl File<'_> {
    /// Dicts that contain losses: `parts = {"loss": loss, "accuracy": hits / count}`.
    pub(super) fn put_into_dicts(&self, losses: &mut Vec<(Loss, Span)>, within: &dyn Fn(Span) -> bool) {
        let ir = self.ir;
        for s in &ir.stmts {
            let Stmt::Assign { targets, value } = *s else { continue };
            let (&[target], Expr::Dict(list)) = (ir.list(targets), ir.expr(value)) else { continue };
            let (Expr::Var(var @ Var::Local(_)), at) = (ir.expr(target), ir.span(value)) else { continue };
            if !within(at) {
                continue;
            }
            for pair in ir.list(list).chunks(2) {
                let &[key, part] = pair else { continue };
                let (Expr::Str(key), Expr::Var(v)) = (ir.expr(key), ir.expr(part)) else { continue };
                let itself = Loss { var: v, slot: Slot::Itself };
                let Some(&(_, since)) = losses.iter().find(|(l, _)| *l == itself) else { continue };
                // A loss that the program has replaced with a number has no graph.
                if !self.rebound(v, &|x| within(x) && x.start > since.start && x.end <= at.start) {
                    losses.push((Loss { var, slot: Slot::Key(key) }, at));
                }
            }
        }
    }

    /// The dict whose values add up to a loss: `loss = sum(losses.values())`.
    pub(super) fn summed(&self, loss: Loss, within: &dyn Fn(Span) -> bool) -> Option<Loss> {
        let ir = self.ir;
        if loss.slot != Slot::Itself {
            return None;
        }
        ir.stmts.iter().find_map(|s| {
            let Stmt::Assign { targets, value } = *s else { return None };
            let given = ir.list(targets).iter().any(|&t| ir.expr(t) == Expr::Var(loss.var));
            if !given || !within(ir.span(value)) {
                return None;
            }
            self.dict_summed(value).map(|var| Loss { var, slot: Slot::Every })
        })
    }

    /// `sum(losses.values())`, `sum(loss for loss in losses.values())`: the dict.
    pub(super) fn dict_summed(&self, e: ExprId) -> Option<Var> {
        let ir = self.ir;
        let Expr::Call(c) = ir.expr(e) else { return None };
        let call = ir.call(c);
        let is_sum = matches!(ir.expr(call.func), Expr::Var(Var::Unbound(n)) if n.as_str() == "sum");
        let mut over = call.args.first().filter(|_| is_sum)?.value;
        if let Expr::Comp(id) = ir.expr(over)
            && let comp = ir.comp(id)
            && let [one] = &*comp.generators
        {
            if ir.expr(one.target) != ir.expr(comp.element) || one.conditions.len > 0 {
                return None;
            }
            over = one.iter;
        }
        match self.parts_of(over)? {
            (var, Part::Value) => Some(var),
            _ => None,
        }
    }

    /// The dict of an iterable, and whether it gives keys or values: `losses`, `losses.keys()`, `losses.values()`.
    fn parts_of(&self, e: ExprId) -> Option<(Var, Part)> {
        let ir = self.ir;
        match ir.expr(e) {
            Expr::Var(v) => Some((v, Part::Key)),
            Expr::Call(c) if ir.call(c).args.is_empty() => {
                let Expr::Attr { base, name } = ir.expr(ir.call(c).func) else { return None };
                let Expr::Var(v) = ir.expr(base) else { return None };
                match name.as_str() {
                    "keys" => Some((v, Part::Key)),
                    "values" => Some((v, Part::Value)),
                    "items" => Some((v, Part::Both)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The dict whose keys or values a loop variable takes, if every iteration reaches the place.
    pub(super) fn turn_of(&self, var: Var, at: Span) -> Option<(Var, Part)> {
        let ir = self.ir;
        ir.stmts.iter().find_map(|s| {
            let Stmt::For { target, iter, body, .. } = *s else { return None };
            // An `if` may select some of them.
            let reached = ir.block(body).iter().any(|&s| {
                ir.stmt_span(s).contains(at)
                    && matches!(ir.stmt(s), Stmt::Expr(_) | Stmt::Assign { .. } | Stmt::AugAssign { .. })
            });
            if !reached {
                return None;
            }
            let (dict, part) = self.parts_of(iter)?;
            match (ir.expr(target), part) {
                (Expr::Var(v), Part::Key | Part::Value) if v == var => Some((dict, part)),
                (Expr::Tuple(list), Part::Both) => match *ir.list(list) {
                    [k, _] if ir.expr(k) == Expr::Var(var) => Some((dict, Part::Key)),
                    [_, v] if ir.expr(v) == Expr::Var(var) => Some((dict, Part::Value)),
                    _ => None,
                },
                _ => None,
            }
        })
    }
}
