//! Where the result of a call goes, and whether anything differentiates it.

use crate::ir::{Expr, ExprId, FuncId, Module, Stmt, StmtId, Var};
use crate::span::Span;
use crate::sym::Sym;
use crate::words::Words;
use std::ops::Range;

/// Methods whose result has no graph.
static CUTS: Words = Words::of("results without a graph");
/// Calls that differentiate. They need gradients, and so do the callers of the function that contains them.
pub(crate) const DIFFERENTIATES: &[&str] = &["backward", "manual_backward"];

impl<'a> Course<'a> {
    pub(crate) fn of(ir: &'a Module, func: FuncId, call: Span) -> Self {
        let mut course = Self { ir, func, call, held: Vec::new(), escapes: false };
        while course.goes_on() {}
        course
    }

    pub(crate) fn inside(&self, at: Span) -> bool {
        self.func.0 == 0 || self.ir.function(self.func).span.contains(at)
    }

    /// The indices of the function's expressions.
    pub(crate) fn exprs(&self) -> Range<usize> {
        let range = &self.ir.function(self.func).exprs;
        if self.func.0 == 0 { 0..self.ir.exprs.len() } else { range.start as usize..range.end as usize }
    }

    /// The function's expressions inside of this one, including the expression itself.
    fn parts(&self, e: ExprId) -> impl Iterator<Item = (Expr, Span)> + 'a {
        let (ir, own, parts) = (self.ir, self.exprs(), self.ir.exprs_in(e));
        let all = parts.start.max(own.start)..parts.end.min(own.end);
        all.map(|n| (ir.exprs[n], ir.expr_spans[n]))
    }

    /// One pass over the function's statements. True if it found another variable or attribute that holds the result.
    fn goes_on(&mut self) -> bool {
        let (ir, before) = (self.ir, self.held.len());
        for (n, s) in ir.stmts.iter().enumerate() {
            if !self.inside(ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX)))) {
                continue;
            }
            match s {
                Stmt::Assign { targets, value } if self.carries(*value) => {
                    ir.list(*targets).iter().for_each(|&t| self.hold(t, false));
                }
                Stmt::AugAssign { target, value, .. } | Stmt::For { target, iter: value, .. }
                    if self.carries(*value) =>
                {
                    self.hold(*target, false);
                }
                // `losses.append(loss)`
                Stmt::Expr(e) => {
                    if let Expr::Call(c) = ir.expr(*e)
                        && let Expr::Attr { base, .. } = ir.expr(ir.call(c).func)
                        && ir.call(c).args.iter().any(|a| self.carries(a.value))
                    {
                        self.hold(base, true);
                    }
                }
                _ => {}
            }
        }
        self.held.len() > before
    }

    /// The target holds the result from here on. With `part`, something in the target holds it.
    fn hold(&mut self, target: ExprId, part: bool) {
        let holder = match self.ir.expr(target) {
            Expr::Var(v) => {
                let function = self.ir.function(self.func);
                let given = part && matches!(v, Var::Local(s) if function.params.iter().any(|p| p.slot == s));
                self.escapes |= given || !matches!(v, Var::Local(_));
                Holder::Variable(v)
            }
            Expr::Attr { name, .. } => {
                self.escapes = true;
                Holder::Attribute(name)
            }
            Expr::Index { base, .. } => return self.hold(base, true),
            Expr::Star(base) => return self.hold(base, part),
            Expr::Tuple(list) | Expr::List(list) => {
                return self.ir.list(list).iter().for_each(|&t| self.hold(t, part));
            }
            _ => return,
        };
        if !self.held.contains(&holder) {
            self.held.push(holder);
        }
    }

    /// Does the expression contain the call or a holder of its result, other than under a method without a graph, such as `item()`?
    fn carries(&self, piece: ExprId) -> bool {
        let at = self.ir.span(piece);
        let found = |s: Span| at.contains(s) && !self.is_cut(s, piece);
        found(self.call)
            || !self.held.is_empty()
                && self.parts(piece).any(|(e, s)| {
                    let held = match e {
                        Expr::Var(v) => self.held.contains(&Holder::Variable(v)),
                        Expr::Attr { name, .. } => self.held.contains(&Holder::Attribute(name)),
                        _ => false,
                    };
                    held && found(s)
                })
    }

    /// Does the expression remove the graph of what is at the place, as in `loss.item()` or `out.detach()`?
    fn is_cut(&self, place: Span, piece: ExprId) -> bool {
        let (ir, whole) = (self.ir, self.ir.span(piece));
        self.parts(piece).any(|(e, at)| {
            at != place
                && whole.contains(at)
                && at.contains(place)
                && match e {
                    Expr::Call(c) => match ir.expr(ir.call(c).func) {
                        Expr::Attr { name, .. } => CUTS.has(name.as_str()),
                        Expr::Var(Var::Unbound(n)) => matches!(n.as_str(), "float" | "int"),
                        _ => false,
                    },
                    _ => false,
                }
        })
    }

    /// Does the result reach a `backward()` in this function?
    pub(crate) fn is_differentiated(&self) -> bool {
        let ir = self.ir;
        self.exprs().any(|n| match ir.exprs[n] {
            Expr::Call(c) => {
                matches!(ir.expr(ir.call(c).func), Expr::Attr { name, .. } if DIFFERENTIATES.contains(&name.as_str()))
                    && self.carries(ExprId(u32::try_from(n).unwrap_or(u32::MAX)))
            }
            _ => false,
        })
    }
}

/// Where the result of a call goes in the function that makes the call, as far as names show.
pub(crate) struct Course<'a> {
    pub(crate) ir: &'a Module,
    pub(crate) func: FuncId,
    pub(crate) call: Span,
    /// Variables and attributes that hold the result, or a value computed from it.
    pub(crate) held: Vec<Holder>,
    /// Whether other code may reach the result without the function's return value: through an attribute or a parameter.
    pub(crate) escapes: bool,
}

/// A variable, or any attribute with that name, that holds a value.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Holder {
    Variable(Var),
    Attribute(Sym),
}

/// The offset of the first `train` after the call, or `u32::MAX`. Code from there on belongs to later rounds of a loop.
pub(crate) fn trained_again(ir: &Module, function: Span, call: Span) -> u32 {
    let trains = ir.exprs.iter().zip(&ir.expr_spans).filter(|&(e, &at)| {
        function.contains(at)
            && at.start > call.end
            && matches!(e, Expr::Attr { name, .. } if name.as_str() == "train")
    });
    trains.map(|(_, at)| at.start).min().unwrap_or(u32::MAX)
}
