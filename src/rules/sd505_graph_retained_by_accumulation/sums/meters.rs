//! SD505 graph-retained-by-accumulation: losses that are passed to the project's own meters.

use super::super::expressions::{same, whole};
use super::{File, Loss, Slot};
use crate::finding::Finding;
use crate::ir::{ArgKind, BinOp, Expr, ExprId, Function, Stmt, StmtId, Var};
use crate::link::{ClassKey, Resolved};
use crate::remedy::Remedy;
use crate::span::{Place, Span};
use crate::sym::Sym;

impl File<'_> {
    /// `meter.update(loss, n)`: does a meter of the project add up its argument?
    pub(super) fn handed_over(
        &self,
        e: ExprId,
        losses: &[Loss],
        fresh: &dyn Fn(ExprId, Span) -> bool,
        found: &mut Vec<Finding>,
    ) {
        let Expr::Call(c) = self.ir.expr(e) else { return };
        let call = self.ir.call(c);
        let Expr::Attr { base, name } = self.ir.expr(call.func) else { return };
        // `meter.update(losses)`: the whole dict.
        let dict = |e: ExprId| {
            let of_it = |l: &&Loss| l.slot != Slot::Itself && self.ir.expr(e) == Expr::Var(l.var);
            losses.iter().find(of_it).map(|l| l.slot)
        };
        let given = call.args.iter().position(|a| self.holds(a.value, losses) || dict(a.value).is_some());
        let Some(position) = given else { return };
        let slot = dict(call.args[position].value).unwrap_or(Slot::Itself);
        let recorded = !self.without_graph(self.ir.span(e));
        if fresh(base, self.ir.span(e)) {
            return;
        }
        let Some(key) = self.class_of(base) else { return };
        let Some((m, f)) = self.cx.program.find_method(key, name) else { return };
        let ir = &self.cx.program.get(m).ir;
        let method = ir.function(f);
        let param = match call.args[position].kind {
            ArgKind::Positional => method.params.get(position + 1),
            ArgKind::Keyword(k) => method.params.iter().find(|p| p.name == k),
            _ => None,
        };
        let Some(param) = param else { return };
        let there = File { cx: self.cx, module: m, ir, scope: method.span };
        if let Some(at) = there.adds_up(method, Loss { var: Var::Local(param.slot), slot }, recorded) {
            let place = Place { file: ir.file, span: at };
            let site = Place { file: self.cx.file, span: self.ir.span(e) };
            let given = Place { file: self.cx.file, span: self.ir.span(call.args[position].value) };
            let single = (slot == Slot::Itself).then_some(given);
            let f = self.finding(place, single).related(site, "passes a loss with its graph");
            let cut = single.map(Remedy::Detach);
            found.push(f.remedy(cut));
        }
    }

    /// The statement of a method that adds its parameter to a sum or a list of the object. A sum has a graph only if gradients
    /// are on.
    fn adds_up(&self, method: &Function, given: Loss, recorded: bool) -> Option<Span> {
        let ir = self.ir;
        let inside = |at: Span| method.span.contains(at);
        let rebound = ir.stmts.iter().enumerate().any(|(n, s)| {
            inside(ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX))))
                && matches!(s, Stmt::Assign { targets, .. }
                    if ir.list(*targets).iter().any(|&t| ir.expr(t) == Expr::Var(given.var)))
        });
        if rebound || method.decorators.len > 0 {
            return None;
        }
        ir.stmts.iter().enumerate().find_map(|(n, s)| {
            let at = ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX)));
            let kept = match s {
                Stmt::AugAssign { target, op: BinOp::Add, value } if recorded && !self.without_graph(at) => {
                    Some((*target, *value))
                }
                Stmt::Expr(e) => self.appended(*e),
                _ => None,
            };
            let (target, value) = kept.filter(|_| inside(at))?;
            (matches!(ir.expr(whole(ir, target)), Expr::Attr { .. }) && self.holds(value, &[given]))
                .then_some(at)
        })
    }

    /// The class of the project that a variable or attribute is an object of, if every assignment agrees.
    fn class_of(&self, e: ExprId) -> Option<ClassKey> {
        let mut class = None;
        let name = |e: ExprId| match self.ir.expr(e) {
            Expr::Attr { name, .. } => Some(name),
            _ => None::<Sym>,
        };
        for s in &self.ir.stmts {
            let Stmt::Assign { targets, value } = s else { continue };
            let here = self.in_scope(self.ir.span(*value));
            let is_it = |t: ExprId| here && same(self.ir, t, e) || name(e).is_some() && name(t) == name(e);
            for &t in self.ir.list(*targets) {
                let made = match (self.ir.expr(t), self.ir.expr(*value)) {
                    // `meter, total = Meter(), 0.0`
                    (Expr::Tuple(names), Expr::Tuple(values)) => {
                        let pairs = self.ir.list(names).iter().zip(self.ir.list(values));
                        pairs.into_iter().find(|&(&t, _)| is_it(t)).map(|(_, &v)| v)
                    }
                    _ => is_it(t).then_some(*value),
                };
                let Some(made) = made else { continue };
                let Expr::Call(c) = self.ir.expr(made) else { return None };
                match self.cx.program.resolve_expr(self.module, self.ir.call(c).func) {
                    Some(Resolved::Class(key)) if class.is_none_or(|k| k == key) => class = Some(key),
                    _ => return None,
                }
            }
        }
        class
    }
}
