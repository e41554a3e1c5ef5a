//! SD505 graph-retained-by-accumulation: loops over the parts of one optimizer step (gradient accumulation).

use super::super::expressions::{same, whole};
use super::File;
use crate::ir::{Block, Expr, ExprId, Stmt};
use crate::span::{Place, Span};
use crate::words::Words;

static KEEPS: Words = Words::of("methods that keep their argument");
static CUTS: Words = Words::of("take a value out of a step");

impl File<'_> {
    /// Is it a loop over the parts of one step? The sum starts again outside the loop, where the gradients are set to zero, and the
    /// gradients are not set to zero in the loop. Then the graphs of one step stay together, unless other code keeps the sum.
    pub(super) fn is_one_step(&self, body: Block, sum: ExprId) -> bool {
        let ir = self.ir;
        let Some(inner) = self.span_of(body) else { return false };
        if self.goes_over_all(inner) {
            return false;
        }
        let bodies = ir.stmts.iter().filter_map(|s| match s {
            Stmt::For { body, .. } | Stmt::While { body, .. } => self.span_of(*body),
            _ => None,
        });
        let mut around: Vec<Span> = bodies
            .filter(|s| s.contains(inner) && *s != inner && self.in_scope(*s))
            .chain((self.scope != Span::default()).then_some(self.scope))
            .collect();
        around.sort_by_key(|s| std::cmp::Reverse(s.start));
        let mut within = inner;
        for outer in around {
            let steps_within = self.steps(&|name| matches!(name, "zero_grad" | "step"), within);
            let begun =
                ir.stmts.iter().zip(&ir.stmt_spans).any(|(s, &at)| {
                    outer.contains(at) && at.start < within.start && self.is_given_anew(s, sum)
                });
            if begun {
                // If another optimizer steps in each iteration, the iterations are parts of one step only if an outer loop has one.
                let zeroed = self.calls().any(|(call, at)| {
                    let zeroes =
                        matches!(ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "zero_grad");
                    zeroes && outer.contains(at) && !(steps_within && within.contains(at))
                });
                return zeroed && !self.is_kept(sum, outer);
            }
            if steps_within {
                return false;
            }
            within = outer;
        }
        false
    }

    fn span_of(&self, body: Block) -> Option<Span> {
        let (first, last) = (self.ir.block(body).first()?, self.ir.block(body).last()?);
        Some(Span { start: self.ir.stmt_span(*first).start, end: self.ir.stmt_span(*last).end })
    }

    /// Does the loop with this body go over a whole data loader? Its batches are not parts of one batch.
    fn goes_over_all(&self, inner: Span) -> bool {
        let ir = self.ir;
        ir.stmts.iter().any(|s| match *s {
            Stmt::For { iter, body, .. } if self.span_of(body) == Some(inner) => {
                let over = Place { file: self.cx.file, span: ir.span(iter) };
                self.cx.sources.text(over).to_ascii_lowercase().contains("loader")
            }
            _ => false,
        })
    }

    fn steps(&self, named: &dyn Fn(&str) -> bool, within: Span) -> bool {
        self.calls().any(|(call, at)| {
            within.contains(at)
                && matches!(self.ir.expr(call.func), Expr::Attr { name, .. } if named(name.as_str()))
        })
    }

    /// Does a method that keeps its argument get the sum: `meter.update(mean(losses))`?
    fn is_kept(&self, sum: ExprId, around: Span) -> bool {
        let ir = self.ir;
        self.calls().filter(|&(_, at)| around.contains(at)).any(|(call, _)| {
            let Expr::Attr { base, name } = ir.expr(call.func) else { return false };
            let itself = same(ir, base, sum) || same(ir, base, whole(ir, sum));
            KEEPS.has(name.as_str())
                && !itself
                && call.args.iter().any(|a| {
                    let part = |n: usize| ExprId(u32::try_from(n).unwrap_or(u32::MAX));
                    let cut =
                        |e: ExprId| matches!(ir.expr(e), Expr::Attr { name, .. } if CUTS.has(name.as_str()));
                    ir.exprs_in(a.value).any(|n| same(ir, part(n), sum))
                        && !ir.exprs_in(a.value).any(|n| cut(part(n)))
                })
        })
    }
}
